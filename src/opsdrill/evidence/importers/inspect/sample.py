"""One epoch of a sample of an Inspect log, as a job.

Events say what was done and when; the conversation fills in where there are none. What the
harness itself does in the sandbox, and what models of scorers and tools say, is not the agent's.
Texts of more than 100 characters stand in `attachments`, behind the events that hold them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from opsdrill.evidence.importers.inspect.job import begun, end
from opsdrill.evidence.importers.inspect.parts import Header, SampleFile
from opsdrill.evidence.importers.inspect.spans import MAIN, Place, Spans
from opsdrill.evidence.importers.inspect.texts import Texts
from opsdrill.evidence.transcripts.imported import Imported, Placing
from opsdrill.evidence.transcripts.rows import listing, mapping, number, spoken, text, within
from opsdrill.evidence.transcripts.source import Damaged
from opsdrill.evidence.transcripts.tools import Known, known
from opsdrill.evidence.transcripts.work import Work
from opsdrill.model.job import Outcome

_OUTCOMES: dict[str | None, Outcome] = {
    None: "ran",
    # The command ran; what it printed could not be taken.
    "output_limit": "ran",
    "unicode_decode": "ran",
    "timeout": "timed_out",
    "limit": "timed_out",
    "approval": "refused",
}
"""By the type of a tool's error; any other one is a failure of the tool."""


def read_sample(
    file: SampleFile, header: Header, placing: Placing, *, missing: str | None = None
) -> Imported:
    """The job that a sample is.

    Args:
        file: where its parts stand.
        header: what the log says of all samples.
        placing: where commands ran.
        missing: what the log lacks in this sample or behind it; it is the last one.
    """
    reader = _Reader(file, header, placing)
    if missing is not None:
        reader.lose(missing)
    return reader.read()


@dataclass(slots=True)
class _Survey:
    """What must be known of all events before the first of them is told."""

    calls: set[str] = field(default_factory=set)
    spoken: set[str] = field(default_factory=set)
    revised: dict[str, object] = field(default_factory=dict)


