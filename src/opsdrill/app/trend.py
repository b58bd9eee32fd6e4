"""Trends: verdicts and compliance over time, errors apart."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from opsdrill.app.run_sets import filtered, mean_share, share
from opsdrill.store.store import RunFilter, RunRow, Store

MOST_RUNS = 20_000

Step = Literal["hour", "day", "week", "month"]


@dataclass(frozen=True, slots=True)
class Point:
    """What became of the runs created in one span of time."""

    since: datetime
    until: datetime
    rows: tuple[RunRow, ...]

    def count(self, verdict: str) -> int:
        return sum(row.verdict == verdict for row in self.rows)

    @property
    def pass_rate(self) -> float | None:
        """Passed of those that say something of the agent."""
        passed = self.count("passed")
        return share(passed, passed + self.count("failed"))

    @property
    def error_rate(self) -> float | None:
        """Errors of all that have a verdict."""
        return share(self.count("error"), sum(row.verdict is not None for row in self.rows))

    @property
    def compliance(self) -> float | None:
        return mean_share(row.compliance for row in self.rows)

    @property
    def remediation(self) -> float | None:
        return mean_share(row.remediation for row in self.rows)


@dataclass(frozen=True, slots=True)
class Trend:
    """The points that have runs, the oldest first; `cut`: the oldest runs were left out."""

    points: tuple[Point, ...]
    cut: bool


def trend(store: Store, narrowed: RunFilter, step: Step) -> Trend:
    """What became of runs over time; a run counts where it was created, in UTC."""
    runs = filtered(store, narrowed, MOST_RUNS)
    grouped: dict[datetime, list[RunRow]] = defaultdict(list)
    for row in runs.rows:
        grouped[_begin(row.created_at, step)].append(row)
    points = [Point(at, _end(at, step), tuple(rows)) for at, rows in sorted(grouped.items())]
    return Trend(tuple(points), runs.cut)


def _begin(moment: datetime, step: Step) -> datetime:
    hour = moment.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    if step == "hour":
        return hour
    day = hour.replace(hour=0)
    if step == "day":
        return day
    return day - timedelta(days=day.weekday()) if step == "week" else day.replace(day=1)


def _end(begin: datetime, step: Step) -> datetime:
    if step == "month":
        return (begin + timedelta(days=32)).replace(day=1)
    return begin + {
        "hour": timedelta(hours=1), "day": timedelta(days=1), "week": timedelta(days=7)
    }[step]  # fmt: skip
