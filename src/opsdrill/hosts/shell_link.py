"""What a host needs of the way to it: commands and lines of ours go out, output comes back."""

from __future__ import annotations

import asyncio
from typing import Protocol

from opsdrill.hosts.command import Account
from opsdrill.hosts.framed import End, FramedOutput
from opsdrill.hosts.session import Session, Terminal
from opsdrill.model.host import OUTPUT_LIMIT

ASK_SECONDS = 15.0
"""Seconds for what is asked on our own behalf."""
_SHORT = 300


class Tell(Protocol):
    """Sends signals to the program of a session, by their names without `SIG`."""

    async def __call__(self, *names: str) -> None: ...

    async def kill(self) -> int | None:
        """Kill it with everything it started; how many are left, None if nobody can tell."""


class NoAnswer(Exception):
    """The host does not answer, and `reason` says why.

    Attributes:
        passing: it may be over in a moment; a host that was removed does not come back.
        hint: what to do about it.
    """

    def __init__(self, reason: str, *, passing: bool = True, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.passing = passing
        self.hint = hint

    @property
    def again(self) -> bool:
        """Whether it is worth asking again now."""
        return self.passing


class Exchange(Protocol):
    """What comes back from a command or a line.

    Attributes:
        out: standard output.
        err: standard error.
        begun: set once it is at work, or never will be.
        over: set once its shell ended, or nothing more will be known.
        complete: set once all that it wrote is there, or nothing more will come.
    """

    out: FramedOutput
    err: FramedOutput
    begun: asyncio.Event
    over: asyncio.Event
    complete: asyncio.Event

    @property
    def end(self) -> End | None:
        """How it ended; None if the far side never said."""

    @property
    def killed(self) -> bool:
        """The shell that starts a command's was killed, as is known from outside of it."""

    def abandon(self) -> None:
        """Nobody waits for it any more; whoever still does is woken."""


class ShellLink(Protocol):
    """The way to one host."""

    async def start(self, account: Account, nonce: str, mark: int, text: bytes) -> Exchange:
        """Start a command.

        Cancelling the call starts none.

        Args:
            account: who runs it.
            nonce: letters and digits that no output has.
            mark: what the command and all that it starts carries.
            text: the command's.

        Raises:
            NoAnswer: says why; the command was not started.
        """

    async def talk(
        self,
        nonce: str,
        content: bytes,
        *,
        seconds: float = ASK_SECONDS,
        limit: int = OUTPUT_LIMIT,
        urgent: bool = False,
    ) -> Exchange:
        """Start a line of `hosts.command` that is ours, and wait for its end.

        Args:
            nonce: what the line was made with.
            content: standard input: the line and what comes after it.
            seconds: until which it must have ended.
            limit: bytes that are kept of each output stream.
            urgent: does not wait until others are over.

        Returns:
            An exchange whose `end` is known.

        Raises:
            NoAnswer: it did not end in time, or not as it should.
        """

    async def session(self, line: bytes, terminal: Terminal | None, tell: Tell) -> Session:
        """Start a session on the host.

        Args:
            line: text for a POSIX shell, which becomes the session's program.
            terminal: None: it has pipes.
            tell: sends signals to the program, by their names; may raise NoAnswer.

        Raises:
            NoAnswer: says why.
        """

    async def no_shell(self, exchange: Exchange) -> str | None:
        """Why nobody read the text of a command that is over, if that is certain.

        What is still on its way of the command's output is waited for.

        Raises:
            NoAnswer: it was the way to the host that failed; says why.
        """


def short(said: str) -> str:
    """One short line of what somebody said; it may be anything."""
    return "".join(char if char.isprintable() else " " for char in said)[:_SHORT].strip()
