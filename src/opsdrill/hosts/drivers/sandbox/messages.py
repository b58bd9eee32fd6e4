"""What OpsDrill and the fork server say to each other: small JSON texts and file descriptors.

One message is one packet of a `SOCK_SEQPACKET` socket. Whatever may be large (a command's text, a
file, a snapshot) travels as a file in memory beside it. Standard library only.
"""

from __future__ import annotations

import array
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

PACKET = 60_000
"""Bytes that one message may have."""
_FDS = 8


@dataclass(frozen=True, slots=True)
class MakeHost:
    """Make a host. With it: the reply socket.

    Args:
        host: its id, told apart from all others of this fork server.
        name: its host name.
        addresses: name -> address of all hosts of the run, itself included; empty for one alone.
        size: bytes that its files may take.
        processes: how many processes may live in it.
        memory: bytes of memory it may use, where the kernel lets that be bounded; 0 for no bound.
    """

    host: str
    name: str
    addresses: dict[str, str]
    size: int
    processes: int
    memory: int


@dataclass(frozen=True, slots=True)
class Connect:
    """Join hosts in one network. With it: the reply socket.

    Args:
        run: id of the network.
        hosts: host id -> address.
    """

    run: str
    hosts: dict[str, str]


@dataclass(frozen=True, slots=True)
class RunCommand:
    """Run a command. With it: reply socket, its text, standard output, standard error."""

    host: str
    user: str
    timeout: float


@dataclass(frozen=True, slots=True)
class OpenSession:
    """Start a program that talks. With it: reply socket, the command's text, and where there is no
    terminal standard input, output and error.

    Args:
        host: its id.
        user: a user of it.
        kind: `command` (the text), `login` (an interactive shell) or `files` (SFTP).
        variables: environment beside what a command gets.
        terminal: columns and rows; None: there is none.
    """

    host: str
    user: str
    kind: str
    variables: dict[str, str]
    terminal: list[int] | None = None


@dataclass(frozen=True, slots=True)
class PutFile:
    """Write a file. With it: reply socket, its content."""

    host: str
    path: str
    mode: int | None
    owner: str | None


@dataclass(frozen=True, slots=True)
class GetFile:
    """Read a file. With it: reply socket, an empty file in memory to fill."""

    host: str
    path: str
    limit: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """List a host's files. With it: reply socket, an empty file in memory to fill."""

    host: str


@dataclass(frozen=True, slots=True)
class Release:
    """End hosts and, if named, their network. With it: the reply socket."""

    hosts: list[str]
    run: str | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """To a running command or a session: kill it and everything it started."""


@dataclass(frozen=True, slots=True)
class Signal:
    """To a session: pass on the signal with this number. With it: its terminal, if it has one."""

    number: int


@dataclass(frozen=True, slots=True)
class Begun:
    """The session is under way. With it: its terminal, if it has one."""


@dataclass(frozen=True, slots=True)
class Over:
    """The session's process ended, with a status or by a signal.

    Args:
        left: processes of it that could not be killed; None: nobody asked for that.
    """

    exit_code: int | None = None
    signal: int | None = None
    left: int | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """What was asked was done; `notes` are for `HostFacts.limits`."""

    notes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ended:
    """The command's shell ended with this status, 128+n for signal n."""

    exit_code: int
    shell: str


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The command was killed at its time limit with everything it started.

    `left` counts processes that could not be killed within some seconds.
    """

    left: int = 0
    shell: str | None = None


@dataclass(frozen=True, slots=True)
class Failed:
    """What was asked could not be done.

    `kind` is `gone` (the host is no more), `shell` (no shell can be started), `user` (there is no
    such user), `missing` (there is no such file) or `error`.
    """

    kind: str
    reason: str


Message = (
    MakeHost | Connect | RunCommand | OpenSession | PutFile | GetFile | Snapshot | Release | Stop
    | Signal | Begun | Over | Done | Ended | TimedOut | Failed
)  # fmt: skip
_KINDS: dict[str, type[Message]] = {
    kind.__name__: kind
    for kind in (
        MakeHost, Connect, RunCommand, OpenSession, PutFile, GetFile, Snapshot, Release, Stop,
        Signal, Begun, Over, Done, Ended, TimedOut, Failed,
    )
}  # fmt: skip


def encode(message: Message) -> bytes:
    return json.dumps([type(message).__name__, asdict(message)]).encode()


def decode(packet: bytes) -> Message:
    name, fields = json.loads(packet)
    return _KINDS[name](**fields)


def fits(message: Message) -> bool:
    """It is small enough to be sent."""
    return len(encode(message)) <= PACKET


def send(connection: socket.socket, message: Message, fds: tuple[int, ...] = ()) -> None:
    """Send one message.

    Raises:
        OSError: the other side is gone, or (EMSGSIZE, EAGAIN) it does not fit.
    """
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    connection.sendmsg([encode(message)], rights, socket.MSG_NOSIGNAL)


def receive(connection: socket.socket) -> tuple[Message, list[int]] | None:
    """One message and what came with it; None when the other side is gone."""
    space = socket.CMSG_SPACE(_FDS * array.array("i").itemsize)
    try:
        packet, rights, _, _ = connection.recvmsg(PACKET, space, socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:
        return None
    fds = array.array("i")
    for level, kind, data in rights:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
    if not packet:
        for fd in fds:
            os.close(fd)
        return None
    return decode(packet), list(fds)


def memory_file(content: bytes = b"") -> int:
    """A file in memory with this content, read from its start; the caller closes it."""
    fd = os.memfd_create("", os.MFD_CLOEXEC)
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


@contextmanager
def memory(content: bytes = b"") -> Iterator[int]:
    """The file descriptor of a file in memory, closed at the end."""
    fd = memory_file(content)
    try:
        yield fd
    finally:
        os.close(fd)


def read_memory_file(fd: int) -> bytes:
    """The whole content of a file in memory."""
    chunks = []
    offset = 0
    while chunk := os.pread(fd, 1 << 20, offset):
        chunks.append(chunk)
        offset += len(chunk)
    return b"".join(chunks)
