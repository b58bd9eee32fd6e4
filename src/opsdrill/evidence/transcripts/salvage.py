"""ZIP archives that break off before their directory, given one again.

Layout: PKWARE's APPNOTE, sections 4.3.7 (the header before each file), 4.3.12 (the directory's
entry of it) and 4.3.16 (the end of the directory).
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import IO

_HEADER = struct.Struct("<4s5H3I2H")
_ENTRY = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_MOST = 65_535
"""Files that a directory without extensions can list."""
_UNSAID = (0, 0xFFFF_FFFF)
_LARGEST = 0xFFFF_FFFE
_GROWN = 100
"""How many times its packed size a file without a stated size may have."""


def directory_of(stream: IO[bytes]) -> bytes:
    """The directory that belongs behind an archive's bytes; empty where there is no file in them.

    A file that has no size, or goes past the end, is taken to go up to it: its check sum will not
    be right, so that it is known as damaged when it is read.
    """
    entries = list(_entries(stream))
    listed = b"".join(entries)
    end = stream.seek(0, io.SEEK_END)
    if not entries or end > _LARGEST:
        return b""
    count = len(entries)
    return listed + _END.pack(b"PK\x05\x06", 0, 0, count, count, len(listed), end, 0)


def _entries(stream: IO[bytes]) -> Iterator[bytes]:
    end = stream.seek(0, io.SEEK_END)
    at = 0
    for _ in range(_MOST):
        stream.seek(at)
        head = stream.read(_HEADER.size)
        if len(head) < _HEADER.size or not head.startswith(b"PK\x03\x04"):
            return
        _, needs, flags, method, time, date, crc, packed, size, named, more = _HEADER.unpack(head)
        name = stream.read(named)
        start = at + _HEADER.size + named + more
        if start > end:
            return
        if packed in _UNSAID or start + packed > end:
            packed, size = end - start, min(_LARGEST, _GROWN * (end - start))
        yield (
            _ENTRY.pack(
                b"PK\x01\x02", needs, needs, flags & ~8, method, time, date, crc, packed, size,
                len(name), 0, 0, 0, 0, 0, at,
            )
            + name
        )  # fmt: skip
        at = start + packed


class Mended(io.RawIOBase):
    """A file with more bytes behind its own.

    Args:
        stream: the file.
        behind: the bytes.
    """

    def __init__(self, stream: IO[bytes], behind: bytes) -> None:
        self._stream = stream
        self._behind = behind
        self._length = stream.seek(0, io.SEEK_END)
        self._at = 0

    def readable(self) -> bool:
        """It is there to be read."""
        return True

    def seekable(self) -> bool:
        """Any place in it can be gone to."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at}.get(
            whence, self._length + len(self._behind)
        )
        self._at = max(0, start + offset)
        return self._at

    def tell(self) -> int:
        """The place."""
        return self._at

    def read(self, size: int = -1) -> bytes:
        """The next bytes."""
        if size < 0:
            size = self._length + len(self._behind)
        found = b""
        if self._at < self._length:
            self._stream.seek(self._at)
            found = self._stream.read(min(size, self._length - self._at))
        if len(found) < size and self._at + len(found) >= self._length:
            start = self._at + len(found) - self._length
            found += self._behind[start : start + size - len(found)]
        self._at += len(found)
        return found

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._stream.close()
        super().close()
