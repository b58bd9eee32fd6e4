"""A session with a fake host: it says what the script says, and hears nothing."""

from __future__ import annotations

import asyncio

from opsdrill.hosts.session import SessionEnd, Stream
from opsdrill.model.host import HostAnswer


class FakeSession:
    """A scripted command as a session (see `Session`).

    Args:
        answering: gives the scripted answer.
    """

    def __init__(self, answering: asyncio.Future[HostAnswer]) -> None:
        self._answering = answering
        self._left: dict[Stream, bytes] | None = None

    async def read(self, stream: Stream, size: int = 65536) -> bytes:
        await asyncio.wait([self._answering])
        if self._left is None:
            answer = None if self._answering.cancelled() else self._answering.result()
            self._left = {
                "stdout": answer.stdout.encode(errors="replace") if answer else b"",
                "stderr": answer.stderr.encode(errors="replace") if answer else b"",
            }
        data = self._left[stream][:size]
        self._left[stream] = self._left[stream][size:]
        return data

    async def write(self, data: bytes) -> None:
        """Nobody reads it."""

    async def write_eof(self) -> None:
        """Nobody waits for it."""

    async def resize(self, columns: int, rows: int) -> None:
        """There is no terminal."""

    async def signal(self, name: str) -> None:
        """Nothing runs that could be told."""

    async def kill(self) -> int | None:
        self._answering.cancel()
        return 0

    async def wait(self) -> SessionEnd:
        await asyncio.wait([self._answering])
        if self._answering.cancelled():
            return SessionEnd(reason="it was hung up")
        answer = self._answering.result()
        if answer.exit_code is None:
            return SessionEnd(reason=answer.reason or "it did not end")
        return SessionEnd(answer.exit_code)

    async def close(self) -> None:
        self._answering.cancel()
        await asyncio.wait([self._answering])
