"""A process of its own that makes a room, or does without one, and says how far it is.

Standard input holds the room as one line of JSON and then stays open for as long as the program may
run. Lines of the report: `started`, `cannot REASON`, `refused REASON` (there is no room here),
`ended STATUS` or `stopped STATUS`, `left` (something could not be ended).
"""

from __future__ import annotations

import os
import select
import signal
from typing import NoReturn

from opsdrill.agents.isolation import mounts
from opsdrill.agents.isolation.families import adopt, end_family
from opsdrill.agents.isolation.inside import END_SECONDS, Ends, end_room, look_after
from opsdrill.agents.isolation.room import Room
from opsdrill.hosts.drivers.sandbox.forkserver import confine, kernel

_NAMESPACES = (
    kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWIPC | kernel.CLONE_NEWCGROUP
)


def main(report: str, kept: str) -> None:
    """Make the room of which standard input tells, and see its program to its end."""
    ends = Ends(0, int(report), int(kept))
    room = Room.from_json(_line())
    try:
        if room.isolated:
            _apart(room, ends)
        else:
            adopt()
            mounts.furnish(room)
            look_after(room, ends, lambda: end_family(END_SECONDS))
    except OSError as error:
        ends.say("refused", str(error))


def _line() -> bytes:
    line = bytearray()
    while not line.endswith(b"\n"):
        piece = os.read(0, 1 << 16)
        if not piece:
            raise SystemExit
        line += piece
    return bytes(line)


def _apart(room: Room, ends: Ends) -> None:
    """In namespaces of its own."""
    near, far = os.pipe()
    go, told = os.pipe()
    own_users = os.getuid() != 0
    users = kernel.CLONE_NEWUSER if own_users else 0
    pid, pidfd = kernel.clone(_NAMESPACES | users)
    if pid == 0:
        os.close(told)
        os.close(far)
        _be_first(room, Ends(near, ends.report, ends.kept), go)
    os.close(near)
    os.close(go)
    os.close(ends.kept)
    try:
        if own_users:
            _name_users(pid, room)
        os.write(told, b"+")
        select.select([pidfd, ends.life], [], [])
        os.close(far)
        if not select.select([pidfd], [], [], 6 * END_SECONDS)[0]:
            ends.say("left")
    finally:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        os.waitpid(pid, 0)


def _name_users(pid: int, room: Room) -> None:
    """Who is who in the room: its user is this one, and there is no other."""
    for name, line in (
        ("setgroups", "deny"),
        ("uid_map", f"{room.uid} {os.getuid()} 1"),
        ("gid_map", f"{room.gid} {os.getgid()} 1"),
    ):
        with open(f"/proc/{pid}/{name}", "w", encoding="ascii") as target:  # noqa: PTH123
            target.write(line)


def _be_first(room: Room, ends: Ends, go: int) -> NoReturn:
    try:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        if not os.read(go, 1):
            os._exit(1)
        # Standard input is what whoever made it lives by; here it is another's.
        empty = os.open("/dev/null", os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        os.umask(0o022)
        mounts.build(room)
        # Nobody in there may look into this process, which knows more than they.
        confine.hide("init")
        look_after(room, ends, end_room)
    except BaseException as error:
        ends.say("refused", f"{type(error).__name__}: {error}")
    finally:
        os._exit(0)
