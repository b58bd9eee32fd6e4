"""The evidence of one grading: all that a rule may see, in one frozen value."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from opsdrill.errors import Fault
from opsdrill.grading.gaps import Gap, gap_in, gap_in_values
from opsdrill.grading.searches import RuleSearches
from opsdrill.grading.targets import RAN, Values, collect, object_of
from opsdrill.grading.turns import Turn, turns_of
from opsdrill.model.host import HostAnswer
from opsdrill.model.result import MATCHES_SHOWN
from opsdrill.model.rules import HostState, PatternMatch, Where
from opsdrill.model.scenario import Scenario
from opsdrill.model.sealed import AnyCall, AnyRecord
from opsdrill.patterns import Found, Searcher


@dataclass(frozen=True)
class Evidence:
    """The scenario, the sealed job record, the host answers and the regex engine, which has the
    patterns of the scenario's rules ready in `searches`.

    What several rules read is built once and kept here.
    """

    scenario: Scenario
    record: AnyRecord
    answers: Sequence[HostAnswer]
    searcher: Searcher
    searches: RuleSearches
    _values: dict[Where, Values] = field(default_factory=dict, repr=False, compare=False)
    _gaps: dict[Where, Gap | None] = field(default_factory=dict, repr=False, compare=False)
    _found: dict[Where, Mapping[int, Found]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def values(self, where: Where) -> Values:
        """The values of a target, in their order."""
        found = self._values.get(where)
        if found is None:
            found = self._values[where] = collect(self.record, where)
        return found

    def found(self, rule: PatternMatch, index: int) -> Found:
        """What a search for the pattern of rule number `index` finds in the values of its target.

        The first question about a target has it searched for the patterns of all its rules.

        Raises:
            InvalidPattern: the pattern is refused.
        """
        self.searches.check(index)
        where = rule.where
        found = self._found.get(where)
        if found is None:
            texts = self.values(where).texts
            found = self._found[where] = self.searches.search(where, texts, MATCHES_SHOWN)
        return found[index]

    def gap(self, where: Where) -> Gap | None:
        """What the record does not know of the values of a target."""
        if where not in self._gaps:
            self._gaps[where] = gap_in_values(self.record.coverage, where)
        return self._gaps[where]

    @cached_property
    def tasks_gap(self) -> Gap | None:
        """What the record does not know of the tasks."""
        return gap_in(self.record.coverage, "tasks")

    @cached_property
    def turns(self) -> tuple[Turn, ...]:
        """The turns of the job, in order."""
        return turns_of(self.record.tasks)

    def answer(self, index: int) -> HostAnswer | None:
        """What the host answered to the `host_state` rule number `index`; None: not kept."""
        return self._answers.get(index)

    @cached_property
    def _answers(self) -> dict[int, HostAnswer]:
        """The n-th rule with a host and a command takes their n-th answer, at the end the last."""
        kept: dict[tuple[str, str], list[HostAnswer]] = defaultdict(list)
        for answer in self.answers:
            kept[answer.on, answer.run].append(answer)
        asked: dict[tuple[str, str], int] = defaultdict(int)
        taken = {}
        for index, rule in enumerate(self.scenario.validation):
            if not isinstance(rule, HostState):
                continue
            question = (self.scenario.host_of(rule.on), rule.run)
            if own := kept.get(question):
                taken[index] = own[min(asked[question], len(own) - 1)]
            asked[question] += 1
        return taken

    @property
    def blame(self) -> Fault | None:
        """Whose fault a failed rule is: the agent's, unless the ticket never became a job."""
        if self.record.job is not None:
            return "agent"
        return self.record.stop.fault if self.record.stop else None

    @property
    def acted(self) -> bool:
        """The agent did something that the record shows: it has a task."""
        return bool(self.record.tasks)

    def last_command(self, host: str) -> str | None:
        """The last shell command that the agent ran on a host; None: the record shows none.

        The last by start; the record's order where a command has no time.
        """
        calls: list[AnyCall] = [
            call
            for task in self.record.tasks
            if task.host == host
            for call in task.tool_calls
            if call.kind == "shell" and call.outcome in RAN
        ]
        if not calls:
            return None
        begun = [(call.started_at, call) for call in calls if call.started_at is not None]
        if len(begun) < len(calls):
            return object_of(calls[-1])
        return object_of(sorted(begun, key=lambda item: item[0])[-1][1])
