"""What tool calls gave, in every store: there with the record, and not read by a grade."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from opsdrill.errors import StoreDamaged
from opsdrill.model.job import Coverage, JobRecord, Seen, Task, ToolCall
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.model.sealed import read_record
from opsdrill.store import documents, queries
from opsdrill.store.home import open_store
from opsdrill.store.sql import SqlStore
from opsdrill.store.store import Owner, Store

US = Owner(machine="m", boot="b", pid=4711, started=99)


def begun(store: Store) -> str:
    store.plan(
        RunSpec(
            id="r1",
            scenario=Scenario(key="disk-full", title="A full disk", ticket_title="Help"),
            scenario_version="v",
            agent=AgentChoice(adapter="noop"),
            lab=LabChoice(name="sandbox", driver="sandbox"),
            created_at=datetime(2026, 1, 31, 12, tzinfo=UTC),
        )
    )
    store.begin("r1", US)
    return "r1"


def record(*outputs: str | None) -> JobRecord:
    calls = [
        ToolCall(kind="shell", arguments={"command": "df"}, outcome="ran", output=output)
        for output in outputs
    ]
    task = Task(id="t", host="web-01", status="completed", tool_calls=tuple(calls))
    coverage = Coverage(default=Seen(state="whole"))
    return JobRecord(format="opsdrill.job/1", job=None, tasks=(task,), coverage=coverage)


@pytest.mark.parametrize(
    "outputs",
    [(), (None,), ("",), ("/ is full\n", None), ("half a pair: \ud800",), ("x" * 2_000_000, "y")],
    ids=["no call", "no output", "an empty one", "some", "surrogate", "long"],
)
def test_a_record_comes_back_with_its_outputs(store: Store, outputs: tuple[str | None]) -> None:
    run = begun(store)
    store.save_record(run, 1, record(*outputs))
    assert store.record(run) == record(*outputs)
    (sealed,) = store.sealed([run])
    graded = read_record(sealed.record or b"")
    assert len(graded.tasks[0].tool_calls) == len(outputs)


def test_a_second_record_changes_no_output(store: Store) -> None:
    """A record is sealed once, with all that belongs to it, also where the first had no outputs."""
    run = begun(store)
    store.save_record(run, 1, record(None))
    store.save_record(run, 1, record("later"))
    assert store.record(run) == record(None)


def test_whoever_grades_reads_no_output(tmp_path: Path) -> None:
    """The largest part of most records is not read for a grade."""
    store = open_store(tmp_path)
    run = begun(store)
    store.save_record(run, 1, record("gave this"))
    (sealed,) = store.sealed([run])
    assert b"gave this" not in (sealed.record or b"")
    store.close()


def opened(folder: Path, kept: dict[str, bytes]) -> SqlStore:
    """A store with documents of a run as they were put there."""
    store = open_store(folder)
    assert isinstance(store, SqlStore)
    begun(store)
    with store._database.write() as connection:
        number, _ = queries.run_number(connection, "r1")
        for kind, content in kept.items():
            body = documents.pack(content)
            assert body is not None
            queries.put_document(connection, number, 1, kind, body)
    return store


def test_a_record_that_was_kept_whole_is_read_and_stays(tmp_path: Path) -> None:
    """As all were before outputs stood apart."""
    whole = record("gave this")
    store = opened(tmp_path, {"record": documents.dump(documents.RECORD, whole)})
    assert store.record("r1") == whole
    store.save_record("r1", 1, record("later"))
    assert store.record("r1") == whole
    store.close()


def test_outputs_of_another_record_are_damage(tmp_path: Path) -> None:
    kept = {
        "record": documents.dump(documents.RECORD, record(None)),
        "outputs": documents.dump(documents.OUTPUTS, (("a", "b"),)),
    }
    store = opened(tmp_path, kept)
    with pytest.raises(StoreDamaged, match="the job record of run r1 cannot be read back"):
        store.record("r1")
    store.close()
