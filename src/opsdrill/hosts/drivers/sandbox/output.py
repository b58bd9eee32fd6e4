"""One output stream of a command: kept up to a limit, read and counted beyond it."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios

from opsdrill.model.host import OUTPUT_LIMIT

_CHUNK = 1 << 18


class Output:
    """The reading end of a pipe, drained while the command runs.

    Attributes:
        writer: the end that the command writes to; closed by `start`.
        total: bytes seen so far.
    """

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._reader, False)
        self._kept = bytearray()
        self._open = True
        self.total = 0

    def start(self) -> None:
        """Read whatever comes, from the event loop."""
        asyncio.get_running_loop().add_reader(self._reader, self._read)

    def close_writer(self) -> None:
        if self.writer >= 0:
            os.close(self.writer)
            self.writer = -1

    def finish(self) -> int | None:
        """The command is over: take what it left in the pipe.

        Returns:
            The pipe, where somebody can still write to it; the caller closes it.
        """
        if self._open:
            asyncio.get_running_loop().remove_reader(self._reader)
            # What the command wrote and we did not read is in there now; anything later is not its.
            waiting = fcntl.ioctl(self._reader, termios.FIONREAD, b"\0" * 4)
            self._take(struct.unpack("i", waiting)[0])
        return self._reader if self._open else None

    def close(self) -> None:
        """Let go of the pipe. Repeatable."""
        self.close_writer()
        if self._reader >= 0:
            if self._open:
                asyncio.get_running_loop().remove_reader(self._reader)
            os.close(self._reader)
            self._reader = -1
            self._open = False

    @property
    def text(self) -> str:
        """What was kept, undecodable bytes replaced."""
        return self._kept.decode(errors="replace")

    @property
    def full_size(self) -> int | None:
        """The size of all of it where that is more than what was kept."""
        return self.total if self.total > OUTPUT_LIMIT else None

    def _read(self) -> None:
        try:
            chunk = os.read(self._reader, _CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            self._end()
        self._keep(chunk)

    def _take(self, size: int) -> None:
        # Somebody on the host may have opened the pipe too, through `/proc`, and take from it.
        try:
            while size > 0 and (chunk := os.read(self._reader, size)):
                self._keep(chunk)
                size -= len(chunk)
            if os.read(self._reader, 1) == b"":
                self._open = False
        except BlockingIOError:
            return

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._reader)
        self._open = False

    def _keep(self, chunk: bytes) -> None:
        self.total += len(chunk)
        room = OUTPUT_LIMIT - len(self._kept)
        if room > 0:
            self._kept += chunk[:room]
