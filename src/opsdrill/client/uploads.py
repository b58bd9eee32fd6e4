"""What is sent as it is: bytes, or a file, which is read piece by piece while it is sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

from opsdrill.errors import UsageError

Content = bytes | Path
"""Bytes, or the path of a file."""
PIECE = 256 * 1024


@dataclass(frozen=True, slots=True)
class Upload:
    """The body of a request.

    Args:
        content: what it is.
        media: its media type.
    """

    content: Content
    media: str

    def size(self) -> int:
        """In bytes. Raises UsageError for a file that cannot be read."""
        if isinstance(self.content, bytes):
            return len(self.content)
        try:
            with self.content.open("rb") as file:
                return file.seek(0, 2)
        except OSError as error:
            raise UsageError(f"{self.content} cannot be read: {error.strerror}") from None

    def pieces(self) -> Iterator[bytes]:
        if isinstance(self.content, bytes):
            yield self.content
            return
        with self.content.open("rb") as file:
            while piece := file.read(PIECE):
                yield piece

    async def later_pieces(self) -> AsyncIterator[bytes]:
        """The same; the file is read on other threads."""
        pieces = self.pieces()
        try:
            while piece := await asyncio.to_thread(next, pieces, b""):
                yield piece
        finally:
            await asyncio.to_thread(pieces.close)  # type: ignore[attr-defined]