class _Reader:
    def __init__(self, file: SampleFile, header: Header, placing: Placing) -> None:
        self._file = file
        self._transcript = begun(file.small, header, placing)
        self._ledger = self._transcript.ledger
        self._texts = Texts(self._ledger)
        self._survey = _Survey()
        self._spans = Spans()
        self._told: set[str] = set()
        self._last: dict[str, str] = {}
        self._times: Counter[str | None] = Counter()
        self._spoken: Counter[str | None] = Counter()
        self._returned: set[str] = set()
        self._answered = False
        self._by_events = False
        self._limit: str | None = None

    def lose(self, why: str) -> None:
        """Something of the sample is missing."""
        self._ledger.lose(why)

    def read(self) -> Imported:
        if not self._file.whole:
            self.lose("the sample breaks off")
        self._look_ahead()
        self._texts.found = self._file.attachments(self._texts.wanted, self._texts.outputs)
        for event in self._each(self._file.events()):
            self._event(event, self._spans.place(text(event, "span_id")))
        self._by_events = self._answered
        for message in self._each(self._file.messages()):
            self._message(message)
        if not self._file.holds & {"events", "messages"}:
            self._ledger.lose("the sample holds neither events nor messages")
        elif self._told and not self._answered:
            self._ledger.lose("no answer of a model is in it", "agent_messages", "task_summary")
        if self._file.whole:
            end(self._transcript, self._file.small, self._limit)
        return self._transcript.imported(self._file.name)

    def _each(self, items: Iterator[object]) -> Iterator[dict[str, object]]:
        try:
            for item in items:
                if isinstance(item, dict):
                    yield item
                else:
                    self.lose("something among its events or messages is no object")
        except Damaged as damage:
            self._ledger.lose(str(damage))

    def _look_ahead(self) -> None:
        """Which calls have events of their own, what the conversation holds, what is attached."""
        try:
            for message in self._file.messages():
                if text(message, "role") == "assistant":
                    self._survey.spoken.add(text(message, "id") or "")
                output = text(message, "role") == "tool"
                self._texts.look(within(message, "content"), output=output)
                self._texts.look(within(message, "tool_calls"))
        except Damaged:
            pass  # told when it is read for what it says
        try:
            for event in self._file.events():
                self._look_at(event)
        except Damaged:
            pass

    def _look_at(self, event: object) -> None:
        kind = text(event, "event")
        if kind == "tool":
            self._survey.calls.add(text(event, "id") or "")
            self._texts.look(within(event, "arguments"))
            self._texts.look(within(event, "result"), within(event, "error"), output=True)
        elif kind == "model":
            self._texts.look(within(event, "output", "choices", 0, "message"))
            self._texts.look(_prompt(event))
        elif kind == "approval" and text(event, "decision") == "modify":
            id = text(event, "call", "id")
            changed = within(event, "modified", "arguments")
            if id and changed is not None:
                self._texts.look(changed)
                self._survey.revised[id] = changed
        for each in listing(event, "events"):
            self._look_at(each)

    def _event(self, event: object, place: Place) -> None:
        kind = text(event, "event")
        if kind == "span_begin":
            self._spans.begin(event)
        elif kind == "step":
            self._spans.step(event)
        elif kind == "sample_limit":
            self._limit = text(event, "type")
        elif place.scoring:
            return
        elif kind == "model":
            self._model(event, place)
        elif kind == "tool":
            self._tool(event, self._work(place))
        if kind in ("tool", "subtask"):
            # Old logs hold the events of an agent that was called inside of the call.
            inner = Place(f"agent-{text(event, 'id') or text(event, 'name') or ''}")
            for each in listing(event, "events"):
                self._event(each, inner)

    def _work(self, place: Place) -> Work:
        work = self._transcript.work(place.work)
        if place.name and work.agent is None:
            work.agent = place.name
        return work

    def _model(self, event: object, place: Place) -> None:
        message = within(event, "output", "choices", 0, "message")
        id = text(message, "id")
        other = text(event, "role") is not None and id not in self._survey.spoken
        if place.in_tool or other or message is None:
            return
        work = self._work(place)
        clock = self._transcript.clock
        at = clock.text(within(event, "completed")) or clock.text(within(event, "timestamp"))
        if place.work != MAIN and work.description is None:
            work.description = self._texts.said(_prompt(event)) or None
        self._answered = True
        work.say(self._texts.said(within(message, "content")), at=at, id=id)
        self._use(work, event, id or text(event, "uuid"))
        for call in listing(message, "tool_calls"):
            if text(call, "id") not in self._survey.calls:
                self._call(work, call, at=at)

    def _use(self, work: Work, event: object, id: str | None) -> None:
        usage = mapping(event, "output", "usage")
        if usage:
            work.use(
                id,
                model=text(event, "output", "model") or text(event, "model"),
                input_tokens=_count(usage, "input_tokens"),
                output_tokens=_count(usage, "output_tokens"),
                cost_usd=number(usage, "total_cost"),
            )

    def _tool(self, event: object, work: Work) -> None:
        clock = self._transcript.clock
        id = self._call(work, event, at=clock.text(within(event, "timestamp")), again=True)
        error = mapping(event, "error")
        if within(event, "pending") is True and not error:
            return
        self._return(
            work,
            id,
            within(event, "result"),
            error,
            failed=within(event, "failed") is True,
            at=clock.text(within(event, "completed")),
        )

    def _call(
        self, work: Work, call: object, *, at: datetime | None = None, again: bool = False
    ) -> str:
        """Tell of a call; a second event under one id is a call of its own."""
        id = text(call, "id") or f"call-{len(self._told) + 1}"
        if again:
            name, times = id, 1
            while id in self._told:
                times += 1
                id = f"{name}#{times}"
        self._told.add(id)
        self._times[text(call, "id")] += 1
        self._last[text(call, "id") or id] = id
        given = self._survey.revised.get(text(call, "id") or "", within(call, "arguments"))
        tool = text(call, "function") or "tool"
        _known(tool, self._texts.whole(given)).tell(work, id, at=at)
        return id

    def _return(
        self,
        work: Work,
        id: str,
        result: object,
        error: dict[str, object],
        *,
        failed: bool = False,
        at: datetime | None = None,
    ) -> None:
        self._returned.add(id)
        kind = text(error, "type") or ("unknown" if error or failed else None)
        output = _plain(self._texts.output(result))
        if error and not output:
            output = _plain(self._texts.output(error.get("message")))
        work.returned(id, output=output or None, outcome=_OUTCOMES.get(kind, "failed"), at=at)

    def _message(self, message: object) -> None:
        """Of the conversation: what no event told."""
        work = self._transcript.main
        role = text(message, "role")
        if role == "assistant" and text(message, "source") != "input":
            if not self._by_events:
                self._answered = True
                work.say(self._texts.said(within(message, "content")), id=text(message, "id"))
            for call in listing(message, "tool_calls"):
                # Some models number their calls anew in every message.
                id = text(call, "id")
                self._spoken[id] += 1
                if self._spoken[id] > self._times[id]:
                    self._call(work, call, again=True)
        elif role == "tool":
            self._answer(work, message)

    def _answer(self, work: Work, message: object) -> None:
        id = text(message, "tool_call_id")
        id = self._last.get(id or "", id)
        if id in self._returned:
            return
        if id is None or id not in self._told:
            self._ledger.lose("the arguments of a call are not in it", *_CALLS)
            call = {"id": id, "function": text(message, "function"), "arguments": None}
            id = self._call(work, call)
        if work.has_call(id):
            self._return(work, id, within(message, "content"), mapping(message, "error"))


_CALLS = ("executed_commands", "write_file", "update_file", "use_mcp_tool", "tool_calls")


def _known(tool: str, arguments: object) -> Known:
    code = text(arguments, "code")
    if tool == "python" and code is not None:
        rest = {key: value for key, value in mapping(arguments).items() if key != "code"}
        return Known("shell", tool, {"command": code} | rest)
    return known(tool, arguments)


def _prompt(event: object) -> object:
    """What the user said last to the model."""
    users = [each for each in listing(event, "input") if text(each, "role") == "user"]
    return within(users[-1], "content") if users else None


def _count(usage: dict[str, object], key: str) -> int | None:
    value = usage.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _plain(value: object) -> str:
    if value is None or isinstance(value, str | list):
        return spoken(value)
    return json.dumps(value, ensure_ascii=False, default=str)
