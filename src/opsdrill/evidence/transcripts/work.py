"""What one agent of a transcript did, in the making of its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import JsonValue, ValidationError

from opsdrill.errors import UsageError
from opsdrill.evidence.transcripts.hidden_command import hides_command
from opsdrill.evidence.transcripts.imported import Placing
from opsdrill.evidence.transcripts.ledger import Ledger
from opsdrill.evidence.transcripts.rows import too_deep
from opsdrill.evidence.transcripts.split_ssh import over_ssh
from opsdrill.model.job import AgentMessage, Outcome, Task, TaskStatus, ToolCall, ToolKind, Usage

CALLS = ("executed_commands", "write_file", "update_file", "use_mcp_tool", "tool_calls")
"""The targets that hold calls."""
_NAME = 60
"""Characters of a tool's name that are told."""


@dataclass(slots=True)
class _Call:
    """A call; `asked` is what it was told to be, also where it lacks its command or path."""

    call: ToolCall
    host: str | None
    asked: ToolKind
    open: bool = True

    @property
    def lacks(self) -> bool:
        """Whether it may have done something of its kind that nobody can read."""
        did = self.open or self.call.outcome not in ("failed", "refused")
        return did and self.call.kind != self.asked

    @property
    def hides(self) -> bool:
        """Whether it may have run a command though its tool is no shell that is known."""
        call = self.call
        did = self.open or call.outcome != "refused"
        strange = did and call.kind in ("other", "mcp")
        return strange and hides_command(call.tool, call.arguments)

    @property
    def mute(self) -> bool:
        """Whether nobody can read what its tool was given."""
        did = self.open or self.call.outcome != "refused"
        return did and self.call.kind in ("other", "mcp") and self.call.arguments is None


@dataclass(slots=True)
class _Message:
    at: datetime | None
    text: str


