"""Sessions: a program on a host that talks while it runs, as over an SSH connection.

Commands of setup and grading are no sessions: `Host.run` asks and gets an answer. A session is for
whoever works on the host: bytes go in and out as they come, with or without a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

Stream = Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True)
class Terminal:
    """The size and kind of the terminal that a program is to have."""

    kind: str = "xterm"
    columns: int = 80
    rows: int = 24


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """What is to be started.

    Args:
        command: shell text, for a shell as of `Host.run`; None: a login shell, bash if the host has
            it, else sh, which is interactive where it has a terminal.
        user: a user of the host.
        terminal: None: pipes, standard output and error apart.
        environment: added to what a command gets, in place of what it has of that name.
        files: instead of a command, whatever speaks SFTP (version 3) over standard input and
            output for the host's files, as that user.
    """

    command: str | None = None
    user: str = "root"
    terminal: Terminal | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    files: bool = False


def wrong_request(request: SessionRequest) -> str | None:
    """Why no host can do what is asked for; None: it can."""
    if request.command is not None and "\0" in request.command:
        return "the command has a NUL character, which is no text"
    kind = request.terminal.kind if request.terminal is not None else ""
    for name, value in (*request.environment.items(), ("TERM", kind)):
        if not _NAME.fullmatch(name) or "\0" in value:
            return f"{name!r} cannot be set in an environment"
    if not request.user or request.user.startswith("-") or _NO_USER.search(request.user):
        return f"{request.user!r} is no name of a user"
    return None


def variables(request: SessionRequest) -> dict[str, str]:
    """What a session's environment has beside, or in place of, what a command gets."""
    terminal = {} if request.terminal is None else {"TERM": request.terminal.kind}
    return {**terminal, **request.environment}


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NO_USER = re.compile(r"[:/\0\n]")


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """How a session ended: with an exit status, by a signal (`TERM`), or with neither.

    `reason` says why there is neither: the host does not answer, or what became of it is not known.
    """

    exit_code: int | None = None
    signal: str | None = None
    reason: str | None = None


class Session(Protocol):
    """A program under way on a host.

    Reading waits until there is something; whoever does not read holds the program up, as a full
    pipe does. One reader for each stream, one writer.
    """

    async def read(self, stream: Stream, size: int = 65536) -> bytes:
        """What it wrote next, at most `size` bytes; empty at the end of that stream.

        With a terminal everything is on `stdout`.
        """

    async def write(self, data: bytes) -> None:
        """Give it bytes, waiting until there is room. One that is over takes them and is silent."""

    async def write_eof(self) -> None:
        """There is no more for it to read; a terminal gets its end-of-file character.

        Repeatable without a terminal.
        """

    async def resize(self, columns: int, rows: int) -> None:
        """Its terminal has another size now; without a terminal nothing happens."""

    async def signal(self, name: str) -> None:
        """Send a signal, by its name without `SIG`, to its process group, or to the one in its
        terminal's foreground; an unknown one does nothing."""

    async def kill(self) -> int | None:
        """Kill the program with everything it started, `setsid` and double forks included.

        Returns how many processes are left; None where nobody can tell. One that is over leaves
        what it left in the background alone. Never raises.
        """

    async def wait(self) -> SessionEnd:
        """How it ended. It ends when its own process does, whatever background processes hold."""

    async def close(self) -> None:
        """Hang up: what is still connected to it gets SIGHUP, then the session is over.

        What went into the background of its own accord goes on, for the life of the host.
        Repeatable, never raises.
        """
