"""The file system of a room: a new one in memory, and parts of this machine's, only to be read."""

# ruff: noqa: PTH101, PTH103, PTH110, PTH112, PTH114, PTH115
# ruff: noqa: PTH120, PTH123, PTH211

from __future__ import annotations

import os
from collections.abc import Iterator

from opsdrill.agents.isolation.room import Room
from opsdrill.hosts.drivers.sandbox.forkserver import kernel

SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/nix/store",
    "/snap",
)
"""Where a machine's own programs are, and how they are set up: shown as far as it is there."""
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_INODES = 200_000
_RESOLVER = "/etc/resolv.conf"
_USERS = "/etc/passwd"


def build(room: Room) -> None:
    """Make this process's root the room's; its mount and process namespaces are its own by now.

    Raises:
        OSError: this machine refuses it.
    """
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    # What is read of the machine is read before its root is gone.
    resolver, users = _read(_RESOLVER), _read(_USERS)
    top = next(path for path in ("/sys", "/mnt", "/media", "/srv") if os.path.isdir(path))
    flags = kernel.MS_NOSUID | kernel.MS_NODEV
    options = f"size={room.size},nr_inodes={_INODES},mode=0755"
    kernel.mount("tmpfs", top, "tmpfs", flags, options)
    os.chdir(top)
    _show_and_hide(room)
    _machine()
    for path in ("tmp", "var/tmp", "dev/shm"):
        os.makedirs(path, exist_ok=True)
        os.chmod(path, 0o1777)  # noqa: S103 - as on any machine
    _settle_users(room, users)
    _settle_resolver(resolver)
    kernel.pivot_root_here()
    furnish(room)


def furnish(room: Room) -> None:
    """Its home, its working folder, and its files."""
    for path in (room.home, room.work):
        os.makedirs(path, exist_ok=True)
        os.chmod(path, 0o700)
        _give(path, room)
    for path in room.shown:
        _give_folders(path, room)
    for path, content in room.files.items():
        _write(path, content, 0o600, room)
        _give(path, room)
    for path, content in room.programs.items():
        _write(path, content, 0o755, room)


def _write(path: str, content: str, mode: int, room: Room) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    _give_folders(path, room)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, mode)
    with os.fdopen(fd, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(content)
    os.chmod(path, mode)


def _give_folders(path: str, room: Room) -> None:
    """The folders between its home and a path are the program's own."""
    while (path := os.path.dirname(path)).startswith(room.home + "/"):
        _give(path, room)


def _give(path: str, room: Room) -> None:
    if os.getuid() != room.uid:
        os.chown(path, room.uid, room.gid)


def _show_and_hide(room: Room) -> None:
    """What is shown and hidden, the outer ones first: the innermost that says something holds."""
    hidden = set(room.hidden)
    covered: list[str] = []
    every = dict.fromkeys((*SYSTEM, *room.shown, *room.hidden))
    for path in sorted(every, key=lambda path: (path.count("/"), path)):
        inside = path.lstrip("/")
        if path in hidden:
            if _cover(inside):
                covered.append(inside)
        else:
            _show(path, inside)
    for inside in covered:
        kernel.forbid_writing(inside)


def _show(path: str, inside: str) -> None:
    if not os.path.lexists(path) or _same(path, inside):
        return
    os.makedirs(os.path.dirname(inside) or ".", exist_ok=True)
    if os.path.islink(path):
        if not os.path.lexists(inside):
            os.symlink(os.readlink(path), inside)
        return
    if os.path.isdir(path):
        os.makedirs(inside, exist_ok=True)
    elif not os.path.exists(inside):
        open(inside, "xb").close()
    kernel.show_tree(path, inside)


def _same(path: str, inside: str) -> bool:
    try:
        return os.path.samestat(os.lstat(path), os.lstat(inside))
    except OSError:
        return False


def _cover(inside: str) -> bool:
    """Whether there was something to cover, which nobody can look behind now."""
    if not os.path.exists(inside):
        return False
    if os.path.isdir(inside):
        kernel.mount("tmpfs", inside, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=1m")
        return True
    kernel.mount("/dev/null", inside, None, kernel.MS_BIND)
    return False


def _machine() -> None:
    """Devices and the room's own processes."""
    os.makedirs("proc", exist_ok=True)
    kernel.mount("proc", "proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
    os.makedirs("dev/pts", exist_ok=True)
    for name in _DEVICES:
        open(f"dev/{name}", "xb").close()
        kernel.mount(f"/dev/{name}", f"dev/{name}", None, kernel.MS_BIND)
    kernel.mount(
        "devpts",
        "dev/pts",
        "devpts",
        kernel.MS_NOSUID | kernel.MS_NOEXEC,
        "newinstance,ptmxmode=0666,mode=620",
    )
    os.symlink("pts/ptmx", "dev/ptmx")
    for name, target in _streams():
        os.symlink(target, f"dev/{name}")


def _streams() -> Iterator[tuple[str, str]]:
    yield "fd", "/proc/self/fd"
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        yield name, f"/proc/self/fd/{number}"


def _settle_users(room: Room, users: str) -> None:
    """The program's user, with the room's home: OpenSSH asks for no other."""
    others = [
        line
        for line in users.splitlines()
        if line.count(":") == 6
        and line.split(":")[0] != room.user
        and line.split(":")[2] != str(room.uid)
    ]
    shell = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
    own = f"{room.user}:x:{room.uid}:{room.gid}::{room.home}:{shell}"
    os.makedirs(room.own.lstrip("/"), exist_ok=True)
    path = f"{room.own.lstrip('/')}/passwd"
    with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write("\n".join([own, *others, ""]))
    os.chmod(path, 0o644)
    if os.path.exists(_USERS.lstrip("/")):
        kernel.show_tree(path, _USERS.lstrip("/"))


def _settle_resolver(resolver: str) -> None:
    """Who is asked for the names of machines, where only a link to that lies in /etc."""
    inside = _RESOLVER.lstrip("/")
    if os.path.islink(inside) and not os.path.exists(inside):
        target = os.path.realpath(_RESOLVER).lstrip("/")
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(resolver)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""
