"""One session passing the gateway: bytes both ways, held up where the other side takes no more."""

# ruff: noqa: ARG002  (signatures of others)
from __future__ import annotations

import asyncio
import signal
from collections import deque
from collections.abc import Callable
from contextlib import suppress

import asyncssh

from opsdrill.agents.gateway import bounds
from opsdrill.agents.gateway.connection import GatewayConnection
from opsdrill.agents.gateway.shell_text import as_text
from opsdrill.agents.gateway.time_limit import FORBIDDEN, Stopped, TimeLimit, refused
from opsdrill.agents.gateway.visit import Visit
from opsdrill.agents.gateway.watch import Malformed, Watch
from opsdrill.agents.gateway.watches import watch_for
from opsdrill.agents.gateway.witness import TOOL, NotRecorded
from opsdrill.errors import HostError, HostUnreachable
from opsdrill.hosts.session import Session, SessionEnd, SessionRequest, Stream, Terminal
from opsdrill.model.job import Outcome

_NOT_STARTED = 255
"""The exit status for what could not be started, as `ssh` itself has it."""
_LAST_WORDS_SECONDS = 1.0
"""Seconds in which the output of what was killed is passed on."""
_LOST = "the connection was lost"
_SHUT = "the gateway was closed"
_UNKNOWN = "what is not recorded is not passed on"


