"""A host is made: a new process in new namespaces that builds its tree and then only waits.

It is process 1 of the host. Orphans are reaped by the kernel, for it ignores their end. It lives
until it is killed or the pipe that only the fork server holds ends.
"""

# ruff: noqa: PTH123
from __future__ import annotations

import fcntl
import os
import signal
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from opsdrill.hosts.drivers.sandbox.forkserver import confine, kernel, skeleton, tree
from opsdrill.hosts.drivers.sandbox.forkserver.cgroups import Groups
from opsdrill.hosts.drivers.sandbox.forkserver.identity import Identity
from opsdrill.hosts.drivers.sandbox.forkserver.spawner import Spawner
from opsdrill.hosts.drivers.sandbox.messages import Done, Failed, MakeHost, send

_NAMESPACES = (
    kernel.CLONE_NEWPID
    | kernel.CLONE_NEWNS
    | kernel.CLONE_NEWNET
    | kernel.CLONE_NEWUTS
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWCGROUP
)
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1
# Written before the host's own user namespace exists, in which nobody may.
_KERNEL_SETTINGS = (
    ("sys/net/ipv4/ip_unprivileged_port_start", b"0"),
    ("sys/net/ipv4/ping_group_range", b"0 %d"),
)
# What watches files is counted for each user: a host gets a part of what the machine's has.
_WATCHING = {
    "user/max_inotify_instances": "fs/inotify/max_user_instances",
    "user/max_inotify_watches": "fs/inotify/max_user_watches",
    "user/max_fanotify_groups": "fs/fanotify/max_user_groups",
    "user/max_fanotify_marks": "fs/fanotify/max_user_marks",
}
_WATCHING_SHARE = 8


@dataclass(slots=True)
class Newborn:
    """A host as the fork server knows it.

    Attributes:
        pid: its first process, seen from here.
        pidfd: the same, safe from reuse.
        life: end of the pipe whose closing ends the host.
        talk: where the newborn asks for its user map; closed afterwards.
        groups: its control groups.
        spawner: forks its commands; None where there are no control groups.
        files: its file system without anything mounted over it; -1 until the host has built it.
    """

    request: MakeHost
    pid: int
    pidfd: int
    life: int
    talk: socket.socket | None
    groups: Groups
    spawner: Spawner | None
    files: int = -1
    alive: bool = True


def make(
    request: MakeHost,
    reply: socket.socket,
    entries: Sequence[skeleton.Entry],
    identity: Identity,
    spawner: Spawner | None,
) -> Newborn:
    """Start a host. The new process itself answers `Done` or `Failed` on `reply`.

    Raises:
        OSError: this machine refuses the namespaces.
    """
    life, life_end = os.pipe()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        pid, pidfd = kernel.clone(_NAMESPACES)
        if pid == 0:
            _be_the_host(request, reply, talk=theirs, life=life, entries=entries, identity=identity)
    except OSError:
        os.close(life_end)
        ours.close()
        raise
    finally:
        os.close(life)
        theirs.close()
    groups = spawner.groups if spawner is not None else Groups()
    return Newborn(request, pid, pidfd, life_end, ours, groups, spawner)


def give_user_map(newborn: Newborn, identity: Identity, files: int) -> None:
    """The newborn has built its tree and entered a user namespace: say who is who in it."""
    newborn.files = files
    for kind in ("uid_map", "gid_map"):
        with open(f"/proc/{newborn.pid}/{kind}", "wb", buffering=0) as target:
            target.write(identity.map)


def _be_the_host(
    request: MakeHost,
    reply: socket.socket,
    *,
    talk: socket.socket,
    life: int,
    entries: Sequence[skeleton.Entry],
    identity: Identity,
) -> NoReturn:
    step = "start"
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        kernel.close_all_but((0, 1, 2, reply.fileno(), talk.fileno(), life))
        os.umask(0o022)
        step = "build the tree"
        named = skeleton.named(request.name, request.addresses)
        whole = tree.build([*entries, *named], request.size, own_programs=identity.real_root)
        step = "settings"
        _settings(request, identity)
        step = "seal"
        settings = os.open("proc/sys", os.O_RDONLY | os.O_DIRECTORY)
        tree.seal()
        kernel.sethostname(request.name)
        _loopback_up()
        step = "user namespace"
        kernel.unshare(kernel.CLONE_NEWUSER)
        _get_user_map(talk, whole)
        _bound_users(settings)
        step = "confine"
        confine.drop_privileges()
        kernel.keep_capabilities(())
        confine.hide("init")
        kernel.close_all_but((0, 1, 2, reply.fileno(), life))
        send(reply, Done())
        kernel.close_all_but((0, 1, 2, life))
        while os.read(life, 1):
            pass
    except BaseException as error:
        _last_words(reply, f"{step}: {error}")
    finally:
        os._exit(0)


def _settings(request: MakeHost, identity: Identity) -> None:
    pages = request.size // os.sysconf("SC_PAGE_SIZE")
    settings = [*_KERNEL_SETTINGS, ("sys/kernel/shmall", b"%d" % pages)]
    for name, value in settings:
        filled = value % min(identity.ids - 1, 2147483646) if b"%d" in value else value
        try:
            with open(f"proc/{name}", "wb", buffering=0) as setting:
                setting.write(filled)
        except OSError:
            # A kernel without it; `ping` or port 80 then need what they need elsewhere.
            continue


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as control:
        asked = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack_from("16sH", fcntl.ioctl(control, _SIOCGIFFLAGS, asked))[1]
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))


def _get_user_map(talk: socket.socket, files: int) -> None:
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", files))]
    talk.sendmsg([b"map"], rights)
    said = talk.recv(512)
    if said != b"ok":
        raise OSError(f"no user map was given: {said.decode(errors='replace')}")


def _bound_users(settings: int) -> None:
    """Bound what the kernel counts for each user; a host's users count as this machine's, too.

    Inside another user namespace a process would have every capability over new namespaces, so
    there may be none.
    """
    _write_at(settings, "user/max_user_namespaces", 0)
    for bound, of_machine in _WATCHING.items():
        try:
            most = int(_read_at(settings, of_machine))
            _write_at(settings, bound, max(1, most // _WATCHING_SHARE))
        except OSError:
            # A kernel without it.
            continue


def _read_at(folder: int, path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY, dir_fd=folder)
    try:
        return os.read(fd, 64)
    finally:
        os.close(fd)


def _write_at(folder: int, path: str, value: int) -> None:
    fd = os.open(path, os.O_WRONLY, dir_fd=folder)
    try:
        os.write(fd, b"%d" % value)
    finally:
        os.close(fd)


def _last_words(reply: socket.socket, reason: str) -> None:
    try:
        send(reply, Failed("error", reason))
    except OSError:
        # Nobody listens any more; the closed socket says the rest.
        return
