"""What kept runs of a scenario showed, for checks of its rules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opsdrill.app.stores import opener
from opsdrill.app.wiring import Place
from opsdrill.errors import StoreError
from opsdrill.grading.targets import collect
from opsdrill.model.rules import PatternMatch, Where
from opsdrill.model.scenario import Scenario
from opsdrill.patterns import BoundedSearcher, Searcher, compile_pattern
from opsdrill.scenarios.lint.check import Seen
from opsdrill.store.store import RunFilter, Store

RUNS = 20
"""How many of the last runs are looked at."""

CHARACTERS = 20_000_000
"""How much of the values of one target is looked at."""


class KeptValues:
    """The values of the last runs of one scenario, of the targets of its must-not rules.

    Raises:
        StoreError: the store cannot be read.
    """

    def __init__(self, store: Store, scenario: Scenario, searcher: Searcher) -> None:
        self._searcher = searcher
        asked = {
            rule.where
            for rule in scenario.validation
            if isinstance(rule, PatternMatch) and rule.negate
        }
        self._values = {where: _Values() for where in asked}
        rows = store.page(RunFilter(scenario=scenario.key, state="done"), limit=RUNS).rows
        for row in rows if asked else ():
            record = store.record(row.id)
            if record is not None:
                for where, values in self._values.items():
                    values.add(collect(record, where).texts)

    def seen(self, where: Where, pattern: str) -> Seen:
        """How many of the values of a target match a pattern that compiles."""
        values = self._values.get(where, _Values())
        found = self._searcher.search(compile_pattern(pattern), values.different)
        matched = sum(span is not None for span in found.spans)
        return Seen(values.runs, values.count, matched, known=not found.exhausted)


class _Values:
    """The values of one target: in how many runs there were any, how many, the different ones."""

    def __init__(self) -> None:
        self.runs = 0
        self.count = 0
        self._different: dict[str, None] = {}
        self._left = CHARACTERS

    def add(self, texts: tuple[str, ...]) -> None:
        """The values of one more run, as long as there is room."""
        self.runs += bool(texts)
        for text in texts:
            if text not in self._different:
                self._left -= len(text)
                if self._left < 0:
                    return
                self._different[text] = None
            self.count += 1

    @property
    def different(self) -> tuple[str, ...]:
        return tuple(self._different)


class KeptRuns:
    """The kept runs of all scenarios.

    Attributes:
        trouble: why they could not be looked at, where they could not.
    """

    def __init__(self, store: Store | None, searcher: Searcher, trouble: str | None = None) -> None:
        self._store = store
        self._searcher = searcher
        self.trouble = trouble

    def of(self, scenario: Scenario) -> KeptValues | None:
        """What the runs of one scenario showed; None where nothing is kept or can be read."""
        if self._store is None:
            return None
        try:
            return KeptValues(self._store, scenario, self._searcher)
        except StoreError as error:
            self._store, self.trouble = None, error.message
            return None


@contextmanager
def kept_values(place: Place) -> Iterator[KeptRuns]:
    """The kept runs, where there are any; no data folder is made for it."""
    with BoundedSearcher() as searcher:
        store, trouble = None, None
        if place.has_store:
            try:
                store = opener(place)()
            except StoreError as error:
                trouble = error.message
        try:
            yield KeptRuns(store, searcher, trouble)
        finally:
            if store is not None:
                store.close()