class Passage(asyncssh.SSHServerSession[bytes]):
    """What a client and a program on a host say to each other.

    Args:
        visit: the client's, to this host.
        connection: the client's.
        left: called once with this passage when it is over.
    """

    def __init__(
        self, visit: Visit, connection: GatewayConnection, left: Callable[[Passage], None]
    ) -> None:
        self._visit = visit
        self._connection = connection
        self._left = left
        self._channel: asyncssh.SSHServerChannel[bytes] | None = None
        self._terminal: Terminal | None = None
        self._environment: dict[str, str] = {}
        self._request: SessionRequest | None = None
        self._text: str | None = None
        self._watch: Watch | None = None
        self._work: asyncio.Task[None] | None = None
        self._why_cut: str | None = None
        self._input: deque[bytes] = deque()
        self._waiting = 0
        self._eof = False
        self._more = asyncio.Event()
        self._no_more = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._size: tuple[int, int] | None = None
        self._signals: deque[str] = deque(maxlen=16)
        self._asked = asyncio.Event()

    # What the client asks for

    def connection_made(self, chan: asyncssh.SSHServerChannel[bytes]) -> None:
        self._channel = chan

    def pty_requested(
        self, term_type: str, term_size: tuple[int, int, int, int], term_modes: object
    ) -> bool:
        if len(term_type) > bounds.VARIABLE or "\0" in term_type:
            return False
        self._terminal = Terminal(term_type, term_size[0], term_size[1])
        return True

    def variable_requested(self, name: bytes, value: bytes) -> bool:
        """An environment variable; only what says the language."""
        if not (name == b"LANG" or name.startswith(b"LC_")) or len(name) > bounds.VARIABLE:
            return False
        if len(self._environment) >= bounds.ENVIRONMENT or len(value) > bounds.VARIABLE:
            return False
        try:
            self._environment[name.decode("ascii")] = value.decode()
        except UnicodeDecodeError:
            return False
        return True

    def forwarding_requested(self, what: str) -> None:
        """A display or an agent, which is refused."""
        self._visit.refuse({"request": what}, "nothing is forwarded")

    def command_requested(self, command: bytes) -> bool:
        """A command, as the client gave it."""
        text = command.decode(errors="replace")
        if b"\0" in command:
            return self._refused(text, "the command has a NUL character, which is no text")
        if len(command) > bounds.COMMAND:
            return self._refused(
                text[: bounds.VARIABLE], f"the command has more than {bounds.COMMAND} bytes"
            )
        return self._start(self._asked_for(as_text(command)), text)

    def shell_requested(self) -> bool:
        return self._start(self._asked_for(None), None)

    def files_requested(self, subsystem: bytes) -> bool:
        """A subsystem by its name."""
        if subsystem != b"sftp":
            name = subsystem[: bounds.VARIABLE].decode(errors="replace")
            self._visit.refuse({"request": "subsystem", "to": name}, "there is no such subsystem")
            return False
        user = self._visit.user
        return self._start(SessionRequest(user=user, files=True), None)

    def session_started(self) -> None:
        self._work = asyncio.get_running_loop().create_task(self._pass())

    def _asked_for(self, command: str | None) -> SessionRequest:
        return SessionRequest(command, self._visit.user, self._terminal, dict(self._environment))

    def _start(self, request: SessionRequest, text: str | None) -> bool:
        """Record it; what cannot be recorded is not begun."""
        self._text = text
        self._request, self._watch = watch_for(self._visit, request, text, self._tell_refused)
        try:
            self._watch.begin()
        except NotRecorded:
            return False
        return True

    def _refused(self, text: str, why: str) -> bool:
        if self._visit.may_refuse():
            told = {"command": text, "user": self._visit.user}
            self._visit.witness.refuse(self._visit.name, "shell", TOOL, told, why)
        return False

    # What the client sends

    def data_received(self, data: bytes, datatype: int | None) -> None:
        self._input.append(data)
        self._waiting += len(data)
        self._more.set()
        if self._waiting > bounds.WAITING and self._channel is not None:
            self._channel.pause_reading()

    def eof_received(self) -> bool:
        self._eof = True
        self._more.set()
        return True

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        self._size = (width, height)
        self._asked.set()

    def signal_received(self, signal: str) -> None:
        self._signals.append(signal[:32])
        self._asked.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._channel = None
        self._writable.set()
        self._why_cut = self._why_cut or _LOST
        if self._work is None:
            if self._watch is not None:
                self._watch.over("failed", None, _LOST)
            self._left(self)
        else:
            self._work.cancel()

    async def cut(self) -> None:
        """End it, whatever it does; returns when it is over."""
        self._why_cut = _SHUT
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait([self._work])
        elif self._watch is not None:
            self._watch.over("failed", None, _SHUT)

    # Passing on

    async def _pass(self) -> None:
        """Open the session, pass on what comes, record how it ended, then tell the client."""
        assert self._request is not None and self._watch is not None
        end, status = SessionEnd(reason=_UNKNOWN), _NOT_STARTED
        otherwise: Outcome = "failed"
        told: str | None = None
        try:
            await self._must_be_allowed()
            end = await self._conversation(self._request, self._watch)
        except asyncio.CancelledError:
            end = SessionEnd(reason=self._why_cut)
        except HostError as error:
            end = SessionEnd(reason=error.message)
            otherwise = "failed" if isinstance(error, HostUnreachable) else "refused"
        except Stopped as stopped:
            end, otherwise = SessionEnd(reason=stopped.why), stopped.outcome
            told, status = stopped.told, stopped.status
        except Malformed as error:
            end = SessionEnd(reason=str(error))
        except NotRecorded:
            pass
        finally:
            self._over(self._watch, end, otherwise)
            self._left(self)
            self._tell(end, status, told)

    def _over(self, watch: Watch, end: SessionEnd, otherwise: Outcome) -> None:
        if end.exit_code is not None:
            watch.over("ran", end.exit_code, None)
        elif end.signal is not None:
            reason = f"it was ended by the signal {end.signal}"
            watch.over("ran", _status_of(end.signal), reason)
        else:
            watch.over(otherwise, None, end.reason)

    def _tell(self, end: SessionEnd, status: int, told: str | None) -> None:
        """Tell the client how it ended, or why it gets nothing, with a status for that."""
        if self._channel is None:
            return
        if end.exit_code is not None:
            self._channel.exit(end.exit_code)
        elif end.signal is not None:
            self._channel.exit_with_signal(end.signal)
        else:
            with suppress(BrokenPipeError):
                self._channel.write_stderr(
                    self._words(told or end.reason or "nobody knows how it ended")
                )
            self._channel.exit(status)

    def _words(self, told: str) -> bytes:
        """A line of ours for the client's standard error."""
        ends = "\r\n" if self._terminal is not None else "\n"
        return f"opsdrill: {told}{ends}".encode(errors="replace")

    async def _tell_refused(self, why: str) -> None:
        """A line that was typed is refused."""
        # The cursor stands behind the line.
        ahead = b"\r\n" if self._terminal is not None else b""
        await self._send("stderr", ahead + self._words(refused(why)))

    async def _must_be_allowed(self) -> None:
        if self._text is not None and (why := await self._visit.refuses(self._text)) is not None:
            raise Stopped("refused", why, FORBIDDEN, refused(why))

    async def _conversation(self, request: SessionRequest, watch: Watch) -> SessionEnd:
        session = await self._visit.host.open(request)
        try:
            return await self._talk(session, request, watch)
        finally:
            # That is given its time even if this task is cancelled meanwhile.
            await asyncio.shield(asyncio.ensure_future(self._leave(session, watch)))

    async def _leave(self, session: Session, watch: Watch) -> None:
        """Hang up; a command that the job's end cuts off does not work on behind our back."""
        if self._why_cut == _SHUT and watch.lasts != "job":
            await session.kill()
        await session.close()

    async def _talk(self, session: Session, request: SessionRequest, watch: Watch) -> SessionEnd:
        loop = asyncio.get_running_loop()
        streams: tuple[Stream, ...] = ("stdout",) if request.terminal else ("stdout", "stderr")
        outputs = [loop.create_task(self._put_out(session, name, watch)) for name in streams]
        inputs = [
            loop.create_task(self._put_in(session, watch)),
            loop.create_task(self._pass_signals(session)),
        ]
        seconds = self._visit.rules.command_seconds
        limit = TimeLimit(session, seconds, watch.lasts, self._no_more)
        late = loop.create_task(limit.run_out())
        try:
            pending: set[asyncio.Task[None]] = {*outputs, inputs[0], late}
            while any(task in pending for task in outputs):
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            end = await self._end(session, limit, late)
        except Stopped:
            await asyncio.wait(outputs, timeout=_LAST_WORDS_SECONDS)
            raise
        finally:
            for task in (*outputs, *inputs, late):
                task.cancel()
            await asyncio.wait((*outputs, *inputs, late))
        return end

    async def _end(
        self, session: Session, limit: TimeLimit, late: asyncio.Task[None]
    ) -> SessionEnd:
        """How it ended. What closed its output may still run, up to its limit."""
        ending = asyncio.ensure_future(session.wait())
        try:
            await asyncio.wait({ending, late}, return_when=asyncio.FIRST_COMPLETED)
            if limit.reached:
                await late
            return await ending
        finally:
            ending.cancel()

    async def _put_in(self, session: Session, watch: Watch) -> None:
        while True:
            await self._more.wait()
            while self._input:
                data = self._input.popleft()
                if passed := await watch.sent(data):
                    await session.write(passed)
                self._waiting -= len(data)
                if self._waiting <= bounds.WAITING and self._channel is not None:
                    self._channel.resume_reading()
            self._more.clear()
            # `resume_reading` may have brought more, or the end.
            if self._eof and not self._input:
                if passed := await watch.sent_all():
                    await session.write(passed)
                await session.write_eof()
                self._no_more.set()
                return
            if self._input or self._eof:
                self._more.set()

    async def _put_out(self, session: Session, stream: Stream, watch: Watch) -> None:
        while data := await session.read(stream):
            await self._send(stream, watch.came(stream, data))

    async def _send(self, stream: Stream, data: bytes) -> None:
        if self._channel is None or not data:
            return
        with suppress(BrokenPipeError):
            if stream == "stdout":
                self._channel.write(data)
            else:
                self._channel.write_stderr(data)
        await self._writable.wait()
        await self._connection.room()

    async def _pass_signals(self, session: Session) -> None:
        while True:
            await self._asked.wait()
            self._asked.clear()
            if self._size is not None:
                (columns, rows), self._size = self._size, None
                await session.resize(columns, rows)
            while self._signals:
                await session.signal(self._signals.popleft())


def _status_of(name: str) -> int | None:
    """The exit status that a shell gives for a signal."""
    number = signal.Signals.__members__.get(f"SIG{name}")
    return None if number is None else 128 + number
