"""OpenHands: event lists of version 0, `output.jsonl` of its benchmarks, events of the V1 SDK.

Sources: All-Hands-AI/OpenHands 0.58 (`openhands/events`), OpenHands/software-agent-sdk
(`openhands-sdk/openhands/sdk/event`, `openhands-tools`), OpenHands/benchmarks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from opsdrill.evidence.importers.openhands.ending import Ending
from opsdrill.evidence.importers.openhands.v0 import EventsV0
from opsdrill.evidence.importers.openhands.v1 import EventsV1
from opsdrill.evidence.transcripts.glimpse import Glimpse
from opsdrill.evidence.transcripts.imported import Imported, Placing
from opsdrill.evidence.transcripts.reading import items_of, rows_of
from opsdrill.evidence.transcripts.rows import listing, mapping, number, row, text, whole
from opsdrill.evidence.transcripts.source import Damaged, Source
from opsdrill.evidence.transcripts.transcript import Transcript

_KINDS = ("Event", "Observation", "Condensation", "CondensationRequest")
"""How the kinds of V1 events end."""
_PARTS = ("instance_id", "instruction", "metadata", "history", "metrics", "error")
_NO_EVENT = "something in the history is no event"
_UNREAD = "it cannot be read"


class OpenHandsImporter:
    """Events and benchmark outputs of OpenHands."""

    title = "OpenHands"

    def knows(self, glimpse: Glimpse) -> bool:
        """Events with a source that act, observe or have a kind; or outputs with such a history."""
        if any(map(_event, glimpse.rows)) or any(map(_output, glimpse.rows)):
            return True
        return _listed(glimpse, "item") or _outputs(glimpse)

    def read(self, source: Source, placing: Placing) -> Iterator[Imported]:
        """The job of a list of events, or one for each output."""
        glimpse = source.glimpse
        if any(map(_output, glimpse.rows)) and not _is_list(glimpse):
            yield from self._several(source, placing)
        elif _outputs(glimpse) and not _is_list(glimpse):
            yield from self._alone(source, placing)
        else:
            yield self._events(source, placing)

    def _events(self, source: Source, placing: Placing) -> Imported:
        told = Transcript("openhands", self.title, placing)
        reader = _Reader(told)
        events = 0
        listed = _is_list(source.glimpse)
        found = items_of(source, "item", told.ledger) if listed else rows_of(source, told.ledger)
        for event in found:
            events += 1
            reader.event(event)
        if not events:
            raise source.broken("holds no event of OpenHands")
        return reader.end()

    def _alone(self, source: Source, placing: Placing) -> Iterator[Imported]:
        """One output on several lines; or the first is longer than the first look."""
        first, end, _ = source.glimpse.head.partition(b"\n")
        if not end or row(first) is not None:
            yield from self._several(source, placing)
            return
        told = Transcript("openhands", self.title, placing)
        reader = _Reader(told)
        try:
            parts, missing = source.parts(*_PARTS)
        except Damaged as damage:
            raise source.broken(str(damage)) from None
        if missing is not None:
            told.ledger.lose(missing)
        about = {key: part.value("") for key, part in parts.items() if key != "history"}
        told.job = text(about, "instance_id")
        reader.about(about)
        if "history" in parts:
            for event in _flat(_items(parts["history"], told), told):
                reader.event(event)
        reader.outcome(about)
        yield reader.end(told.job or "")

    def _several(self, source: Source, placing: Placing) -> Iterator[Imported]:
        held: Imported | None = None
        strange, names = 0, set[str]()
        try:
            for line in source.lines():
                if line.foreign:
                    strange += 1
                    continue
                if held is not None:
                    yield held
                name = text(line.value, "instance_id") or f"line {line.number}"
                name = f"{name}, line {line.number}" if name in names else name
                names.add(name)
                held = self._job(line.value, name, placing)
        except Damaged as damage:
            if held is None:
                raise source.broken(str(damage)) from None
            held = replace(held, warnings=(*held.warnings, str(damage)))
        if held is None:
            raise source.broken("holds no output of OpenHands")
        if strange:
            more = "a line holds no JSON and was left out"
            more = more if strange == 1 else f"{more} ({strange} times)"
            held = replace(held, warnings=(*held.warnings, more))
        yield held

    def _job(self, output: object, name: str, placing: Placing) -> Imported:
        """The job of one output; of one that cannot be read nothing is known."""
        told = Transcript("openhands", self.title, placing)
        reader = _Reader(told)
        told.job = name
        if not isinstance(output, dict):
            told.ledger.lose(_UNREAD)
            return reader.end(name)
        reader.about(output)
        history = output.get("history")
        if history is not None and not isinstance(history, list):
            told.ledger.lose(_NO_EVENT)
        for event in _flat(listing(history), told):
            reader.event(event)
        reader.outcome(output)
        return reader.end(name)


def _is_list(glimpse: Glimpse) -> bool:
    return glimpse.head.lstrip().startswith(b"[")


def _items(history: Source, told: Transcript) -> Iterator[object]:
    try:
        yield from history.items("item")
    except Damaged as damage:
        told.ledger.lose(str(damage))


def _event(event: dict[str, object]) -> bool:
    if text(event, "source") is None or "timestamp" not in event:
        return False
    kind = text(event, "kind")
    if kind is not None:
        return kind.endswith(_KINDS)
    return "args" in event if "action" in event else "observation" in event and "content" in event


def _output(output: dict[str, object]) -> bool:
    history = output.get("history")
    if not isinstance(history, list):
        return False
    if history:
        return any(_event(event) for event in _flat(history[:50]))
    return "instance_id" in output and ("metadata" in output or "test_result" in output)


def _listed(glimpse: Glimpse, place: str) -> bool:
    """Events stand in a list at this place."""
    if not glimpse.has(f"{place}.source", f"{place}.timestamp"):
        return False
    if glimpse.has(f"{place}.kind"):
        return str(glimpse.scalars[f"{place}.kind"]).endswith(_KINDS)
    return glimpse.has(f"{place}.action", f"{place}.args") or glimpse.has(
        f"{place}.observation", f"{place}.content"
    )


def _outputs(glimpse: Glimpse) -> bool:
    return _listed(glimpse, "history.item") or _listed(glimpse, "history.item.item")


def _flat(history: Iterable[object], told: Transcript | None = None) -> Iterator[dict[str, object]]:
    """The events of a history; old ones pair each action with its observation."""
    for each in history:
        for event in each if isinstance(each, list) else [each]:
            if isinstance(event, dict):
                yield event
            elif told is not None and event is not None:
                told.ledger.lose(_NO_EVENT)


class _Reader:
    """Tells a transcript what each event says, of whichever version it is."""

    def __init__(self, told: Transcript) -> None:
        self._told = told
        self._ending = Ending(told)
        self._v0 = EventsV0(told, self._ending)
        self._v1 = EventsV1(told, self._ending)
        self._agent: str | None = None
        self._model: str | None = None
        self._instruction: str | None = None

    def event(self, event: dict[str, object]) -> None:
        """One event."""
        if isinstance(event.get("kind"), str):
            self._v1.event(event)
        else:
            self._v0.event(event)

    def about(self, output: dict[str, object]) -> None:
        """What a benchmark's output says of the run before its events."""
        about = mapping(output, "metadata")
        self._agent = text(about, "agent_class")
        self._model = text(about, "llm_config", "model") or text(about, "llm", "model")
        self._instruction = text(output, "instruction")

    def outcome(self, output: dict[str, object]) -> None:
        """What a benchmark's output says of the run behind its events."""
        error = text(output, "error")
        if error and not (self._ending.completed and self._ending.finished):
            self._ending.stopped(error)
        metrics = mapping(output, "metrics")
        tokens = mapping(metrics, "accumulated_token_usage")
        if metrics:
            self._told.main.use(
                "all",
                model=self._model,
                input_tokens=whole(tokens, "prompt_tokens"),
                output_tokens=whole(tokens, "completion_tokens"),
                cost_usd=number(metrics, "accumulated_cost"),
            )

    def end(self, name: str = "") -> Imported:
        """The job, when all events were told."""
        told = self._told
        self._v1.end()
        if self._instruction and told.main.description is None:
            told.ask(self._instruction)
        program = f"OpenHands {self._v0.version}" if self._v0.version else "OpenHands"
        told.written_by(program, None, self._model or self._v1.model)
        return told.imported(name)
