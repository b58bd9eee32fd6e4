"""Traces of OpenTelemetry in which agents call tools: each trace with an agent or a tool is a job.

What is read of each span is in `otel_steps`, how a job comes of them in `otel_trace`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from opsdrill.evidence.importers.otel.spans import holds_spans, is_alone, spans_of
from opsdrill.evidence.importers.otel.steps import Step, step_of
from opsdrill.evidence.importers.otel.trace import TITLE, Tally, Trace
from opsdrill.evidence.transcripts.glimpse import Glimpse
from opsdrill.evidence.transcripts.imported import Imported, Placing
from opsdrill.evidence.transcripts.ledger import Ledger
from opsdrill.evidence.transcripts.source import Source
from opsdrill.evidence.transcripts.transcript import TOLD

HELD = 64 * 1024 * 1024
"""Characters of traces that are held at once; a file with more is read again for each so many."""


class OtelImporter:
    """Reads exports of spans."""

    title = TITLE

    def knows(self, glimpse: Glimpse) -> bool:
        """An export of spans."""
        return not glimpse.members and holds_spans(glimpse)

    def read(self, source: Source, placing: Placing) -> Iterator[Imported]:
        """Every trace with an agent or a tool in it, in the order of their first spans."""
        reader = _Reader(source)
        count = sum(found.is_job for found in reader.sizes.values())
        if not count:
            raise source.broken("holds no trace in which an agent or a tool is at work")
        for trace in reader.traces():
            imported = trace.imported(placing, reader.ledger)
            yield replace(imported, name="") if count == 1 else imported


@dataclass(slots=True)
class _Found:
    """What a first look shows of a trace."""

    size: int = 0
    is_job: bool = False
    tally: Tally = field(default_factory=Tally)


@dataclass(slots=True)
class _Reader:
    source: Source
    ledger: Ledger = field(default_factory=lambda: Ledger(TOLD))
    sizes: dict[str, _Found] = field(default_factory=dict)
    _first: dict[str, Trace] | None = None

    def __post_init__(self) -> None:
        """Look at all spans; keep them as long as they are few."""
        held, alone = 0, is_alone(self.source.glimpse)
        kept: dict[str, Trace] | None = {}
        for span in spans_of(self.source, self.ledger):
            step = step_of(span)
            found = self.sizes.setdefault(span.trace, _Found())
            size = found.tally.take(step)
            found.size += size
            found.is_job = found.is_job or (step is not None and (alone or _is_work(step)))
            held += size
            if held > HELD:
                kept = None
            if kept is not None:
                kept.setdefault(span.trace, Trace(span.trace)).add(span.id, span.parent, step, size)
        self._first = kept

    def traces(self) -> Iterator[Trace]:
        """The traces that are jobs."""
        jobs = [id for id, found in self.sizes.items() if found.is_job]
        if self._first is not None:
            yield from (self._first[id] for id in jobs)
            return
        while jobs:
            held, some = 0, set[str]()
            while jobs and (not some or held + self.sizes[jobs[0]].size <= HELD):
                held += self.sizes[jobs[0]].size
                some.add(jobs.pop(0))
            yield from self._read(some)

    def _read(self, ids: set[str]) -> Iterator[Trace]:
        traces: dict[str, Trace] = {}
        tallies = {id: Tally() for id in ids}
        for span in spans_of(self.source, Ledger(TOLD)):
            if span.trace in ids:
                step = step_of(span)
                size = tallies[span.trace].take(step)
                trace = traces.setdefault(span.trace, Trace(span.trace))
                trace.add(span.id, span.parent, step, size)
        yield from (traces[id] for id in self.sizes if id in traces)


def _is_work(step: Step) -> bool:
    """Whether an agent works here; a model that only answers is none."""
    return step.role != "model" or any(answer.calls for answer in step.answers)
