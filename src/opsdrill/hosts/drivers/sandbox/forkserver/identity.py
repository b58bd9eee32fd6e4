"""Who we are: root, or an ordinary user who is root in a user namespace of his own.

After `become_root` the rest is the same for both.
"""

# ruff: noqa: PTH123
from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass

from opsdrill.hosts.drivers.sandbox.forkserver import kernel

_EVERY_ID = 4294967295
_RANGE = 65536
_CAP_SYS_ADMIN = 21


@dataclass(frozen=True, slots=True)
class Identity:
    """What the fork server may do.

    Attributes:
        real_root: this machine's root: overlays over `/usr`, device nodes, control groups.
        ids: how many user and group ids, from 0, exist inside; 1 means root alone.
    """

    real_root: bool
    ids: int

    @property
    def map(self) -> bytes:
        """The map of a host's user namespace: the same ids as ours, in the same pieces."""
        if self.real_root or self.ids == 1:
            return b"0 0 %d\n" % self.ids
        return b"0 0 1\n1 1 %d\n" % (self.ids - 1)


def become_root() -> Identity:
    """Enter a user namespace where we are root, unless we are root already.

    Raises:
        OSError: user namespaces are forbidden here.
    """
    if os.geteuid() == 0 and _maps_everything() and _administers():
        return Identity(True, _EVERY_ID)
    user, group = os.geteuid(), os.getegid()
    ranges = _sub_range("/etc/subuid", user), _sub_range("/etc/subgid", user)
    helpers = shutil.which("newuidmap", path=_PATH), shutil.which("newgidmap", path=_PATH)
    if all(ranges) and all(helpers):
        if _with_range(user, group, ranges, helpers):
            return Identity(False, _RANGE)
    else:
        kernel.unshare(kernel.CLONE_NEWUSER)
    _write("/proc/self/setgroups", b"deny")
    _write("/proc/self/uid_map", b"0 %d 1\n" % user)
    _write("/proc/self/gid_map", b"0 %d 1\n" % group)
    return Identity(False, 1)


_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def _maps_everything() -> bool:
    """False for the root of somebody else's user namespace, such as a rootless container's."""
    with open("/proc/self/uid_map", "rb") as lines:
        return [line.split() for line in lines] == [[b"0", b"0", b"%d" % _EVERY_ID]]


def _administers() -> bool:
    """False for the root of a container that may not mount anything."""
    with open("/proc/self/status", "rb") as lines:
        effective = next(line.split()[1] for line in lines if line.startswith(b"CapEff:"))
    return bool(int(effective, 16) >> _CAP_SYS_ADMIN & 1)


def _sub_range(path: str, user: int) -> int:
    """The first id of a range of 65,535 that the file gives this user; 0 if there is none."""
    names = {str(user), _name_of(user)}
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                owner, _, rest = line.strip().partition(":")
                first, _, count = rest.partition(":")
                if owner in names and first.isdigit() and count.isdigit() and int(count) >= _RANGE:
                    return int(first)
    except OSError:
        return 0
    return 0


def _name_of(user: int) -> str:
    with open("/etc/passwd", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            fields = line.split(":")
            if len(fields) > 2 and fields[2] == str(user):
                return fields[0]
    return ""


def _with_range(
    user: int, group: int, ranges: tuple[int, int], helpers: tuple[str | None, str | None]
) -> bool:
    """Enter a namespace with a whole range of ids, which only the set-user-id helpers can map.

    They must be started from outside: a child goes first and waits for the parent's namespace.
    """
    entered, tell = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(tell)
        os.read(entered, 1)
        worked = True
        for program, own, first in zip(helpers, (user, group), ranges, strict=True):
            command = [str(program), str(parent), "0", str(own), "1", "1", str(first), "65535"]
            worked = worked and subprocess.run(command, check=False, env={}).returncode == 0
        os._exit(0 if worked else 1)
    os.close(entered)
    kernel.unshare(kernel.CLONE_NEWUSER)
    os.close(tell)
    # Too late to go back: where this fails, the namespace can still be given the single id.
    return os.waitpid(child, 0)[1] == 0


def _write(path: str, content: bytes) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, content)
    finally:
        os.close(fd)
