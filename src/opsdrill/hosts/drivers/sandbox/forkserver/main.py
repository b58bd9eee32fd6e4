"""Where the fork server starts."""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
import sys

from opsdrill.hosts.drivers.sandbox.forkserver import confine, identity, kernel
from opsdrill.hosts.drivers.sandbox.forkserver.forks import answer
from opsdrill.hosts.drivers.sandbox.forkserver.server import ForkServer
from opsdrill.hosts.drivers.sandbox.messages import Failed


def main(fd: str, ids: str) -> None:
    """Serve on the socket with this file descriptor.

    Args:
        fd: its number.
        ids: how many user ids there are in the user namespace that was entered; 0 for none yet.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    _outlive_no_owner()
    owner = socket.socket(fileno=int(fd))
    try:
        who = _who(int(ids))
        os.set_inheritable(int(fd), False)
        server = ForkServer(owner, who)
    except OSError as error:
        answer(owner, Failed("error", str(error)))
        return
    # Whatever ends is reaped by the kernel, orphans of a killed fork included; forks that wait for
    # a child undo this.
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # Each host takes a few descriptors; what runs in it gets limits of its own.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    _outlive_no_owner()  # becoming root undid it
    confine.go_first()
    confine.hide("hosts")
    gc.collect()
    gc.freeze()
    server.serve()


def _outlive_no_owner() -> None:
    """Wake up when OpsDrill dies, also where somebody stopped us: its hosts end with it."""
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGCONT)


def _who(ids: int) -> identity.Identity:
    if ids:
        return identity.Identity(False, ids)
    who = identity.become_root()
    if not who.real_root:
        # The memory of a process belongs to the user namespace it was loaded in. Only when loaded
        # anew, in ours, may we enter hosts whose first process lets nobody look into it.
        arguments = list(sys.orig_argv)
        arguments[arguments.index("0")] = str(who.ids)
        os.execve(arguments[0], arguments, {})  # noqa: S606
    return who
