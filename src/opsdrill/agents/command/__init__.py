"""Command agents: any program of this machine works a ticket, seen by the gateway.

presets        well-known programs, by name
surroundings   what a program is given: its words, environment, files and paths
kept           what it leaves behind, masked and bounded
account        its own transcript, held against what the gateway saw
aftermath      what is said when it is gone
job            one job, from the open gateway to the last word
"""
