"""Sessions: a program on a host that talks while it runs, as over an SSH connection.

Commands of setup and grading are no sessions: `Host.run` asks and gets an answer. A session is for
whoever works on the host: bytes go in and out as they come, with or without a terminal.
"""

from __future__ import annotations

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
        command: shell text, for a shell as of `Host.run`; None: an interactive login shell.
        user: a user of the host.
        terminal: None: pipes, standard output and error apart.
        environment: added to what a command gets.
        files: instead of a command, whatever speaks SFTP (version 3) over standard input and
            output for the host's files, as that user.
    """

    command: str | None = None
    user: str = "root"
    terminal: Terminal | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    files: bool = False


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
        """There is no more for it to read. Repeatable."""

    async def resize(self, columns: int, rows: int) -> None:
        """Its terminal has another size now; without a terminal nothing happens."""

    async def signal(self, name: str) -> None:
        """Send it a signal by its name without `SIG`; an unknown one does nothing."""

    async def wait(self) -> SessionEnd:
        """How it ended. It ends when its own process does, whatever background processes hold."""

    async def close(self) -> None:
        """Hang up: what is still connected to it gets SIGHUP, then the session is over.

        What went into the background of its own accord goes on, for the life of the host.
        Repeatable, never raises.
        """