@dataclass(slots=True)
class Work:
    """What one agent of a transcript did: it becomes a task for each host it touched.

    Made by `Transcript.work`.
    """

    id: str
    ledger: Ledger
    description: str | None = None
    agent: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    status: TaskStatus | None = None
    stop_reason: str | None = None
    summary: str | None = None
    operational_rules: tuple[str, ...] | None = None
    _calls: dict[str, _Call] = field(default_factory=dict)
    _messages: dict[str, _Message] = field(default_factory=dict)
    _usage: dict[str, Usage] = field(default_factory=dict)
    _parts: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def say(self, text: str | None, *, at: datetime | None = None, id: str | None = None) -> None:
        """The agent said something; a message with the same id is replaced."""
        if text and text.strip() and self.ledger.room(text):
            self._messages[id or f"#{len(self._messages)}"] = _Message(at, text)

    def call(
        self,
        id: str | None,
        kind: ToolKind,
        tool: str | None,
        arguments: object,
        *,
        server: str | None = None,
        at: datetime | None = None,
        host: str | None = None,
        revised: bool = False,
    ) -> str:
        """The agent called a tool; returns the call's id. One that is known already is the same.

        Args:
            id: the transcript's name of the call; None where it has none.
            kind: what the tool does. One that lacks its command or path becomes `other`.
            tool: the tool's name as the agent knows it.
            arguments: `{"command": ...}`, `{"path": ...}`, or what the tool defines.
            server: of an MCP tool.
            at: when it was called.
            host: where, if the transcript says so.
            revised: a known call is told anew, and better; what it returned stays.
        """
        id = id or f"call-{len(self._calls) + 1}"
        known = self._calls.get(id)
        if not self.ledger.room(arguments):
            return id
        if too_deep(arguments):
            self.ledger.lose("the arguments of a call are nested too deep to be kept")
            arguments = None
        if not tool and kind == "other":
            self.ledger.lose("a call does not say of which tool it is", *CALLS)
        made = _tool_call(id, kind, tool, arguments, server=server, at=at)
        if known is None:
            self._calls[id] = _Call(made, host, kind)
        elif revised:
            now = ("kind", "tool", "server", "arguments")
            known.call = known.call.model_copy(update={key: getattr(made, key) for key in now})
            known.asked = kind
        elif (known.call.tool, known.call.arguments) != (made.tool, made.arguments):
            self.ledger.lose("two calls that differ have the same id, and one is kept", *CALLS)
        return id

    def call_files(
        self,
        id: str | None,
        tool: str | None,
        files: Sequence[tuple[ToolKind, dict[str, object]]],
        *,
        at: datetime | None = None,
    ) -> str:
        """The agent called a tool that changes several files: a call for each, `ID/1` and so on.

        Args:
            id: as in `call`; what the call returned is told of this one, and holds for all.
            tool: the tool's name.
            files: what each file gets, and the arguments of its call.
            at: when it was called.
        """
        if len(files) == 1:
            return self.call(id, files[0][0], tool, files[0][1], at=at)
        id = id or f"call-{len(self._calls) + 1}"
        parts = [
            self.call(f"{id}/{number}", kind, tool, arguments, at=at)
            for number, (kind, arguments) in enumerate(files, 1)
        ]
        self._parts[id] = tuple(parts)
        return id

    def has_call(self, id: str | None) -> bool:
        """Whether this call was told."""
        return id in self._calls or id in self._parts

    def returned(
        self,
        id: str | None,
        *,
        output: str | None = None,
        exit_code: int | None = None,
        outcome: Outcome = "ran",
        at: datetime | None = None,
        revised: bool = False,
    ) -> None:
        """A call returned; later words on the same call add to the output and replace the rest.

        Args:
            id: the transcript's name of the call.
            output: what it gave back.
            exit_code: the status of a command, where the transcript has it.
            outcome: what became of it.
            at: when.
            revised: the output is told anew and replaces what was told before.
        """
        for part in self._parts.get(id or "", ()):
            self.returned(
                part, output=output, exit_code=exit_code, outcome=outcome, at=at, revised=revised
            )
        if id in self._parts:
            return
        known = self._calls.get(id or "")
        if known is None:
            self.ledger.lose("a result belongs to no call that is there")
            return
        before = None if revised else known.call.output
        if output is not None:
            output = self.ledger.fit(output)
        changes: dict[str, object] = {
            "outcome": outcome,
            "output": output if before is None else before + (output or ""),
            "exit_code": exit_code if exit_code is not None else known.call.exit_code,
            "ended_at": at or known.call.ended_at,
        }
        known.call = known.call.model_copy(update=changes)
        known.open = False

    def use(
        self,
        id: str | None = None,
        *,
        model: str | None = None,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cost_usd: float | None = None,
    ) -> None:
        """What a message cost; a later one with the same id replaces it, others are added up."""
        try:
            usage = Usage(
                model=model,
                input_tokens=input_tokens,
                output_tokens=output_tokens,
                cost_usd=cost_usd,
            )
        except ValidationError:
            self.ledger.warn("a token count or cost is out of range and was left out")
            return
        self._usage[id or f"#{len(self._usage)}"] = usage

    @property
    def unreturned(self) -> set[ToolKind]:
        """The kinds of calls that never returned."""
        return {call.call.kind for call in self._calls.values() if call.open}

    @property
    def nameless(self) -> set[ToolKind]:
        """The kinds of calls that may have run though their command or path is not there."""
        return {each.asked for each in self._calls.values() if each.lacks}

    @property
    def hidden(self) -> dict[str, str]:
        """Why targets may lack something that a call of a strange tool did."""
        lost: dict[str, str] = {}
        for each in self._calls.values():
            name = (each.call.tool or "")[:_NAME]
            if each.hides:
                why = f"the tool `{name}` may have run a command that it was given"
                lost.setdefault("executed_commands", why)
            if each.mute:
                why = f"it does not say what the tool `{name}` was given"
                targets = ("executed_commands", "tool_calls", "use_mcp_tool")
                for target in targets if each.call.kind == "mcp" else targets[:2]:
                    lost.setdefault(target, why)
        return lost

    def said(self, id: str | None) -> str | None:
        """The message with this id, as it was told so far."""
        known = self._messages.get(id or "")
        return known.text if known else None

    def kind_of(self, id: str | None) -> ToolKind | None:
        """What a call was told to do, also where it lacks its command; None: there is none."""
        known = self._calls.get(id or "")
        return known.asked if known else None

    def waits_for(self, id: str | None) -> bool:
        """Whether this call was told and its return was not."""
        return any(
            part in self._calls and self._calls[part].open
            for part in self._parts.get(id or "", (id or "",))
        )

    @property
    def told(self) -> bool:
        """Whether it said or did anything."""
        return bool(self._calls or self._messages)

    def last_words(self) -> str | None:
        """What the agent said last."""
        return next((message.text for message in reversed(self._messages.values())), None)

    def moments(self) -> list[datetime]:
        """Every time that is known of it."""
        found = [self.started_at, self.ended_at]
        found += [message.at for message in self._messages.values()]
        for each in self._calls.values():
            found += [each.call.started_at, each.call.ended_at]
        return [moment for moment in found if moment is not None]

    def tasks(self, placing: Placing, status: TaskStatus) -> list[Task]:
        """Its tasks: the first for the host where it worked, one for each other host."""
        by_host: dict[str | None, list[ToolCall]] = {}
        for each in self._calls.values():
            host, call = each.host, each.call
            if placing.split_ssh and call.kind == "shell":
                host, call = over_ssh(call, host)
            by_host.setdefault(host or placing.host, []).append(call)
        if placing.host is None and (None in by_host or not by_host):
            raise UsageError(
                "the transcript does not say on which host the agent worked",
                hint="give it with --host NAME, or a scenario with one host",
            )
        home = placing.host if placing.host in by_host or not by_host else next(iter(by_host))
        first = self._task(self.id, home or "", by_host.pop(home, []), status)
        others = [self._elsewhere(first, host or "", calls) for host, calls in by_host.items()]
        return [first, *others]

    def _task(self, id: str, host: str, calls: list[ToolCall], status: TaskStatus) -> Task:
        moments = self.moments()
        over = self.status or status
        ended = self.ended_at or (max(moments) if moments and over != "running" else None)
        return Task(
            id=id,
            host=host,
            agent=self.agent,
            description=self.description,
            operational_rules=self.operational_rules,
            status=over,
            stop_reason=self.stop_reason,
            summary=self.summary if self.summary is not None else self.last_words(),
            started_at=self.started_at or (min(moments) if moments else None),
            ended_at=ended,
            tool_calls=tuple(calls),
            messages=tuple(
                AgentMessage(at=message.at, text=message.text)
                for message in self._messages.values()
            ),
            usage=_total(self._usage.values()),
        )

    def _elsewhere(self, first: Task, host: str, calls: list[ToolCall]) -> Task:
        """The part of the work that was done on another host; what was said stands in `first`."""
        times = [at for call in calls for at in (call.started_at, call.ended_at) if at is not None]
        return Task(
            id=f"{first.id}@{host}",
            host=host,
            agent=first.agent,
            description=first.description,
            status=first.status,
            started_at=min(times, default=None),
            ended_at=max(times, default=None),
            tool_calls=tuple(calls),
        )


