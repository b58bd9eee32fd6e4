"""The phases of a run, one a file: each takes plain values and hosts, and gives plain values."""
