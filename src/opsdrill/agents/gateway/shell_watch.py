"""The lines that are typed into a shell: each a shell call."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from opsdrill.agents.gateway import bounds
from opsdrill.agents.gateway.kept_output import KeptOutput
from opsdrill.agents.gateway.sieve import Sieve
from opsdrill.agents.gateway.told_lines import Entered, Markers, Prompt, changes_what_is_told
from opsdrill.agents.gateway.typed_lines import Line, TypedLines
from opsdrill.agents.gateway.watch import CommandWatch, Lasts, Malformed
from opsdrill.agents.gateway.witness import TOOL, Call, NotRecorded, Witness
from opsdrill.hosts.session import Stream
from opsdrill.model.job import Outcome

_WHY = "not every line typed into a shell could be told apart"
_BECOMES = re.compile(r"\s*(?:sudo(?:\s+-[nEHA])*\s+-[is]|su(?:\s+-l?)?(?:\s+[\w.-]+)?)\s*")
_READS_COMMANDS = re.compile(
    r"\s*(?:(?:sudo|env|exec)(?:\s+-[A-Za-z]+)*\s+)*(?:\S*/)?(?:ba|da|a|k|z)?sh"
    r"(?:\s+(?:-[a-zA-Z]+|-o\s+\w+|--\w+))*(?:\s+-\s*|\s+-s(?:\s.*)?)?\s*",
    re.DOTALL,
)
_TOO_MUCH = "a shell was given more than is recorded of one: copy a long script, then run it"
_WAITING = 256
"""Lines that may wait to be told by the shell."""


def reads_commands(command: str) -> bool:
    """The command is a shell that reads what it does from its standard input."""
    if _BECOMES.fullmatch(command):
        return True
    return _READS_COMMANDS.fullmatch(command) is not None and not re.search(r"\s-[a-z]*c", command)


@dataclass(frozen=True, slots=True)
class Forbidding:
    """What refuses the lines of a shell.

    Args:
        refuses: why a command may not run, or None.
        tell: tells the client why one was refused.
    """

    refuses: Callable[[str], Awaitable[str | None]]
    tell: Callable[[str], Awaitable[None]]


@dataclass(slots=True)
class _Waiting:
    """A line that was passed on; `call` is there if it is in the record already."""

    line: Line
    call: Call | None


class ShellWatch:
    """A shell, started as the login shell or as a command.

    Args:
        witness: who reports.
        host: the host's name.
        user: who it runs as.
        terminal: it has one.
        markers: what takes out what the shell tells itself; None: it tells nothing.
        command: the command that started it; None: it is the login shell.
        forbidding: what refuses lines; None: all may run.
    """

    def __init__(
        self,
        witness: Witness,
        host: str,
        user: str,
        *,
        terminal: bool,
        markers: Markers | None = None,
        command: str | None = None,
        forbidding: Forbidding | None = None,
    ) -> None:
        self._witness = witness
        self._host = host
        self._user = user
        self._terminal = terminal
        self._typed = TypedLines(terminal=terminal)
        self._tell = None if forbidding is None else forbidding.tell
        self._sieve = None if forbidding is None else self._sieve_of(forbidding)
        self._markers = markers
        self._command = None if command is None else CommandWatch(witness, host, user, command)
        self._session: Call | None = None
        self._alive = False
        self._early: deque[str] = deque(maxlen=_WAITING)
        self._size = 0
        self._lines = 0
        self._waiting: deque[_Waiting] = deque()
        self._last: Entered | None = None
        self._next: int | None = None
        self._doubted = False
        self._running: Call | None = None
        self._kept = KeptOutput()

    def begin(self) -> None:
        if self._command is not None:
            self._command.begin()
        else:
            self._session = self._witness.begin(
                self._host, "other", TOOL, {"request": "shell", "user": self._user}
            )

    @property
    def lasts(self) -> Lasts:
        return "job" if self._terminal else "input"

    async def sent(self, data: bytes) -> bytes:
        self._size += len(data)
        self._lines += data.count(b"\n") + data.count(b"\r")
        if self._size > bounds.TYPED or self._lines > bounds.LINES:
            raise Malformed(_TOO_MUCH)
        if self._sieve is not None:
            return await self._sieve.sift(data)
        for line in self._typed.feed(data):
            self._enter(line)
        return data

    async def sent_all(self) -> bytes:
        if self._sieve is not None:
            return await self._sieve.rest()
        if (rest := self._typed.rest()) is not None:
            self._enter(rest)
        return b""

    def came(self, stream: Stream, data: bytes) -> bytes:
        if self._command is not None:
            self._command.came(stream, data)
        if self._markers is None or stream != "stdout":
            self._kept.add(stream, data)
            return data
        out = bytearray()
        for piece in self._markers.feed(data):
            if isinstance(piece, bytes):
                self._kept.add(stream, piece)
                out += piece
            elif isinstance(piece, Prompt):
                self._alive = True
                self._next = piece.number + 1
                self._return(piece.status)
            else:
                self._entered(piece)
        return bytes(out)

    def over(self, outcome: Outcome, exit_code: int | None, reason: str | None) -> None:
        with suppress(NotRecorded):
            # It was passed on, and a shell that is hung up may still run it.
            rest = self._typed.rest() if self._sieve is None else None
            if rest is not None:
                self._enter(rest)
            while self._waiting:
                self._drop(self._waiting.popleft())
        self._return(None)
        if self._markers is not None and self._markers.shown:
            self._gap()
        if self._command is not None:
            self._command.over(outcome, exit_code, reason)
        elif self._session is not None:
            self._session.returned(outcome, exit_code=exit_code, output=reason)

    def _enter(self, line: Line) -> None:
        """A line is about to be passed on."""
        self._doubt(line.command)
        if not self._alive:
            if not line.certain:
                self._gap()
            self._run(self._begin(line.text))
            self._early.append(line.text.strip())
            return
        self._waiting.append(_Waiting(line, self._begin(line.text) if line.certain else None))
        if len(self._waiting) > _WAITING:
            self._drop(self._waiting.popleft())

    def _entered(self, told: Entered) -> None:
        """The shell says what it runs now: a line that waits, or what keys made of it."""
        # What this line put into the history comes next after what was there at the prompt.
        stale = told == self._last or (bool(self._waiting) and told.number != self._next)
        if self._last is not None and told.number == self._last.number and told != self._last:
            self._gap()  # two lines of one number: one of them is no word of the shell's
        self._last, self._next = told, None
        if self._doubted and any(not one.line.certain for one in self._waiting):
            self._gap()
        self._doubt(told.text)
        same = next((one for one in self._waiting if _same(one.line, told.text)), None)
        if same is not None:
            while (one := self._waiting.popleft()) is not same:
                self._drop(one)
            self._run(same.call or self._begin(told.text))
        elif self._waiting and (stale or not told.number):
            # The history leaves it out.
            one = self._waiting.popleft()
            self._run(one.call or self._as_typed(one.line))
        elif self._waiting:
            # Several lines that are one command stand together in the history.
            joined = "\n" in told.text or ";" in told.text
            while self._waiting and self._waiting[0].call is None:
                if not (self._waiting.popleft().line.unfinished or joined):
                    break
            self._run(self._begin(told.text))
        elif told.text.strip() in self._early:
            # Typed, and recorded, before the shell told anything.
            while self._early.popleft() != told.text.strip():
                pass
        elif not stale:
            # One line more of those that were pasted together.
            self._run(self._begin(told.text))

    def _doubt(self, command: str) -> None:
        """From a command on that may change what the shell tells, nothing hangs on that."""
        self._doubted = self._doubted or changes_what_is_told(command)

    def _sieve_of(self, forbidding: Forbidding) -> Sieve:
        return Sieve(
            self._typed,
            terminal=self._terminal,
            refuses=forbidding.refuses,
            enter=self._enter,
            refused=self._refused,
        )

    async def _refused(self, line: Line, why: str) -> None:
        if line.begun:
            # What it would have been the rest of is interrupted, so that no shell tells of it.
            while self._waiting and self._waiting[-1].line.unfinished:
                self._waiting.pop()
        self._begin(line.command).returned("refused", output=why)
        if self._tell is not None:
            await self._tell(why)

    def _drop(self, one: _Waiting) -> None:
        """A line that the shell said nothing of: some program read it."""
        (one.call or self._as_typed(one.line)).returned("ran")

    def _as_typed(self, line: Line) -> Call:
        self._gap()
        return self._begin(line.text)

    def _begin(self, command: str) -> Call:
        return self._witness.begin(
            self._host, "shell", TOOL, {"command": command, "user": self._user}
        )

    def _run(self, call: Call) -> None:
        self._return(None)
        self._kept = KeptOutput()
        self._running = call

    def _return(self, status: int | None) -> None:
        if self._running is not None:
            self._running.returned("ran", exit_code=status, output=self._kept.text())
            self._running = None

    def _gap(self) -> None:
        self._witness.gap(("executed_commands", "tool_calls"), _WHY)


def _same(line: Line, told: str) -> bool:
    return line.text.strip() == told.strip()
