"""100,000 runs with result and grade in SQLite and in PostgreSQL: how long each call takes.

    .venv/bin/python benchmarks/store_load.py [--runs N] [--only sqlite|postgresql]

Prints milliseconds (median and 95th percentile) of every listing that pages and programs ask for:
each filter, and each two of them, forwards and backwards, the first page and one behind; all pages
to the end; counts; batches; one run read with its grades. PostgreSQL is Debian's, started for this
in a temporary folder.

The runs are of 40 scenarios, 5 agents, 1000 batches, with 3 labels and 2 tags each; a tenth is
planned. Values that no run has together are asked for too: there all rows of one index are passed.

Measured on two cores that others used too, 95th percentile of a page of 50 by all 264 filters and
orders: SQLite 5 ms, PostgreSQL 9, as long as it has counted nothing too. The slowest of them, all
planned runs that have a tag, of which there are none, takes 15 ms (median), 26 to 55 on PostgreSQL;
the slowest count, of two values that tens of thousands have, 24 and 53 to 74.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import combinations
from pathlib import Path

from pydantic import TypeAdapter

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.integration import postgres

from opsdrill.model.result import Completion, Fraction, Grade, Result, RuleResult
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.store import documents, rows
from opsdrill.store.documents import T
from opsdrill.store.folder import DATABASE, FILES
from opsdrill.store.home import database_url, open_store
from opsdrill.store.sql import SqlStore
from opsdrill.store.store import Order, RunFilter
from opsdrill.store.tables import BATCHES, DOCUMENTS, GRADES, MARKS, RUNS

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
PAGE = 50
AT_ONCE = 2000
TIMES = 10


def spec(number: int) -> RunSpec:
    key = number % 40
    scenario = Scenario(
        key=f"scenario-{key}",
        title="A full disk",
        ticket_title="Help us, please",
        tags=(f"tag-{key % 4}", "linux"),
    )
    return RunSpec(
        id=f"{number:026}",
        batch=f"batch-{number // 100:05}",
        scenario=scenario,
        scenario_version="v",
        agent=AgentChoice(adapter="script", argument=f"agent-{number // 40 % 5}"),
        lab=LabChoice(name="sandbox", driver="sandbox"),
        labels={"team": "sre", "night": f"{number // 1000}", "branch": f"b{number % 7}"},
        created_at=NOON + timedelta(seconds=number),
    )


def grade(number: int) -> Grade:
    verdict = ("passed", "failed", "error")[number % 3]
    rules = tuple(
        RuleResult(
            index=n, label=f"rule {n} of them all", validator="pattern_match", required=True,
            status="passed", reason="the pattern was found in 3 of the executed commands",
        )
        for n in range(6)
    )  # fmt: skip
    return Grade.model_validate(
        {
            "verdict": verdict,
            "fault": {"failed": "agent", "error": "infrastructure"}.get(verdict),
            "reason": "rule 2 failed: the command was run",
            "compliance": Fraction(passed=2, total=3),
            "remediation": Fraction(passed=1, total=1),
            "completion": Completion(status="passed", reason="completed"),
            "rules": rules,
        }
    )


def result(number: int) -> Result:
    planned = spec(number)
    return Result(
        run=planned.id, scenario=planned.scenario.key, agent=str(planned.agent),
        scenario_version="v", state="done",
    ).under(grade(number))  # fmt: skip


def seed(store: SqlStore, count: int) -> None:
    """Runs in bulk, as `plan` and `finish` would have kept them."""
    with store._database.write() as connection:
        batches = [
            {"id": spec(first).batch, "created_at": rows.created_at(spec(first))}
            for first in range(0, count, 100)
        ]
        connection.execute(BATCHES.insert(), batches)
    for first in range(0, count, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, count))
        done = [number for number in numbers if number % 10]
        bodies = [body(number, 0, "spec", documents.SPEC, spec(number)) for number in numbers]
        bodies += [body(number, 1, "result", documents.RESULT, result(number)) for number in done]
        marks = [
            {"run": number + 1} | mark for number in numbers for mark in rows.marks(spec(number))
        ]
        with store._database.write() as connection:
            connection.execute(RUNS.insert(), [run(number) for number in numbers])
            connection.execute(DOCUMENTS.insert(), bodies)
            connection.execute(MARKS.insert(), marks)
            connection.execute(GRADES.insert(), [graded(number) for number in done])


def run(number: int) -> dict[str, object]:
    over = number % 10 != 0
    later: dict[str, object] = {"number": number + 1, "state": "planned", "attempt": 0}
    if over:
        later |= {"state": "done", "attempt": 1} | rows.judged(grade(number))
    nothing = dict.fromkeys(rows.judged(grade(0)))
    return nothing | rows.planned(spec(number)) | later


def body(
    number: int, attempt: int, kind: str, adapter: TypeAdapter[T], value: T
) -> dict[str, object]:
    packed = documents.pack(documents.dump(adapter, value))
    assert packed is not None
    place = {"run": number + 1, "attempt": attempt, "kind": kind, "name": ""}
    return place | {"form": packed.form, "body": packed.data}


def graded(number: int) -> dict[str, object]:
    packed = documents.pack(documents.dump(documents.GRADE, grade(number)))
    assert packed is not None
    kept = {"run": number + 1, "number": 1, "cause": "run", "by": None, "created_at": 0}
    return kept | {"form": packed.form, "body": packed.data}


def filters(count: int) -> Iterator[tuple[str, RunFilter]]:
    """Every filter, and every two of them."""
    half = NOON + timedelta(seconds=count // 2)
    single: dict[str, dict[str, object]] = {
        "scenario": {"scenario": "scenario-3"},
        "agent": {"agent": "script:agent-1"},
        "done": {"state": "done"},
        "planned": {"state": "planned"},
        "running": {"state": "running"},
        "verdict": {"verdict": "error"},
        "batch": {"batch": "batch-00007"},
        "fault": {"fault": "agent"},
        "rare fault": {"fault": "opsdrill"},
        "tag": {"scenario_tag": "tag-3"},
        "wide tag": {"scenario_tag": "linux"},
        "label": {"labels": (("night", "9"),)},
        "wide label": {"labels": (("team", "sre"),)},
        "no such agent": {"agent": "nobody"},
        "since": {"since": half},
        "until": {"until": half},
    }
    yield "all", RunFilter()
    for name, one in single.items():
        yield name, RunFilter(**one)  # type: ignore[arg-type]
    for (name, one), (more, other) in combinations(single.items(), 2):
        if not one.keys() & other.keys():
            yield f"{name} + {more}", RunFilter(**one, **other)  # type: ignore[arg-type]
    trend = RunFilter(scenario="scenario-3", agent="script:agent-1", state="done", since=half)
    yield "scenario + agent + done + since", trend
    yield (
        "all of a trend, none there",
        RunFilter(
            agent="script:agent-1",
            verdict="passed",
            fault="agent",
            scenario_tag="linux",
            since=half,
        ),
    )


def timed(times: int, work: Callable[[int], object]) -> list[float]:
    """Milliseconds of each call."""
    found = []
    for number in range(times):
        start = time.perf_counter()
        work(number)
        found.append((time.perf_counter() - start) * 1000)
    return found


def p95(figures: list[float]) -> float:
    return sorted(figures)[int(len(figures) * 0.95)]


def show(what: str, figures: list[float]) -> None:
    print(f"{what:<44} {statistics.median(figures):9.2f} {p95(figures):9.2f}", flush=True)


def bench(store: SqlStore, count: int) -> None:
    slowest: list[tuple[float, str]] = []
    both: tuple[Order, ...] = ("-created_at", "created_at")
    every: list[float] = []
    for name, filter in filters(count):
        for order in both:
            first = store.page(filter, limit=PAGE, order=order)
            ask = partial(store.page, filter, limit=PAGE, order=order)
            figures = timed(TIMES, partial(_next, ask, (None, first.cursor)))
            every += figures
            slowest.append((statistics.median(figures), f"  {name}, {order}"))
    show(f"a page of {PAGE}, all {len(slowest)} filters and orders", every)
    print("  the slowest of them (median):")
    for figure, name in sorted(slowest, reverse=True)[:12]:
        print(f"{name:<44} {figure:9.2f}")
    counted = [
        (statistics.median(timed(3, partial(_count, store, filter))), f"  {name}")
        for name, filter in filters(count)
    ]
    print("  the slowest counts, up to 10,000 (median):")
    for figure, name in sorted(counted, reverse=True)[:6]:
        print(f"{name:<44} {figure:9.2f}")
    show("all pages of 200 to the end, each", to_the_end(store, RunFilter()))
    wide = RunFilter(labels=(("team", "sre"),))
    show("the same of a label that all have, each", to_the_end(store, wide))
    show(f"a page of {PAGE} batches", timed(TIMES, lambda _: store.batches(limit=PAGE)))
    show("one batch", timed(TIMES, lambda n: store.batch(f"batch-{n:05}")))
    ids = [spec(number * 7 % count).id for number in range(400)]
    show("read a run", timed(400, lambda n: store.get(ids[n])))
    show("read its grades", timed(400, lambda n: store.grades(ids[n])))
    show("find by the beginning of an id", timed(100, lambda n: store.find(ids[n][:24])))


def _next(ask: Callable[..., object], cursors: Sequence[str | None], turn: int) -> object:
    return ask(cursor=cursors[turn % len(cursors)])


def _count(store: SqlStore, filter: RunFilter, _: int) -> int:
    return store.count(filter)


def to_the_end(store: SqlStore, filter: RunFilter) -> list[float]:
    found, cursor = [], None
    while True:
        start = time.perf_counter()
        page = store.page(filter, limit=200, cursor=cursor)
        found.append((time.perf_counter() - start) * 1000)
        cursor = page.cursor
        if cursor is None:
            return found


def on_sqlite(folder: Path, count: int) -> None:
    open_store(folder).close()
    store = SqlStore(database_url(folder / DATABASE), folder / FILES)
    seed(store, count)
    print(f"SQLite: {(folder / DATABASE).stat().st_size / 1e6:.0f} MB")
    bench(store, count)
    store.close()


def on_postgresql(folder: Path, count: int) -> None:
    # It counts nothing by itself, as it has not yet right behind an import.
    server = postgres.Server(["autovacuum=off"])
    try:
        url = server.new_database()
        store = SqlStore(url, folder / FILES)
        seed(store, count)
        name = url.partition("?")[0].rpartition("/")[2]
        size = server.execute(f"SELECT pg_database_size('{name}')")[0][0]
        print(f"PostgreSQL without statistics: {int(str(size)) / 1e6:.0f} MB")
        bench(store, count)
        server.execute("VACUUM ANALYZE", name)
        print("PostgreSQL with statistics:")
        bench(store, count)
        store.close()
    finally:
        server.close()


BENCHES = {"sqlite": on_sqlite, "postgresql": on_postgresql}


def main() -> None:
    parser = argparse.ArgumentParser(description="100,000 runs in the store: each call timed.")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--only", choices=sorted(BENCHES))
    asked = parser.parse_args()
    print(f"{'milliseconds':<44} {'median':>9} {'p95':>9}", flush=True)
    for name, run_one in BENCHES.items():
        if asked.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                run_one(Path(folder), asked.runs)


if __name__ == "__main__":
    main()
