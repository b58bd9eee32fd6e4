"""A program of this machine works as an agent, and sees nothing that it must not see.

room        what it is to have: program, environment, files, what is shown and what is hidden
confined    starts it and hears of it                                  (this process, asyncio)
shown       what a program needs of this machine in order to start
main        a process of its own: makes the room or does without, and says which
inside      the first process of the room: starts the program, and ends whatever it started
mounts      the file system of the room
families    a process and all that came of it: found, ended
keeping     what is kept of its files, as an archive

It shares the network with this machine, because the ports of the gateway, of model servers on
loopback and of its provider have to be reached; everything else is its own: users, processes,
mounts, System V IPC.
"""
