"""What comes back over a connection from one line of `hosts.command`, or from one command."""

from __future__ import annotations

import asyncio
from typing import Protocol

from opsdrill.hosts.command import NO_SHELL
from opsdrill.hosts.framed import End, FramedOutput
from opsdrill.hosts.shell_link import short


class Carrier(Protocol):
    """The channel that an exchange came over."""

    def abandon(self) -> None:
        """Close it."""

    def finished(self, exchange: Exchange) -> None:
        """Nothing more of the exchange comes; called once."""

    async def caught_up(self) -> bool:
        """Wait until all came that had been written on the far side; whether that is certain."""


class Exchange:
    """What comes back from a line, which says itself when it is over.

    Args:
        nonce: what the line was made with.
        limit: bytes that are kept of each stream.

    Attributes:
        carrier: the channel that it comes over, once there is one.
        status: how the far shell ended, 128+n for signal n, where the SSH server told that.
    """

    killed = False

    def __init__(self, nonce: str, limit: int) -> None:
        self.out = FramedOutput(nonce, limit)
        self.err = FramedOutput(nonce, limit)
        self.begun = asyncio.Event()
        self.over = asyncio.Event()
        self.complete = asyncio.Event()
        self.carrier: Carrier | None = None
        self.status: int | None = None
        self._whole = False

    @property
    def end(self) -> End | None:
        """How it ended; None if the far side never said."""
        return self.err.end if self.out.ended else None

    @property
    def no_shell(self) -> str | None:
        """Why the line was never at work or nobody read what came after it, if that is certain."""
        unread = self.end is not None and self.end.shell == NO_SHELL
        if not unread and (self.err.started or not self._whole):
            return None
        return self._why()

    def abandon(self) -> None:
        """Nobody waits for it any more; whoever still does is woken."""
        if not self.complete.is_set() and self.carrier is not None:
            self.carrier.abandon()
        self.finish()

    def feed(self, data: bytes, *, error: bool) -> None:
        """Take what came, on standard error or on standard output."""
        (self.err if error else self.out).feed(data)
        if self.err.started:
            self.begun.set()
        if self.out.whole and self.err.end is not None:
            self.finish()

    def tell(self, status: int | None) -> None:
        """The far shell ended; None: how is not known. What it wrote may still be on its way."""
        self.status = status
        self.begun.set()
        self.over.set()

    def finish(self, *, whole: bool = False) -> None:
        """Nothing that comes now is of interest.

        Args:
            whole: it is certain that the far side wrote nothing else.
        """
        if self.complete.is_set():
            return
        self._whole = whole
        self.out.close()
        self.err.close()
        for event in (self.begun, self.over, self.complete):
            event.set()
        if self.carrier is not None:
            self.carrier.finished(self)

    def _why(self) -> str:
        said = short((self.err.text or self.err.noise).strip().rpartition("\n")[2])
        return f"no shell can be started ({said})" if said else "no shell can be started"


class CommandExchange(Exchange):
    """What comes back from a command that has a channel of its own.

    It is over when its shell ended, which the SSH server tells, and complete when all it wrote
    came: usually when the channel closes.
    """

    @property
    def end(self) -> End | None:
        if self.status is None or not self.err.started or not self._whole:
            return None
        return End(self.status, self.err.title)
