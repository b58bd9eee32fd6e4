"""Three ways to go from records in memory to which rules are found, in one process.

A plain loop of `re` with the counts and spans that a grade has; `re2.Set` for each value, which
tells of each pattern only whether it is there; and grading, whole. All take the values from the
record first.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import re2
from benchmarks.grading_peers.jobs import RULES
from benchmarks.grading_peers.scenario import SCENARIO

from opsdrill.grading.engine import Grader
from opsdrill.model.result import MATCHES_SHOWN, RuleResult
from opsdrill.model.sealed import AnyRecord
from opsdrill.patterns import BoundedSearcher, Span

TARGETS = ("executed_commands", "agent_messages")

Hits = tuple[int, list[tuple[int, Span]]]
"""In how many values a pattern was found; the first of them by place, with the span."""


def values_of(record: AnyRecord) -> dict[str, list[str]]:
    return {
        "executed_commands": [
            call.arguments["command"]  # type: ignore[index,call-overload,misc]
            for task in record.tasks
            for call in task.tool_calls
            if call.kind == "shell" and call.outcome in ("ran", "failed", "timed_out")
        ],
        "agent_messages": [said.text for task in record.tasks for said in task.messages],
    }


def plain_loop() -> Callable[[AnyRecord], list[Hits]]:
    compiled = [(rule.where, re.compile(rule.pattern, re.IGNORECASE)) for rule in RULES]

    def work(record: AnyRecord) -> list[Hits]:
        values = values_of(record)
        found: list[Hits] = []
        for where, pattern in compiled:
            search = pattern.search
            hits = [(at, hit) for at, value in enumerate(values[where]) if (hit := search(value))]
            found.append((len(hits), [(at, hit.span()) for at, hit in hits[:MATCHES_SHOWN]]))
        return found

    return work


def bare_set() -> Callable[[AnyRecord], list[bool]]:
    sets: Mapping[str, re2.Set] = {}
    numbers: dict[str, list[int]] = {}
    options = re2.Options()
    options.case_sensitive = False
    sets = {where: re2.Set.SearchSet(options) for where in TARGETS}
    for number, rule in enumerate(RULES):
        sets[rule.where].Add(rule.pattern)
        numbers.setdefault(rule.where, []).append(number)
    for made in sets.values():
        made.Compile()

    def work(record: AnyRecord) -> list[bool]:
        found = [False] * len(RULES)
        for where, values in values_of(record).items():
            match, rules = sets[where].Match, numbers[where]
            for value in values:
                for each in match(value) or ():
                    found[rules[each]] = True
        return found

    return work


def check(records: Sequence[AnyRecord], grader: Grader) -> None:
    """All three find the same."""
    plain, bare = plain_loop(), bare_set()
    for record in records:
        rules = grader.grade(record, ()).rules
        assert list(map(_hits, rules)) == plain(record)
        assert [rule.match_count > 0 for rule in rules] == bare(record)


def _hits(rule: RuleResult) -> Hits:
    return rule.match_count, [(hit.item, hit.span or (-1, -1)) for hit in rule.matches]


def measure(records: Sequence[AnyRecord], rounds: int) -> dict[str, float]:
    """Median milliseconds of CPU a run of each way, all of them in every round."""
    with BoundedSearcher() as searcher:
        grader = Grader(SCENARIO, searcher)
        check(records, grader)
        ways: dict[str, Callable[[AnyRecord], object]] = {
            "plain re": plain_loop(),
            "bare re2.Set": bare_set(),
            "grading": lambda record: grader.grade(record, ()),
        }
        spent: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, way in ways.items():
                begin = time.process_time()
                for record in records:
                    way(record)
                spent[name].append((time.process_time() - begin) / len(records) * 1000)
    return {name: statistics.median(figures) for name, figures in spent.items()}
