"""A session whose program is a child of ours, or of a client program that is."""

from __future__ import annotations

import asyncio
import os
import signal
import tty
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from opsdrill.hosts.child import Started
from opsdrill.hosts.pipes import Inlet, Outlet, end_of_file, resize
from opsdrill.hosts.session import SessionEnd, Stream, Terminal
from opsdrill.hosts.shell_link import NoAnswer, Tell
from opsdrill.hosts.shell_sessions import known_signal

_HANG_UP_SECONDS = 1.0
"""Seconds that a program gets to end after it was hung up; then it goes on alone."""
_CLIENT_TROUBLE = 125
"""Exit statuses from here on may be a client's own."""
_ALONE = "it was hung up, and goes on alone"


class ProcessSession:
    """A session under way (see `Session`).

    Args:
        tell: sends signals to its program, by their names; may raise NoAnswer.
        client: the process only speaks for the program: it is ended with the session.
        look: whether the host still answers; raises NoAnswer. Only for clients.
        left: called when the process ended.
        drop: reads on, where background processes still write to its output.
    """

    def __init__(
        self,
        tell: Tell,
        left: Callable[[ProcessSession], None],
        drop: Callable[[int], None],
        *,
        client: bool = False,
        look: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._tell = tell
        self._left = left
        self._drop = drop
        self._client = client
        self._look = look
        self._terminal: int | None = None
        self._outputs: dict[str, Outlet] = {}
        self._end: SessionEnd | None = None
        self._over = asyncio.Event()
        self._gone = asyncio.Event()
        self._closed = False
        self._looking: asyncio.Future[None] | None = None

    def start(
        self,
        argv: Sequence[bytes],
        terminal: Terminal | None,
        environment: Mapping[str, str] | None,
    ) -> None:
        """Start the process; with a terminal it becomes its controlling one, if it wants one.

        Raises:
            OSError: it cannot be started.
        """
        ours, theirs = _terminal(terminal) if terminal is not None else _pipes()
        if terminal is not None and self._client:
            # Nothing is to be changed on the way; the program's own terminal does that.
            tty.setraw(theirs[0])
        try:
            self._process = Started(
                argv,
                self._exited,
                files=(theirs[0], theirs[len(theirs) // 2], theirs[-1]),
                environment=environment,
                folder="/",
                own_session=terminal is None or self._client,
            )
        except BaseException:
            _close(ours)
            raise
        finally:
            _close(theirs)
        for fd in ours:
            os.set_blocking(fd, False)
        if terminal is None:
            self._input = Inlet(ours[0])
            self._outputs = {"stdout": Outlet(ours[1]), "stderr": Outlet(ours[2])}
        else:
            self._terminal = ours[0]
            self._input = Inlet(os.dup(ours[0]))
            self._outputs = {"stdout": Outlet(ours[0], terminal=True)}

    async def read(self, stream: Stream, size: int = 65536) -> bytes:
        output = self._outputs.get(stream)
        return b"" if output is None else await output.read(size)

    async def write(self, data: bytes) -> None:
        await self._input.write(data)

    async def write_eof(self) -> None:
        if self._terminal is None:
            self._input.release()
        else:
            await self._input.write(end_of_file(self._terminal))

    async def resize(self, columns: int, rows: int) -> None:
        if self._terminal is not None:
            resize(self._terminal, columns, rows)
            if self._client:
                # It is nobody's controlling terminal, so that the kernel tells nobody.
                self._process.signal(signal.SIGWINCH, family=True)

    async def signal(self, name: str) -> None:
        if known_signal(name) and not self._over.is_set():
            with suppress(NoAnswer):
                await self._tell(name)

    async def kill(self) -> int | None:
        if self._over.is_set():
            return 0
        try:
            return await self._tell.kill()
        except NoAnswer:
            return None
        finally:
            # Killing stops all of it first, and who waits for what is stopped may stop as well.
            self._process.signal(signal.SIGCONT)

    async def wait(self) -> SessionEnd:
        await self._over.wait()
        assert self._end is not None
        return self._end

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            if not self._over.is_set():
                with suppress(NoAnswer):
                    await self._tell("HUP", "CONT")
            self._let_go()
        with suppress(TimeoutError):
            async with asyncio.timeout(_HANG_UP_SECONDS):
                await self._over.wait()
        self._finish(SessionEnd(reason=_ALONE))
        if self._client:
            self._process.signal(signal.SIGKILL)
            await self._gone.wait()

    def _let_go(self) -> None:
        keep = None if self._client or self._terminal is not None else self._drop
        self._terminal = None
        self._input.release()
        for output in self._outputs.values():
            output.release(keep)

    def _exited(self, status: int | None) -> None:
        self._gone.set()
        self._left(self)
        for output in self._outputs.values():
            output.ended()
        if self._look is not None and (status is None or not 0 <= status < _CLIENT_TROUBLE):
            self._looking = asyncio.ensure_future(self._look_into(status))
        else:
            self._finish(_end(status))

    async def _look_into(self, status: int | None) -> None:
        """It may have been the host that ended."""
        assert self._look is not None
        try:
            await self._look()
        except NoAnswer as error:
            self._finish(SessionEnd(reason=error.reason))
        else:
            lost = status is None or status < 0
            reason = "the way to it was lost: the engine's client ended"
            self._finish(SessionEnd(reason=reason) if lost else _end(status))

    def _finish(self, end: SessionEnd) -> None:
        if self._end is None:
            self._end = end
            self._over.set()
            self._input.release()


def _end(status: int | None) -> SessionEnd:
    if status is None:
        return SessionEnd(reason="somebody else took note of its end")
    if status >= 0:
        return SessionEnd(status)
    try:
        return SessionEnd(signal=signal.Signals(-status).name.removeprefix("SIG"))
    except ValueError:
        return SessionEnd(signal=str(-status))


def _terminal(terminal: Terminal) -> tuple[list[int], list[int]]:
    ours, theirs = os.openpty()
    resize(ours, terminal.columns, terminal.rows)
    return [ours], [theirs]


def _pipes() -> tuple[list[int], list[int]]:
    """Our ends and the program's, of standard input, output and error."""
    program_in, ours_in = os.pipe2(os.O_CLOEXEC)
    ours_out, program_out = os.pipe2(os.O_CLOEXEC)
    ours_err, program_err = os.pipe2(os.O_CLOEXEC)
    return [ours_in, ours_out, ours_err], [program_in, program_out, program_err]


def _close(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)
