"""A program on a sandbox host that talks while it runs (see `opsdrill.hosts.session`)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress

from opsdrill.hosts.drivers.sandbox.link import Exchange
from opsdrill.hosts.drivers.sandbox.messages import Failed, Over, Signal, Stop
from opsdrill.hosts.pipes import Inlet, Outlet, end_of_file, resize
from opsdrill.hosts.session import SessionEnd, Stream

_HANG_UP_SECONDS = 1.0
"""Seconds that a program gets to end after it was hung up; then it goes on alone."""

_ALONE = "it was hung up, and goes on alone"


class SandboxSession:
    """A session under way (see `Session`).

    Args:
        exchange: with the process that watches it.
        pipes: our ends of its standard input, output and error, which do not block; or one, our
            side of its terminal.
        drop: reads on, where background processes still write.
    """

    def __init__(self, exchange: Exchange, pipes: list[int], drop: Callable[[int], None]) -> None:
        self._exchange = exchange
        self._drop = drop
        self._terminal = pipes[0] if len(pipes) == 1 else None
        if self._terminal is not None:
            self._input = Inlet(os.dup(self._terminal))
            self._outputs = {"stdout": Outlet(self._terminal, terminal=True)}
        else:
            self._input = Inlet(pipes[0])
            self._outputs = {"stdout": Outlet(pipes[1]), "stderr": Outlet(pipes[2])}
        self._end: SessionEnd | None = None
        self._left: int | None = None
        self._over = asyncio.Event()
        self._closed = False
        self._watching = asyncio.ensure_future(self._watch())

    async def read(self, stream: Stream, size: int = 65536) -> bytes:
        output = self._outputs.get(stream)
        return b"" if output is None else await output.read(size)

    async def write(self, data: bytes) -> None:
        await self._input.write(data)

    async def write_eof(self) -> None:
        if self._terminal is None:
            self._input.release()
        elif not self._closed:
            await self._input.write(end_of_file(self._terminal))

    async def resize(self, columns: int, rows: int) -> None:
        if self._terminal is not None and not self._closed:
            resize(self._terminal, columns, rows)

    async def signal(self, name: str) -> None:
        number = signal.Signals.__members__.get(f"SIG{name}")
        if number is not None and not self._closed and not self._over.is_set():
            fds = () if self._terminal is None else (self._terminal,)
            self._exchange.send(Signal(number), fds)

    async def kill(self) -> int | None:
        if self._closed or self._over.is_set():
            return 0
        self._exchange.send(Stop())
        await self._over.wait()
        return self._left

    async def wait(self) -> SessionEnd:
        await self._over.wait()
        assert self._end is not None
        return self._end

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._exchange.hang_up()
            self._input.release()
            for output in self._outputs.values():
                output.release(None if self._terminal is not None else self._drop)
            self._terminal = None
        await asyncio.wait([self._watching], timeout=_HANG_UP_SECONDS)
        self._watching.cancel()
        await asyncio.wait([self._watching])
        self._finish(SessionEnd(reason=_ALONE))

    async def _watch(self) -> None:
        """Wait for the program's end."""
        came = None
        with suppress(OSError):
            came = await self._exchange.receive()
        message = came[0] if came is not None else None
        for output in self._outputs.values():
            output.ended()
        if isinstance(message, Over):
            self._left = message.left
            name = None if message.signal is None else _name(message.signal)
            self._finish(SessionEnd(message.exit_code, name))
        elif isinstance(message, Failed):
            self._finish(SessionEnd(reason=message.reason))
        elif self._closed:
            self._finish(SessionEnd(reason=_ALONE))
        else:
            self._finish(SessionEnd(reason="the host is no more"))

    def _finish(self, end: SessionEnd) -> None:
        if self._end is None:
            self._end = end
            self._input.release()
            self._exchange.close()
            self._over.set()


def _name(number: int) -> str:
    """The name of a signal; those without one are called by their number."""
    try:
        return signal.Signals(number).name.removeprefix("SIG")
    except ValueError:
        return str(number)
