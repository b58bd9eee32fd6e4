"""What kept runs showed of a pattern: counted, bounded, and never in the way."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from opsdrill.app import recorded
from opsdrill.app.recorded import KeptRuns, KeptValues, kept_values
from opsdrill.app.wiring import Place
from opsdrill.errors import StoreError
from opsdrill.model.job import JobRecord
from opsdrill.model.result import Result
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.patterns import BoundedSearcher
from opsdrill.scenarios.lint.check import Seen
from opsdrill.scenarios.load import parse_scenario
from opsdrill.store.memory import MemoryStore
from opsdrill.store.store import Order, Owner, Page, RunFilter

US = Owner(machine="m", boot="b", pid=4711, started=99)
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def searcher() -> Iterator[BoundedSearcher]:
    with BoundedSearcher() as made:
        yield made


def scenario(key: str = "a") -> Scenario:
    rule = {"label": "a", "validator": "pattern_match", "pattern": "x", "negate": True}
    rules = [
        {**rule, "where": "executed_commands"},
        {**rule, "where": "gateway_summary", "negate": False},
    ]
    return parse_scenario({"key": key, "title": "t", "ticket_title": "t", "validation": rules})


def keep(store: MemoryStore, number: int, commands: list[str], *, key: str = "a") -> None:
    """One run that is done, with a sealed record."""
    name = f"r{number}"
    calls = [
        {"kind": "shell", "arguments": {"command": text}, "outcome": "ran"} for text in commands
    ]
    task = {"id": "t", "host": "web-01", "status": "completed", "tool_calls": calls}
    record = {
        "format": "opsdrill.job/1",
        "job": {"id": "j", "status": "completed"},
        "tasks": [task],
        "coverage": {"default": {"state": "whole"}},
    }
    spec = RunSpec(
        id=name,
        scenario=scenario(key),
        scenario_version="v",
        agent=AgentChoice(adapter="noop"),
        lab=LabChoice(name="fake", driver="fake"),
        created_at=NOON + timedelta(seconds=number),
    )
    store.plan(spec)
    store.begin(name, US)
    store.save_record(name, 1, JobRecord.model_validate(record))
    done = Result(run=name, scenario=key, agent="noop", scenario_version="v", state="done")
    store.finish(name, done, None)


def test_runs_values_and_matches_are_counted(searcher: BoundedSearcher) -> None:
    store = MemoryStore()
    keep(store, 1, ["ls", "sudo reboot"])
    keep(store, 2, ["ls", "df"])
    keep(store, 3, [])
    keep(store, 4, ["reboot"], key="another")
    values = KeptValues(store, scenario(), searcher)
    assert values.seen("executed_commands", r"\breboot\b") == Seen(2, 4, 1)
    assert values.seen("executed_commands", "mkfs") == Seen(2, 4, 0)


def test_targets_of_other_rules_are_not_read(searcher: BoundedSearcher) -> None:
    store = MemoryStore()
    keep(store, 1, ["ls"])
    assert KeptValues(store, scenario(), searcher).seen("job_plan", "x") == Seen(0, 0, 0)


def test_only_the_last_runs_and_so_many_characters_are_looked_at(
    searcher: BoundedSearcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorded, "RUNS", 2)
    monkeypatch.setattr(recorded, "CHARACTERS", 8)
    store = MemoryStore()
    for number, command in enumerate(["reboot", "aaaa", "bbbb"]):
        keep(store, number, [command, command])
    values = KeptValues(store, scenario(), searcher)
    assert values.seen("executed_commands", "reboot") == Seen(2, 4, 0)
    monkeypatch.setattr(recorded, "CHARACTERS", 7)
    less = KeptValues(store, scenario(), searcher)
    assert less.seen("executed_commands", "aaaa").values == 2


def test_a_search_without_an_end_is_said_to_be_one() -> None:
    store = MemoryStore()
    keep(store, 1, ["x" + "a" * 40 + "!"])
    with BoundedSearcher(0.05) as searcher:
        values = KeptValues(store, scenario(), searcher)
        assert not values.seen("executed_commands", r"(?=x)x(a+)+$").known


def test_a_store_that_fails_is_told_once_and_asked_no_more(searcher: BoundedSearcher) -> None:
    class Broken(MemoryStore):
        def page(
            self,
            filter: RunFilter,
            *,
            limit: int = 50,
            cursor: str | None = None,
            order: Order = "-created_at",
            count_to: int | None = None,
        ) -> Page:
            raise StoreError("the disk is gone")

    kept = KeptRuns(Broken(), searcher)
    assert kept.of(scenario()) is None
    assert kept.trouble == "the disk is gone"
    assert kept.of(scenario()) is None


def test_no_data_folder_is_made_to_look_into(tmp_path: Path) -> None:
    place = Place(tmp_path / "home", tmp_path)
    with kept_values(place) as kept:
        assert kept.of(scenario()) is None and kept.trouble is None
    assert not place.home.exists()
