"""The `container` driver: hosts from docker or podman, by their own client programs.

driver      makes the hosts of a run, and removes what killed processes left behind
engine      docker or podman: which one answers, and what is asked of it
options     the lab's options
birth       the arguments that a container is made with
ending      the hosts and the network of one run are given back
link        the way to one of them: `exec -i`
host        one of them: commands, files, and what changed
changes     the engine's list of changed files, made exact
owner       who a container belongs to, and whether that process still lives
findings    what works here and how to get the rest
"""
