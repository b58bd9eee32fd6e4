"""The way to a host whose shell is a child of ours, or of a client program that is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from opsdrill.hosts.child import Child
from opsdrill.hosts.command import NO_SHELL, Account, run_line
from opsdrill.hosts.drains import Drains
from opsdrill.hosts.framed import End, FramedOutput
from opsdrill.hosts.process_session import ProcessSession
from opsdrill.hosts.session import Terminal
from opsdrill.hosts.shell_link import ASK_SECONDS, Exchange, NoAnswer, Tell, short
from opsdrill.model.host import OUTPUT_LIMIT

_AT_ONCE = 16
"""Lines at work at a time; one that kills does not wait."""
_CALM_SECONDS = 0.02
"""Pause between two looks at what background processes write."""
_LAST_WORDS_SECONDS = 0.5
"""Seconds from the end of a process to that of its output."""
_CLOSE_SECONDS = 5.0
_KILLED = (-9, 137)


class ProcessExchange:
    """One line at work in a process; see `opsdrill.hosts.shell_link.Exchange`.

    Args:
        nonce: what the line was made with.
        limit: bytes that are kept of each stream.
        linger: seconds that the process may take to end after the line did. None: it is left
            alone, and what background processes write is read and dropped, slowly.
        left: called when the line is over, and called again when nothing is left of it.
    """

    def __init__(
        self,
        nonce: str,
        limit: int,
        linger: float | None,
        left: Callable[[ProcessExchange], None],
    ) -> None:
        self.out = FramedOutput(nonce, limit)
        self.err = FramedOutput(nonce, limit)
        self.begun = asyncio.Event()
        self.over = self.complete = asyncio.Event()
        self.gone = asyncio.Event()
        self.status: int | None = None
        self._linger = linger
        self._left = left
        self._child: Child | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def end(self) -> End | None:
        return self.err.end if self.out.ended else None

    @property
    def killed(self) -> bool:
        return self.end is None and self.err.started and self.status in _KILLED

    @property
    def last_words(self) -> str:
        """What was said on standard error, by the shell or by who should have started it."""
        return short((self.err.text or self.err.noise).strip().rpartition("\n")[2])

    def start(
        self, argv: Sequence[str], content: bytes, environment: Mapping[str, str] | None
    ) -> None:
        """Start the process; `content` is all that its standard input gets.

        Raises:
            OSError: it cannot be started.
        """
        self._child = Child(argv, self, content, environment=environment, folder="/")

    def abandon(self) -> None:
        if self._child is not None:
            self._child.close()

    def heard(self, stream: int, data: bytes) -> None:
        if self.over.is_set():
            if self._child is not None:
                self._child.pause(stream, _CALM_SECONDS)
            return
        (self.out if stream == 1 else self.err).feed(data)
        if self.err.started:
            self.begun.set()
        if self.out.ended and self.err.end is not None:
            self._finish()
            if self._linger is not None:
                self._later(self._linger, self.abandon)

    def exited(self, status: int | None) -> None:
        self.status = status
        if not self.over.is_set():
            self._later(_LAST_WORDS_SECONDS, self._finish)

    def finished(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._finish()
        self.gone.set()
        self._left(self)

    def _finish(self) -> None:
        if not self.over.is_set():
            self.out.close()
            self.err.close()
            self.begun.set()
            self.over.set()
            self._left(self)

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, call)


class ProcessLink:
    """Starts one process for each line; see `opsdrill.hosts.shell_link.ShellLink`.

    Args:
        argv: the process: a POSIX shell with `opsdrill.hosts.command.BOOT`, or a client program
            that starts one elsewhere. Its last word is what that shell does.
        environment: of the process; None: this process's own.
        linger: as of `ProcessExchange`.
        stays: as of `opsdrill.hosts.command.run_line`.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        linger: float | None = None,
        stays: bool = False,
    ) -> None:
        self._argv = tuple(argv)
        self._environment = environment
        self._linger = linger
        self._stays = stays
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._waiting: set[ProcessExchange] = set()
        self._all: set[ProcessExchange] = set()
        self._sessions: set[ProcessSession] = set()
        self._drains: Drains | None = None
        self._closed = False

    async def start(self, account: Account, nonce: str, mark: int, text: bytes) -> ProcessExchange:
        line = run_line(nonce, mark, account, stays=self._stays)
        return await self._exchange(nonce, line.encode() + (text or b"\n"))

    async def _exchange(
        self, nonce: str, content: bytes, *, limit: int = OUTPUT_LIMIT, urgent: bool = False
    ) -> ProcessExchange:
        if urgent:
            return self._start(nonce, content, limit)
        await self._room.acquire()
        try:
            exchange = self._start(nonce, content, limit)
        except BaseException:
            self._room.release()
            raise
        if exchange.over.is_set():
            self._room.release()
        else:
            self._waiting.add(exchange)
        return exchange

    async def talk(
        self,
        nonce: str,
        content: bytes,
        *,
        seconds: float = ASK_SECONDS,
        limit: int = OUTPUT_LIMIT,
        urgent: bool = False,
    ) -> ProcessExchange:
        exchange = await self._exchange(nonce, content, limit=limit, urgent=urgent)
        try:
            async with asyncio.timeout(seconds):
                await exchange.over.wait()
        except TimeoutError:
            raise NoAnswer(f"it says nothing for {seconds:g} s") from None
        finally:
            if not exchange.over.is_set():
                exchange.abandon()
        if exchange.end is None:
            reason = await self.no_shell(exchange)
            raise NoAnswer(reason or "the answer got lost on the way")
        return exchange

    async def session(self, line: bytes, terminal: Terminal | None, tell: Tell) -> ProcessSession:
        # Only a program of its own can give a process that we start a terminal to control.
        control = () if terminal is None else ("setsid", "--ctty")
        argv = [*control, *self._argv[:-1]]
        return self._begin(self._new_session(tell), argv, line, terminal)

    def _new_session(
        self,
        tell: Tell,
        *,
        client: bool = False,
        look: Callable[[], Awaitable[None]] | None = None,
    ) -> ProcessSession:
        """A session that is not started yet; arguments as of `ProcessSession`."""
        if self._drains is None:
            self._drains = Drains()
        drop = partial(self._drains.take, "")
        return ProcessSession(tell, self._sessions.discard, drop, client=client, look=look)

    def _begin(
        self,
        session: ProcessSession,
        argv: Sequence[str],
        line: bytes,
        terminal: Terminal | None,
    ) -> ProcessSession:
        """Start a session's process: `argv`, and `line` as its last argument."""
        if self._closed:
            raise NoAnswer("the host was given back", passing=False)
        try:
            words = [*map(os.fsencode, argv), line]
            session.start(words, terminal, self._environment)
        except OSError as error:
            reason = f"{argv[0]} cannot be started: {error.strerror or error}"
            raise NoAnswer(short(reason)) from None
        self._sessions.add(session)
        return session

    async def no_shell(self, exchange: Exchange) -> str | None:
        unread = exchange.end is not None and exchange.end.shell == NO_SHELL
        if not unread and exchange.err.started:
            return None
        said = exchange.last_words if isinstance(exchange, ProcessExchange) else ""
        return f"no shell can be started ({said})" if said else "no shell can be started"

    async def close(self) -> None:
        """Nothing is started any more, and nothing of ours runs on. Never raises."""
        self._closed = True
        await asyncio.gather(*(session.close() for session in tuple(self._sessions)))
        for exchange in tuple(self._all):
            exchange.abandon()
        ends = [asyncio.ensure_future(exchange.gone.wait()) for exchange in self._all]
        if ends:
            _, late = await asyncio.wait(ends, timeout=_CLOSE_SECONDS)
            for end in late:
                end.cancel()
        if self._drains is not None:
            self._drains.close()
            self._drains = None

    def _start(self, nonce: str, content: bytes, limit: int) -> ProcessExchange:
        if self._closed:
            raise NoAnswer("the host was given back", passing=False)
        exchange = ProcessExchange(nonce, limit, self._linger, self._left)
        try:
            exchange.start(self._argv, content, self._environment)
        except OSError as error:
            reason = f"{self._argv[0]} cannot be started: {error.strerror or error}"
            raise NoAnswer(short(reason)) from None
        self._all.add(exchange)
        return exchange

    def _left(self, exchange: ProcessExchange) -> None:
        if exchange in self._waiting:
            self._waiting.discard(exchange)
            self._room.release()
        if exchange.gone.is_set():
            self._all.discard(exchange)
