"""Listings of runs by every filter, in both orders, and of batches, in every store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from opsdrill.errors import NotThere, UsageError
from opsdrill.model.result import Completion, Grade, Result
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.store.store import RunFilter, Store

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def spec(
    id: str,
    *,
    tags: Sequence[str] = (),
    labels: dict[str, str] | None = None,
    batch: str | None = None,
    scenario: str = "disk-full",
    agent: str = "one",
    lab: str = "sandbox",
    minute: int = 0,
) -> RunSpec:
    return RunSpec(
        id=id,
        batch=batch,
        scenario=Scenario(key=scenario, title="A full disk", ticket_title="Help", tags=tuple(tags)),
        scenario_version="v",
        agent=AgentChoice(adapter="script", argument=agent),
        lab=LabChoice(name=lab, driver="sandbox"),
        labels=labels or {},
        created_at=NOON + timedelta(minutes=minute),
    )


def finish(store: Store, run: str, verdict: str, fault: str | None) -> None:
    completion = Completion(status="passed", reason="completed")
    grade = Grade.model_validate(
        {"verdict": verdict, "fault": fault, "reason": "because", "completion": completion}
    )
    result = Result(
        run=run, scenario="disk-full", agent="one", scenario_version="v", state="done",
        verdict=grade.verdict, fault=grade.fault,
    )  # fmt: skip
    store.finish(run, result, grade)


def ids(store: Store, filter: RunFilter) -> list[str]:
    found = [row.id for row in store.page(filter).rows]
    assert store.count(filter) == len(found)
    assert store.page(filter, limit=1, count_to=1000).count == len(found)
    assert [row.id for row in store.page(filter, order="created_at").rows] == found[::-1]
    return found


@pytest.fixture
def filled(store: Store) -> Store:
    """Six runs that differ in everything a listing can be narrowed to."""
    store.plan(spec("a", tags=["net", "web"], labels={"team": "sre", "night": "1"}, minute=0))
    store.plan(spec("b", tags=["net"], labels={"team": "dev"}, batch="b1", minute=1))
    store.plan(spec("c", labels={"sre": "team"}, batch="b1", scenario="other", minute=2))
    store.plan(spec("d", tags=["web"], labels={"team": "sre"}, batch="b2", agent="two", minute=3))
    store.plan(spec("e", tags=["net", "web"], labels={"team": "sre"}, agent="two", minute=4))
    store.plan(spec("f", tags=["net"], labels={"team": "sre", "night": "2"}, lab="own", minute=5))
    finish(store, "a", "passed", None)
    finish(store, "b", "failed", "agent")
    finish(store, "d", "error", "infrastructure")
    finish(store, "e", "failed", "agent")
    return store


@pytest.mark.parametrize(
    ("filter", "wanted"),
    [
        (RunFilter(labels=(("team", "sre"),)), "feda"),
        (RunFilter(labels=(("team", "sre"), ("night", "1"))), "a"),
        (RunFilter(labels=(("team", "sre"), ("team", "dev"))), ""),
        (RunFilter(labels=(("sre", "sre"),)), ""),
        (RunFilter(scenario_tag="net"), "feba"),
        (RunFilter(scenario_tag="NET"), ""),
        (RunFilter(scenario_tag="team"), ""),
        (RunFilter(scenario_tag="net", labels=(("team", "sre"),)), "fea"),
        (RunFilter(scenario_tag="web", agent="script:two"), "ed"),
        (RunFilter(fault="agent"), "eb"),
        (RunFilter(lab="own"), "f"),
        (RunFilter(lab="sandbox", verdict="failed"), "eb"),
        (RunFilter(fault="agent", batch="b1"), "b"),
        (RunFilter(fault="infrastructure", verdict="error"), "d"),
        (RunFilter(since=NOON + timedelta(minutes=4)), "fe"),
        (RunFilter(until=NOON + timedelta(minutes=1)), "a"),
        (RunFilter(since=NOON, until=NOON + timedelta(minutes=2)), "ba"),
        (RunFilter(since=NOON + timedelta(minutes=1), scenario_tag="net", verdict="failed"), "eb"),
        (RunFilter(until=NOON + timedelta(minutes=5), labels=(("team", "sre"),)), "eda"),
        (RunFilter(state="planned", scenario_tag="net"), "f"),
        (RunFilter(state="planned", labels=(("team", "sre"),)), "f"),
        (RunFilter(state="done", agent="script:two", verdict="failed"), "e"),
        (RunFilter("disk-full", "script:two", "done", "error", "b2", "infrastructure", "web",
                   (("team", "sre"),), NOON, NOON + timedelta(hours=1)), "d"),
        (RunFilter(scenario="", agent="", batch=""), ""),
    ],
)  # fmt: skip
def test_a_listing_is_narrowed(filled: Store, filter: RunFilter, wanted: str) -> None:
    assert ids(filled, filter) == list(wanted)


def test_any_two_filters_hold_both(filled: Store) -> None:
    """Each pair lists what each of the two lists."""
    single: list[dict[str, object]] = [
        {"scenario": "disk-full"}, {"agent": "script:two"}, {"state": "done"}, {"state": "planned"},
        {"verdict": "failed"}, {"batch": "b1"}, {"fault": "agent"}, {"scenario_tag": "net"},
        {"labels": (("team", "sre"),)}, {"since": NOON + timedelta(minutes=2)},
        {"until": NOON + timedelta(minutes=4)},
    ]  # fmt: skip
    alone = [set(ids(filled, RunFilter(**one))) for one in single]  # type: ignore[arg-type]
    for (n, one), (m, other) in product(enumerate(single), repeat=2):
        if not one.keys() & other.keys():
            both = RunFilter(**one, **other)  # type: ignore[arg-type]
            assert set(ids(filled, both)) == alone[n] & alone[m], both


@pytest.mark.parametrize("order", ["created_at", "-created_at"])
@pytest.mark.parametrize(
    "filter", [RunFilter(), RunFilter(labels=(("x", "y"),)), RunFilter(scenario_tag="t")], ids=str
)
def test_pages_stay_right_while_rows_arrive(store: Store, filter: RunFilter, order: str) -> None:
    """In both orders, with runs of the same moment among them."""
    for n in range(9):
        store.plan(spec(f"r{n}", tags=["t"], labels={"x": "y"}, minute=n // 3))
    page = store.page(filter, limit=2, order=order)  # type: ignore[arg-type]
    seen = [row.id for row in page.rows]
    store.plan(spec("late", tags=["t"], labels={"x": "y"}, minute=9))
    store.plan(spec("early", tags=["t"], labels={"x": "y"}, minute=-9))
    while page.cursor is not None:
        page = store.page(filter, limit=2, cursor=page.cursor, order=order)  # type: ignore[arg-type]
        seen += [row.id for row in page.rows]
    wanted = [f"r{n}" for n in range(9)]
    assert seen == ([*wanted, "late"] if order == "created_at" else [*wanted[::-1], "early"])


def test_counting_stops(store: Store) -> None:
    for n in range(5):
        store.plan(spec(f"r{n}", tags=["t"]))
    assert store.count(RunFilter()) == 5
    assert store.count(RunFilter(), at_most=3) == 3
    assert store.page(RunFilter(), count_to=3).count == 3
    second = store.page(
        RunFilter(), limit=2, cursor=store.page(RunFilter(), limit=4).cursor, count_to=9
    )
    assert (len(second.rows), second.cursor, second.count) == (1, None, 5)
    assert store.page(RunFilter()).count is None
    assert store.count(RunFilter(scenario_tag="t"), at_most=4) == 4
    assert store.count(RunFilter(), at_most=0) == 0


def test_a_regraded_run_is_found_by_its_latest_grade(filled: Store) -> None:
    completion = Completion(status="passed", reason="completed")
    grade = Grade(verdict="failed", fault="agent", reason="edited", completion=completion)
    filled.add_grade("a", grade, cause="regrade")
    assert ids(filled, RunFilter(fault="agent", scenario_tag="net")) == ["e", "b", "a"]


@pytest.mark.parametrize("text", ["nul\0", "\ud83d", "\\", "%", "x" * 200], ids=range(5))
def test_any_text_finds_what_has_it(store: Store, text: str) -> None:
    store.plan(spec("a", tags=[text], labels={text: text}, batch=text, agent=text))
    assert ids(store, RunFilter(labels=((text, text),))) == ["a"]
    assert ids(store, RunFilter(scenario_tag=text)) == ["a"]
    assert ids(store, RunFilter(batch=text, agent=f"script:{text}")) == ["a"]
    assert store.batch(text).id == text


def test_long_tags_are_no_trouble_and_long_labels_are_refused(store: Store) -> None:
    store.plan(spec("a", tags=["x" * 100_000, "x" * 99_999]))
    assert ids(store, RunFilter(scenario_tag="x" * 100_000)) == ["a"]
    for labels in ({"x" * 201: ""}, {"x": "y" * 201}):
        with pytest.raises(UsageError, match="a label has at most 200"):
            store.plan(spec("b", labels=labels))


def test_a_batch_is_its_runs_counted(filled: Store) -> None:
    row = filled.batch("b1")
    assert (row.id, row.created_at, row.runs) == ("b1", NOON + timedelta(minutes=1), 2)
    assert (row.states, row.verdicts) == ({"done": 1, "planned": 1}, {"failed": 1})
    assert (row.scenarios, row.agents) == (("disk-full", "other"), ("script:one",))
    with pytest.raises(NotThere, match="batch 'b9'"):
        filled.batch("b9")


def test_a_batch_tells_who_started_it(store: Store) -> None:
    store.plan(spec("a", batch="b1", labels={"by": "nightly", "team": "sre"}))
    store.plan(spec("b", batch="b1", labels={"by": "somebody"}, minute=1))
    store.plan(spec("c", batch="b2", labels={"team": "by"}, minute=2))
    assert [(row.id, row.by) for row in store.batches().rows] == [("b2", None), ("b1", "nightly")]
    store.delete("a")
    assert store.batch("b1").by == "somebody"


def test_batches_are_listed_the_newest_first(store: Store) -> None:
    assert store.batches().rows == ()
    for n in range(7):
        store.plan(spec(f"r{n}", batch=f"b{n}", minute=n))
    store.plan(spec("again", batch="b0", minute=60))
    page = store.batches(limit=3)
    seen = [row.id for row in page.rows]
    store.plan(spec("new", batch="new", minute=90))
    while page.cursor is not None:
        page = store.batches(limit=3, cursor=page.cursor)
        seen += [row.id for row in page.rows]
    assert seen == ["b6", "b5", "b4", "b3", "b2", "b1", "b0"]
    assert store.batches().rows[-1].runs == 2
    assert store.batches(limit=8).cursor is None
    with pytest.raises(UsageError, match="cursor"):
        store.batches(cursor="x")
    with pytest.raises(UsageError, match="1 to 1000"):
        store.batches(limit=1001)


def test_a_batch_stands_where_its_first_run_stands(store: Store) -> None:
    store.plan(spec("late", batch="b1", minute=9))
    store.plan(spec("other", batch="b2", minute=5))
    store.plan(spec("early", batch="b1", minute=0))
    assert [(row.id, row.created_at) for row in store.batches().rows] == [
        ("b2", NOON + timedelta(minutes=5)),
        ("b1", NOON),
    ]


def test_a_batch_goes_with_its_last_run(filled: Store) -> None:
    filled.delete("b")
    assert filled.batch("b1").runs == 1
    filled.delete("c")
    with pytest.raises(NotThere):
        filled.batch("b1")
    assert [row.id for row in filled.batches().rows] == ["b2"]
    filled.plan(spec("g", batch="b1"))
    assert filled.batch("b1").runs == 1


def test_deleted_runs_are_found_by_nothing(filled: Store) -> None:
    filled.delete("a")
    assert ids(filled, RunFilter(labels=(("night", "1"),))) == []
    assert ids(filled, RunFilter(scenario_tag="net")) == ["f", "e", "b"]
