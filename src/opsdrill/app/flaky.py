"""Flaky rules: those that passed in one run of a scenario's version and failed in another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from opsdrill.app.history import there
from opsdrill.errors import NotThere
from opsdrill.store.store import RunRow, Store

MOST_READ = 200
"""Runs that are looked into, the newest."""
MOST_FLAKY = 50


@dataclass(frozen=True, slots=True)
class Flaky:
    """A rule that does not judge alike, though scenario, version and agent are the same.

    Args:
        scenario: its key.
        agent: who worked.
        rule: `[INDEX] LABEL`.
        passed: in how many runs it passed.
        failed: in how many it failed.
        turned: how often it judged otherwise than in the run before.
        passed_in: the newest run where it passed.
        failed_in: the newest run where it failed.
    """

    scenario: str
    agent: str
    rule: str
    passed: int
    failed: int
    turned: int
    passed_in: str
    failed_in: str


_Key = tuple[str, str, str, str]


def flaky(store: Store, rows: Sequence[RunRow]) -> tuple[list[Flaky], bool]:
    """Flaky rules, those that turned most often first; whether older runs were left out.

    Args:
        store: where the runs are.
        rows: runs that are over; those in `error` say nothing.
    """
    judged = [row for row in rows if row.verdict in ("passed", "failed")]
    judged.sort(key=lambda row: row.created_at, reverse=True)
    seen: dict[_Key, list[tuple[str, str]]] = defaultdict(list)
    for row in judged[:MOST_READ]:
        try:
            with there(row.id):
                result = store.get(row.id).result
        except NotThere:
            continue  # deleted meanwhile
        for rule in result.rules if result else ():
            if result is not None and rule.status != "error":
                name = f"[{rule.index}] {rule.label}"
                key = (row.scenario, row.agent, name, result.scenario_version)
                seen[key].append((rule.status, row.id))
    found = [_one(key, told) for key, told in seen.items() if len({s for s, _ in told}) > 1]
    found.sort(key=lambda each: (-each.turned, each.scenario, each.rule))
    return found[:MOST_FLAKY], len(judged) > MOST_READ


def _one(key: _Key, told: Sequence[tuple[str, str]]) -> Flaky:
    """One rule from its statuses, the newest first."""
    scenario, agent, rule, _ = key
    statuses = [status for status, _ in told]
    newest = dict(reversed(told))
    turned = sum(a != b for a, b in pairwise(statuses))
    passed, failed = statuses.count("passed"), statuses.count("failed")
    runs = newest["passed"], newest["failed"]
    return Flaky(scenario, agent, rule, passed, failed, turned, *runs)
