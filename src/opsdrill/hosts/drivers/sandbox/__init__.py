"""The `sandbox` driver: throw-away Linux hosts on this machine, from kernel namespaces.

driver     the driver: provision, preflight, reap          (this process, asyncio)
ending     the hosts of one run are given back
host       one host: commands, files, what changed
output     the two output pipes of a command
link       talks to the fork server
ledger     how much memory all hosts of this machine may take
changes    two snapshots -> the files that changed
facts      what a host is made of
findings   what works on this machine, by trying
messages   what the two processes say to each other

forkserver/            one small process of its own, standard library only
  main                 the loop: one fork for each request
  birth, tree, ...     a host is made; its tree is an allow-list
  execution, killing   a command is run, and ended with everything it started
"""
