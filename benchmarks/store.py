"""The store beside plain sqlite3 doing the same work on the same disk, in one run.

    .venv/bin/python benchmarks/store.py [--runs N] [--events N]

Prints milliseconds (median and 95th percentile) and the ratio of the medians. Plain sqlite3 has
the same pragmas and the same indexes, and writes and reads the same JSON; what is left is what
the store costs: SQLAlchemy, models, transactions.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from opsdrill.model.event import JOB_EVENT, JobEvent, ToolReturned
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.store import documents, rows
from opsdrill.store.cursor import microseconds
from opsdrill.store.folder import DATABASE, FILES
from opsdrill.store.home import database_url, open_store
from opsdrill.store.queries.listings import LISTED as LISTED_COLUMNS
from opsdrill.store.sql import SqlStore
from opsdrill.store.store import RunFilter
from opsdrill.store.tables import DOCUMENTS, RUNS

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
BATCH = 200
PAGE = 50
Figures = list[float]


def spec(number: int) -> RunSpec:
    return RunSpec(
        id=f"{number:026}",
        scenario=Scenario(
            key=f"scenario-{number % 40}", title="A full disk", ticket_title="Help us, please"
        ),
        scenario_version="v",
        agent=AgentChoice(adapter="script", argument=f"agent-{number % 5}"),
        lab=LabChoice(name="sandbox", driver="sandbox"),
        created_at=NOON + timedelta(seconds=number),
    )


def event(number: int) -> JobEvent:
    output = f"/var/log/app-{number}.log rotated\n" * 8
    return ToolReturned(
        at=NOON, task="t1", call=f"c{number}", outcome="ran", exit_code=0, output=output
    )


def timed(times: int, work: Callable[[int], object]) -> Figures:
    """Milliseconds of each call."""
    found = []
    for number in range(times):
        start = time.perf_counter()
        work(number)
        found.append((time.perf_counter() - start) * 1000)
    return found


def show(what: str, ours: Figures, plain: Figures) -> None:
    ratio = statistics.median(ours) / statistics.median(plain)
    cells = [f"{statistics.median(f):9.3f} {p95(f):9.3f}" for f in (ours, plain)]
    print(f"{what:<44} {cells[0]}   {cells[1]}   {ratio:6.2f}")


def p95(figures: Figures) -> float:
    return sorted(figures)[int(len(figures) * 0.95)]


def seed(store: SqlStore, count: int) -> None:
    """Runs in bulk, every tenth planned, the others done with one of three verdicts."""
    for first in range(1, count + 1, 5000):
        with store._database.write() as connection:
            numbers = range(first, min(first + 5000, count + 1))
            connection.execute(RUNS.insert(), [run_values(number) for number in numbers])
            connection.execute(DOCUMENTS.insert(), [spec_values(number) for number in numbers])


def run_values(number: int) -> dict[str, object]:
    over = number % 10 != 0
    verdict = ("passed", "failed", "error")[number % 3] if over else None
    reason = "rule 2 failed: the command was run" if over else ""
    judged: dict[str, object] = {
        "number": number,
        "state": "done" if over else "planned",
        "verdict": verdict,
        "reason": reason,
    }
    return rows.planned(spec(number)) | judged


def spec_values(number: int) -> dict[str, object]:
    body = documents.pack(documents.dump(documents.SPEC, spec(number)))
    assert body is not None
    return {
        "run": number, "attempt": 0, "kind": "spec", "name": "", "form": body.form,
        "body": body.data,
    }  # fmt: skip


def plain_connection(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    return connection


def bench_append(folder: Path, count: int) -> None:
    """Batches of 200 events, one transaction each."""
    batches = [
        [(seq, event(seq)) for seq in range(first, first + BATCH)]
        for first in range(0, count, BATCH)
    ]
    store = open_store(folder / "append")
    store.plan(spec(0))
    run = spec(0).id
    ours = timed(len(batches), lambda n: store.append_events(run, 1, batches[n]))
    with closing(plain_connection(folder / "append.db")) as plain:
        plain.execute("CREATE TABLE e (run, attempt, seq, body, PRIMARY KEY (run, attempt, seq))")

        def append(number: int) -> None:
            made = [(run, 1, seq, JOB_EVENT.dump_json(item)) for seq, item in batches[number]]
            plain.execute("BEGIN IMMEDIATE")
            plain.executemany("INSERT OR IGNORE INTO e VALUES (?, ?, ?, ?)", made)
            plain.execute("COMMIT")

        show(f"append {BATCH} events ({count} in all)", ours, timed(len(batches), append))

        def read(_: int) -> Sequence[JobEvent]:
            found = plain.execute("SELECT body FROM e WHERE run = ? ORDER BY seq", (run,))
            return [JOB_EVENT.validate_json(body) for (body,) in found]

        ours = timed(5, lambda _: list(store.events(run, attempt=1)))
        show(f"read {count} events", ours, timed(5, read))
    store.close()


LISTED = ", ".join(column.name for column in LISTED_COLUMNS)


def bench_listing(folder: Path, count: int) -> None:
    home = folder / "listing"
    open_store(home).close()
    store = SqlStore(database_url(home / DATABASE), home / FILES)
    seed(store, count)
    with closing(plain_connection(home / DATABASE)) as plain:

        def select(where: str, *values: object) -> list[object]:
            order = "ORDER BY created_at DESC, number DESC"
            text = f"SELECT {LISTED} FROM runs WHERE {where} {order} LIMIT {PAGE}"
            return plain.execute(text, values).fetchall()

        show(
            f"first page of {count} runs",
            timed(200, lambda _: store.page(RunFilter(), limit=PAGE)),
            timed(200, lambda _: select("1")),
        )
        deep = store.page(RunFilter(), limit=1000)
        for _ in range(min(50, count // 1000 - 2)):
            deep = store.page(RunFilter(), limit=1000, cursor=deep.cursor)
        last = deep.rows[-1].created_at
        micros = microseconds(last)
        show(
            "a page half way down",
            timed(200, lambda _: store.page(RunFilter(), limit=PAGE, cursor=deep.cursor)),
            timed(200, lambda _: select("(created_at, number) < (?, ?)", micros, 0)),
        )
        show(
            "first page of one scenario's failures",
            timed(200, lambda n: store.page(
                RunFilter(scenario=f"scenario-{n % 40}", verdict="failed"), limit=PAGE)),
            timed(200, lambda n: select("scenario=? AND verdict='failed'", f"scenario-{n % 40}")),
        )  # fmt: skip
        show(
            "a filter that nothing passes",
            timed(200, lambda _: store.page(RunFilter(agent="nobody", state="done"), limit=PAGE)),
            timed(200, lambda _: select("agent='nobody' AND state='done'")),
        )
        show(
            "get one run",
            timed(200, lambda n: store.get(spec(n * 7 + 1).id)),
            timed(200, lambda n: plain.execute(
                "SELECT * FROM runs JOIN documents d ON d.run = runs.number WHERE id=?",
                (spec(n * 7 + 1).id,)).fetchall()),
        )  # fmt: skip
    store.close()

    def opened(_: int) -> None:
        again = open_store(home)
        again.find("0")
        again.close()

    def plainly(_: int) -> None:
        with closing(plain_connection(home / DATABASE)) as connection:
            connection.execute("SELECT id FROM runs WHERE id >= '0' LIMIT 20").fetchall()

    show("open, one query, close", timed(50, opened), timed(50, plainly))


def main() -> None:
    parser = argparse.ArgumentParser(description="The store beside plain sqlite3.")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=10_000)
    asked = parser.parse_args()
    print(
        f"{'milliseconds':<44} {'store':>9} {'p95':>9}   {'sqlite3':>9} {'p95':>9}   {'ratio':>6}"
    )
    with tempfile.TemporaryDirectory() as folder:
        bench_append(Path(folder), asked.events)
        bench_listing(Path(folder), asked.runs)


if __name__ == "__main__":
    main()
