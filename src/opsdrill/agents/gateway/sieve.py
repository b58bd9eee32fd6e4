"""What is typed into a shell is held against what is forbidden, line by line, before it goes on."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from opsdrill.agents.gateway.typed_lines import LINE, Line, TypedLines

_PIECE = re.compile(rb"[^\r\n]*[\r\n]|[^\r\n]+")
_CLEARED = b"\x05\x15\r"
"""Keys in place of the one that would have run a line: to its end, delete it, an empty one."""
_INTERRUPTED = b"\x03"
"""The key that ends a command of several lines which is not whole yet."""
_TOO_LONG = f"a line of more than {LINE} bytes cannot be held against what is forbidden"


class Sieve:
    """Bytes on their way to a shell.

    Args:
        typed: makes lines of them.
        terminal: the shell has one, so that a line is there before it is run.
        refuses: why a command may not run; None: it may.
        enter: takes a line that is about to go on.
        refused: takes one that does not, and why.
    """

    def __init__(
        self,
        typed: TypedLines,
        *,
        terminal: bool,
        refuses: Callable[[str], Awaitable[str | None]],
        enter: Callable[[Line], None],
        refused: Callable[[Line, str], Awaitable[None]],
    ) -> None:
        self._typed = typed
        self._terminal = terminal
        self._refuses = refuses
        self._enter = enter
        self._refused = refused
        self._held = bytearray()
        self._too_long = False

    async def sift(self, data: bytes) -> bytes:
        """What of these bytes goes on now."""
        out = bytearray()
        for piece in _PIECE.findall(data):
            lines = list(self._typed.feed(piece))
            out += await (self._key(piece, lines) if self._terminal else self._line(piece, lines))
        return bytes(out)

    async def rest(self) -> bytes:
        """What of the last line goes on, which nothing ended."""
        rest = self._typed.rest()
        return b"" if self._terminal else await self._whole([] if rest is None else [rest])

    async def _key(self, piece: bytes, lines: list[Line]) -> bytes:
        if not await self._forbidden(lines):
            return piece
        return piece[:-1] + (_INTERRUPTED if lines[0].begun else _CLEARED)

    async def _line(self, piece: bytes, lines: list[Line]) -> bytes:
        """A shell without a terminal gets whole lines."""
        self._held += piece
        if len(self._held) > LINE:
            self._held.clear()
            self._too_long = True
        return await self._whole(lines) if piece.endswith(b"\n") else b""

    async def _whole(self, lines: list[Line]) -> bytes:
        held, self._held = bytes(self._held), bytearray()
        too_long, self._too_long = self._too_long, False
        return b"" if await self._forbidden(lines, too_long=too_long) else held

    async def _forbidden(self, lines: list[Line], *, too_long: bool = False) -> bool:
        """Whether these, of which there is one at most, may not go on; either way that is told."""
        for line in lines:
            why = _TOO_LONG if too_long else await self._why(line)
            if why is not None:
                self._typed.withdraw(line)
                await self._refused(line, why)
                return True
            self._enter(line)
        return False

    async def _why(self, line: Line) -> str | None:
        joined = line.command.replace("\\\n", "")
        for text in dict.fromkeys((line.command, joined)):
            if (why := await self._refuses(text)) is not None:
                return why
        return None
