"""What is kept of one call's output while it passes: the head and the tail of each stream."""

from __future__ import annotations

from opsdrill.hosts.session import Stream

KEPT = 128 * 1024
"""Bytes that are kept of one stream at most."""


class KeptStream:
    """The first and the last bytes of a stream.

    Args:
        kept: bytes that are kept at most.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._half = kept // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._size = 0

    def add(self, data: bytes) -> None:
        self._size += len(data)
        if (room := self._half - len(self._head)) > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data[-self._half :]
        # Cut now and then, so that small pieces do not move the tail each time.
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    def text(self) -> str:
        """What is kept, as text; where bytes are missing it says how many."""
        tail = bytes(self._tail[-self._half :]) if self._half else b""
        left_out = self._size - len(self._head) - len(tail)
        if not left_out:
            return bytes(self._head + tail).decode(errors="replace")
        head = self._head.decode(errors="replace")
        return f"{head}\n[{left_out} bytes left out]\n{tail.decode(errors='replace')}"


class KeptOutput:
    """Standard output and error of one call."""

    def __init__(self, kept: int = KEPT) -> None:
        self._streams: dict[Stream, KeptStream] = {
            "stdout": KeptStream(kept),
            "stderr": KeptStream(kept),
        }

    def add(self, stream: Stream, data: bytes) -> None:
        self._streams[stream].add(data)

    def text(self, reason: str | None = None) -> str:
        """Standard output, then standard error, then why there is no exit status."""
        parts = [kept.text() for kept in self._streams.values()]
        return "\n".join(part.rstrip("\n") for part in (*parts, reason) if part)