def _tool_call(
    id: str,
    kind: ToolKind,
    tool: str | None,
    arguments: object,
    *,
    server: str | None,
    at: datetime | None,
) -> ToolCall:
    try:
        return ToolCall(
            id=id,
            kind=kind,
            tool=tool,
            server=server,
            arguments=_plain(arguments),
            outcome="failed",
            started_at=at,
        )
    except ValidationError:
        return ToolCall(
            id=id,
            kind="other",
            tool=tool,
            arguments=_plain(arguments),
            outcome="failed",
            started_at=at,
        )


def _plain(value: object) -> JsonValue:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | bool) else None


def _total(usages: Iterable[Usage]) -> Usage | None:
    """All that was used, by whatever model came last; what nobody counted stays unknown."""
    found = list(usages)
    if not found:
        return None
    models = [usage.model for usage in found if usage.model is not None]
    ins = [usage.input_tokens for usage in found if usage.input_tokens is not None]
    outs = [usage.output_tokens for usage in found if usage.output_tokens is not None]
    costs = [usage.cost_usd for usage in found if usage.cost_usd is not None]
    return Usage(
        model=models[-1] if models else None,
        input_tokens=sum(ins) if ins else None,
        output_tokens=sum(outs) if outs else None,
        cost_usd=sum(costs) if costs else None,
    )
