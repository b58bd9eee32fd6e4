"""What the store has of a run behind a position, as news in their order."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from opsdrill.app import documents
from opsdrill.app.events.news import News
from opsdrill.app.events.position import END, Position
from opsdrill.app.history import unfinished
from opsdrill.app.own_folders import told_phase, told_result
from opsdrill.model.event import JobEvent, ToolReturned
from opsdrill.model.result import Phase
from opsdrill.store.store import Store, StoredRun

MOST_NEWS = 200
MOST_BYTES = 256 * 1024
"""Of one page."""
PAGES_KEPT = 64
OUTPUT_SHOWN = 16 * 1024
"""Characters of a tool call's output; the evidence has the whole."""

_WORKED = "execute"


class Pages:
    """Reads news page by page; full pages are kept for the next who asks. Used from any thread.

    Args:
        store: where they are.
        folders: folders of this machine that are not told.
    """

    def __init__(self, store: Store, folders: Sequence[str] = ()) -> None:
        self._store = store
        self.folders = folders
        self._kept: OrderedDict[tuple[str, Position], list[News]] = OrderedDict()
        self._lock = threading.Lock()

    def news(self, run: str, position: Position) -> list[News]:
        """What is behind a position: who gets some asks again from the last one's place.

        Raises:
            KeyError: there is no such run.
        """
        with self._lock:
            kept = self._kept.get((run, position))
        if kept is not None:
            return kept
        stored = self._store.get(run)
        begin = position if position.attempt == stored.attempt else Position(stored.attempt)
        shown = replace(
            stored,
            result=told_result(stored.result, self.folders) if stored.result else None,
            phases=tuple(told_phase(phase, self.folders) for phase in stored.phases),
        )
        found, full = _page(_behind(self._store, shown, begin))
        if full:
            # What is behind a full page's news may change, these do not.
            with self._lock:
                self._kept[run, position] = found
                if len(self._kept) > PAGES_KEPT:
                    self._kept.popitem(last=False)
        return found

    def events(self, run: str, position: Position) -> list[News]:
        """The agent's events alone behind a position in the phase in which it works."""
        return _page(_events(self._store, run, position))[0]


def _page(behind: Iterator[News]) -> tuple[list[News], bool]:
    """The first news, bounded in number and in bytes; whether there may be more."""
    found: list[News] = []
    size = 0
    for news in behind:
        found.append(news)
        size += len(news.data)
        if len(found) >= MOST_NEWS or size >= MOST_BYTES:
            return found, not news.last
    return found, False


def sound(store: Store, run: str, position: Position) -> Position:
    """A position, if the run ever came there; else the beginning.

    Raises:
        KeyError: there is no such run.
    """
    stored = store.get(run)
    if position.attempt != stored.attempt or position.turns > len(list(_turns(stored.phases))):
        return Position()
    if position.events:
        last = position.events - 1
        found = next(iter(store.events(run, attempt=position.attempt, after=last - 1)), None)
        if found is None or found[0] != last:
            return Position()
    return position


def _behind(store: Store, stored: StoredRun, position: Position) -> Iterator[News]:
    run = stored.spec.id
    worked = False
    for turn, phase in enumerate(_turns(stored.phases), 1):
        ended = phase.status != "running"
        if phase.name == _WORKED and not ended:
            worked = True
        if worked and (phase.name != _WORKED or ended):
            # All that the agent did was kept before its phase ended.
            for news in _events(store, run, position):
                yield news
                position = _place(news)
            worked = False
        if turn > position.turns:
            position = Position(position.attempt, turn, position.events)
            yield _phase_news(run, position, phase)
    if worked:
        for news in _events(store, run, position):
            yield news
            position = _place(news)
    if stored.over:
        yield _result_news(stored)


def _turns(phases: tuple[Phase, ...]) -> Iterator[Phase]:
    """Every beginning and every end of a phase, in order."""
    for phase in phases:
        yield Phase(name=phase.name, status="running", started_at=phase.started_at)
        if phase.status != "running":
            yield phase


def _events(store: Store, run: str, position: Position) -> Iterator[News]:
    attempt = position.attempt
    after = position.events - 1
    for seq, event in store.events(run, attempt=attempt, after=after):
        yield _job_news(run, Position(attempt, position.turns, seq + 1), seq, event)


def _phase_news(run: str, position: Position, phase: Phase) -> News:
    about = {"run": run, "attempt": position.attempt}
    return _news("phase", "phase", position, about, documents.of_model(phase, indented=False))


def _job_news(run: str, position: Position, seq: int, event: JobEvent) -> News:
    about: dict[str, object] = {"run": run, "attempt": position.attempt, "seq": seq}
    if isinstance(event, ToolReturned) and event.output and len(event.output) > OUTPUT_SHOWN:
        about["output_characters"] = len(event.output)
        event = event.model_copy(update={"output": event.output[:OUTPUT_SHOWN]})
    return _news("job", "event", position, about, documents.of_model(event, indented=False))


def _news(kind: str, name: str, position: Position, about: dict[str, object], what: bytes) -> News:
    head = documents.written(about)[:-1]
    data = b'%s,"%s":%s}' % (head, name.encode(), what)
    return News(kind, data, str(position), (position,))


def _result_news(stored: StoredRun) -> News:
    result = stored.result or unfinished(stored.spec, stored.state)
    return News("result", documents.of_model(result, indented=False), END, None, last=True)


def _place(news: News) -> Position:
    assert news.mark is not None
    [position] = news.mark
    assert isinstance(position, Position)
    return position
