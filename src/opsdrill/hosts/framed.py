"""The output of a shell behind a connection: what stands between the nonces of its line.

See `opsdrill.hosts.command.BOOT`. Before the first nonce comes what login scripts print, after the
second what background processes still write; neither is the command's.
"""

from __future__ import annotations

from dataclasses import dataclass

from opsdrill.model.host import OUTPUT_LIMIT

_NOISE = 4096
"""Bytes kept of what came before the first nonce."""
_LAST_LINE = 64
"""Bytes that the line after the second nonce may have."""


@dataclass(frozen=True, slots=True)
class End:
    """How a line of `hosts.command` ended.

    Attributes:
        status: the exit status, 128+n for signal n.
        shell: the name of the shell that ran; see `NO_SHELL`.
    """

    status: int
    shell: str


class FramedOutput:
    """One of the two streams: fed with chunks, keeps the command's part up to a limit.

    Args:
        nonce: what the line writes before and after.
        limit: bytes that are kept; more is counted and dropped.

    Attributes:
        started: the first nonce came: the line is at work.
        ended: the second nonce came: this stream is complete.
        total: bytes of the command so far, kept or not.
    """

    def __init__(self, nonce: str, limit: int = OUTPUT_LIMIT) -> None:
        self._nonce = nonce.encode()
        self._limit = limit
        self._held = b""
        self._kept = bytearray()
        self._noise = b""
        self._last = b""
        self._title = b""
        self.started = False
        self.ended = False
        self.total = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the stream."""
        if self.ended:
            if len(self._last) < _LAST_LINE:
                self._last += chunk[:_LAST_LINE]
            return
        data = self._held + chunk if self._held else chunk
        if not self.started:
            data = self._after_noise(data)
        if self.started:
            self._take(data)

    def close(self) -> None:
        """No more will come: what was held back as a possible nonce is output."""
        if self.started and not self.ended:
            self._keep(self._held)
        elif not self.started:
            self._noise += self._held
        self._held = b""

    @property
    def content(self) -> bytes:
        """The command's bytes, as far as they were kept."""
        return bytes(self._kept)

    @property
    def text(self) -> str:
        """The same, undecodable bytes replaced."""
        return self._kept.decode(errors="replace")

    @property
    def full_size(self) -> int | None:
        """The size of all of it where that is more than what was kept."""
        return self.total if self.total > self._limit else None

    @property
    def title(self) -> str:
        """What stands behind the first nonce, in its line."""
        return self._title.decode(errors="replace").strip()

    @property
    def noise(self) -> str:
        """What came before the first nonce."""
        return self._noise.decode(errors="replace")

    @property
    def whole(self) -> bool:
        """The line with the second nonce came, with all of it."""
        return self.ended and b"\n" in self._last

    @property
    def end(self) -> End | None:
        """What the line after the second nonce says, once it is whole; on standard error only."""
        line, found, _ = self._last.partition(b"\n")
        if not self.ended or not found:
            return None
        status, _, shell = line.decode(errors="replace").strip().partition(" ")
        if not status.isdecimal():
            return None
        # Some shells tell a signal as 256+n.
        number = int(status)
        return End(number - 128 if number > 255 else number, shell)

    def _after_noise(self, data: bytes) -> bytes:
        place = data.find(self._nonce)
        after = place + len(self._nonce)
        line_end = data.find(b"\n", after) if place >= 0 else -1
        if line_end < 0:
            cut = max(len(data) - len(self._nonce), 0) if place < 0 else place
            self._noise = (self._noise + data[:cut])[:_NOISE]
            self._held = data[cut:][: len(self._nonce) + _LAST_LINE]
            return b""
        self._noise = (self._noise + data[:place])[:_NOISE]
        self._held = b""
        self._title = data[after:line_end]
        self.started = True
        return data[line_end + 1 :]

    def _take(self, data: bytes) -> None:
        place = data.find(self._nonce)
        if place >= 0:
            self._keep(data[:place])
            self._held = b""
            self._last = data[place + len(self._nonce) :][:_LAST_LINE]
            self.ended = True
            return
        cut = len(data) - self._possible(data)
        self._keep(data[:cut])
        self._held = data[cut:]

    def _possible(self, data: bytes) -> int:
        """How many bytes at the end may be the beginning of the nonce."""
        tail = data[-len(self._nonce) + 1 :]
        place = tail.find(self._nonce[:1])
        while place >= 0:
            if self._nonce.startswith(tail[place:]):
                return len(tail) - place
            place = tail.find(self._nonce[:1], place + 1)
        return 0

    def _keep(self, data: bytes) -> None:
        self.total += len(data)
        room = self._limit - len(self._kept)
        if room > 0:
            self._kept += data[:room]
