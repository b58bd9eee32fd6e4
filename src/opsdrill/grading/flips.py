"""Flips: what one grade of a run judges otherwise than another."""

from __future__ import annotations

from dataclasses import dataclass

from opsdrill.model.result import Grade
from opsdrill.model.standing import Standing

NONE = "-"
"""What stands for a grade or a rule that there is not."""


@dataclass(frozen=True, slots=True)
class Flip:
    """One thing that another grade judges otherwise.

    Args:
        run: the run's id.
        scenario: its scenario's key.
        rule: `[INDEX] LABEL`; `verdict` or `completion` for the run itself.
        before: the status under the earlier grade, `-` where there was none.
        after: the status under the later one.
        reason: why it is so now.
    """

    run: str
    scenario: str
    rule: str
    before: str
    after: str
    reason: str


def flips(run: str, scenario: str, before: Standing | None, after: Grade) -> list[Flip]:
    """What `after` judges otherwise; a rule is the same where its index and validator are."""

    def flip(rule: str, was: str, now: str, reason: str) -> Flip:
        return Flip(run, scenario, rule, was, now, reason)

    if before is None:
        return [flip("verdict", NONE, after.verdict, after.reason)]
    found = []
    if before.verdict != after.verdict:
        found.append(flip("verdict", before.verdict, after.verdict, after.reason))
    then, now = before.completion, after.completion
    if then.status != now.status:
        found.append(flip("completion", then.status, now.status, now.reason))
    earlier = {(old.index, old.validator): old for old in before.rules}
    for rule in after.rules:
        old = earlier.pop((rule.index, rule.validator), None)
        was = old.status if old else NONE
        if was != rule.status:
            found.append(flip(_named(rule.index, rule.label), was, rule.status, rule.reason))
    found += [
        flip(_named(old.index, old.label), old.status, NONE, "the rule is gone")
        for old in earlier.values()
    ]
    return found


def _named(index: int, label: str) -> str:
    return f"[{index}] {label}"
