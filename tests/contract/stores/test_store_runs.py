"""The course of a run, listings and grades, in every store (the protocol of `Store`)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from opsdrill.errors import StoreError, UsageError
from opsdrill.model.host import HostAnswer
from opsdrill.model.job import Coverage, JobRecord, Seen
from opsdrill.model.result import Completion, Fraction, Grade, Match, Phase, Result, RuleResult
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec, StoredFile
from opsdrill.model.scenario import HostSpec, Scenario
from opsdrill.store.store import Owner, RunFilter, RunRow, Store

US = Owner(machine="m", boot="b", pid=4711, started=99)
NOON = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)


def spec(
    id: str = "r1", *, scenario: str = "disk-full", agent: str = "noop", at: datetime = NOON
) -> RunSpec:
    return RunSpec(
        id=id,
        scenario=Scenario(
            key=scenario, title="A full disk", ticket_title="Help", hosts=(HostSpec(name="web-01"),)
        ),
        scenario_version="v",
        agent=AgentChoice(adapter="script", argument=agent),
        lab=LabChoice(name="sandbox", driver="sandbox"),
        labels={"team": "sre"},
        created_at=at,
    )


def a_grade(verdict: str = "passed", *, reason: str = "because") -> Grade:
    rule = RuleResult(
        index=0,
        label="no reboot",
        validator="pattern_match",
        required=True,
        status="passed",
        reason=reason,
        match_count=1,
        matches=(Match(task="t", where="executed_commands", item=0, value="ls", span=(0, 2)),),
    )
    return Grade.model_validate(
        {
            "scenario_version": "v",
            "verdict": verdict,
            "reason": reason,
            "fault": "agent" if verdict == "failed" else None,
            "compliance": Fraction(passed=2, total=3, not_evaluated=1),
            "remediation": Fraction(passed=1, total=1),
            "completion": Completion(status="passed", reason="completed"),
            "rules": (rule,),
            "warnings": ("an old warning",),
        }
    )


def a_result(run: str, grade: Grade | None, *, state: str = "done", reason: str = "") -> Result:
    return Result.model_validate(
        {
            "run": run,
            "scenario": "disk-full",
            "agent": "script:noop",
            "scenario_version": "v",
            "state": state,
            "verdict": grade and grade.verdict,
            "reason": grade.reason if grade else reason,
            "fault": grade and grade.fault,
            "compliance": grade and grade.compliance,
            "remediation": grade and grade.remediation,
            "completion": grade and grade.completion,
            "rules": grade.rules if grade else (),
            "warnings": (*grade.warnings, "restore failed") if grade else (),
        }
    )


def finished(store: Store, id: str, verdict: str = "passed", **more: str) -> None:
    grade = a_grade(verdict)
    store.plan(spec(id, **more))  # type: ignore[arg-type]
    store.begin(id, US)
    store.finish(id, a_result(id, grade), grade)


def rows(store: Store, **narrowed: str) -> list[str]:
    return [row.id for row in store.page(RunFilter(**narrowed)).rows]  # type: ignore[arg-type]


def test_a_run_is_planned_first(store: Store) -> None:
    """A run's row is written first as `planned`."""
    store.plan(spec())
    kept = store.get("r1")
    assert kept.spec == spec()
    assert (kept.state, kept.attempt, kept.owner, kept.result) == ("planned", 0, None, None)
    assert (kept.created_at, kept.started_at, kept.ended_at) == (NOON, None, None)
    assert store.page(RunFilter()).rows == (
        RunRow(
            id="r1", batch=None, scenario="disk-full", title="A full disk", agent="script:noop",
            lab="sandbox", repeat=1, state="planned", verdict=None, fault=None, reason="",
            compliance=None, remediation=None, after_agent=False, created_at=NOON, ended_at=None,
        ),
    )  # fmt: skip


def test_planning_an_id_again_changes_nothing(store: Store) -> None:
    store.plan(spec())
    store.begin("r1", US)
    store.plan(spec(scenario="other"))
    assert store.get("r1").spec.scenario.key == "disk-full"
    assert store.get("r1").state == "running"


def test_many_runs_are_planned_together(store: Store) -> None:
    """Told are those that are planned now; what is there already stays as it is."""
    store.plan(spec("r1", scenario="other"))
    store.plan(spec("r2"))
    store.begin("r2", US)
    many = [spec(f"r{n}").model_copy(update={"batch": "b1"}) for n in range(1, 251)]
    assert store.plan_all(many, US) == {f"r{n}" for n in range(1, 251)} - {"r2"}
    assert store.plan_all(many) == {f"r{n}" for n in range(1, 251)} - {"r2"}
    assert [store.get(f"r{n}").spec for n in range(3, 251)] == many[2:]
    assert store.get("r1").spec.scenario.key == "other"
    assert (store.get("r2").state, store.get("r3").owner) == ("running", US)
    assert store.batch("b1").runs == 248
    assert store.plan_all([]) == set()


def test_of_runs_planned_together_all_are_kept_or_none(store: Store) -> None:
    """One whose support file was never put takes none of the others with it half-way."""
    missing = StoredFile(source="a", digest="0" * 64, size=1)
    broken = spec("r2").model_copy(update={"files": (missing,)})
    with pytest.raises(StoreError, match="run r2 needs the support file a"):
        store.plan_all([spec("r1"), broken, spec("r3")])
    with pytest.raises(UsageError, match="at most 200 characters"):
        store.plan_all([spec("r1"), spec("x" * 201)])
    assert store.planned() == []


def test_a_run_begins_once(store: Store) -> None:
    """Two processes that begin the same run: one of them is told that it runs already."""
    store.plan(spec())
    assert store.begin("r1", US) == 1
    assert store.running() == [("r1", US)]
    assert store.get("r1").owner == US
    assert store.get("r1").started_at is not None
    with pytest.raises(UsageError, match="running already"):
        store.begin("r1", replace(US, pid=1))
    assert store.running() == [("r1", US)]


def test_the_end_is_one_transaction_of_state_result_and_grade(store: Store) -> None:
    finished(store, "r1", "failed")
    kept = store.get("r1")
    assert kept.state == "done"
    assert kept.ended_at is not None
    assert kept.result == a_result("r1", a_grade("failed"))
    assert [(g.number, g.cause, g.by, g.grade) for g in store.grades("r1")] == [
        (1, "run", None, a_grade("failed"))
    ]
    row = store.page(RunFilter()).rows[0]
    assert (row.state, row.verdict, row.fault, row.reason) == ("done", "failed", "agent", "because")
    assert (row.compliance, row.remediation) == ((2, 3), (1, 1))
    assert store.running() == []


def test_an_end_without_a_grade(store: Store) -> None:
    """An `error` before grading has a result and no grade."""
    store.plan(spec())
    store.finish("r1", a_result("r1", None, state="cancelled", reason="stopped"), None)
    assert store.get("r1").state == "cancelled"
    assert store.grades("r1") == []
    assert store.page(RunFilter()).rows[0].reason == "stopped"


def test_a_run_has_exactly_one_end(store: Store) -> None:
    """Whatever comes in between, a run has one final result, and it stays."""
    finished(store, "r1")
    store.finish("r1", a_result("r1", a_grade("failed")), a_grade("failed"))
    store.interrupt("r1", "gone")
    kept = store.get("r1")
    assert (kept.state, kept.result) == ("done", a_result("r1", a_grade()))
    assert len(store.grades("r1")) == 1
    with pytest.raises(UsageError, match="over"):
        store.begin("r1", US)


def test_phases_keep_their_present_state_in_the_order_of_a_run(store: Store) -> None:
    store.plan(spec())
    store.begin("r1", US)
    running = Phase(name="setup", status="running", started_at=NOON)
    done = Phase(name="setup", status="done", started_at=NOON, ended_at=NOON, reason="2 steps")
    first = Phase(name="preflight", status="done", started_at=NOON, ended_at=NOON)
    for phase in (running, first, done):
        store.phase("r1", 1, phase)
    assert store.get("r1").phases == (first, done)


def test_an_interrupted_run_says_so(store: Store) -> None:
    """A killed run: state `interrupted`, running phases likewise, no verdict."""
    store.plan(spec())
    store.begin("r1", US)
    done = Phase(name="setup", status="done", started_at=NOON, ended_at=NOON)
    store.phase("r1", 1, done)
    store.phase("r1", 1, Phase(name="execute", status="running", started_at=NOON))
    store.interrupt("r1", "its process is no more")
    kept = store.get("r1")
    assert kept.state == "interrupted"
    assert kept.phases[0] == done
    assert (kept.phases[1].status, kept.phases[1].reason) == (
        "interrupted",
        "its process is no more",
    )
    assert kept.phases[1].ended_at == kept.ended_at is not None
    assert kept.result is not None
    assert (kept.result.state, kept.result.verdict, kept.result.reason) == (
        "interrupted",
        None,
        "its process is no more",
    )
    assert kept.result.phases == kept.phases
    assert store.page(RunFilter(state="interrupted")).rows[0].reason == "its process is no more"
    assert store.running() == []


def test_an_interrupted_run_may_have_a_next_attempt(store: Store) -> None:
    """A cut-off attempt is kept as evidence that was `interrupted`, and the next one begins."""
    store.plan(spec())
    store.begin("r1", US)
    store.phase("r1", 1, Phase(name="setup", status="running", started_at=NOON))
    store.interrupt("r1", "lost")
    assert store.begin("r1", US) == 2
    kept = store.get("r1")
    assert (kept.state, kept.attempt, kept.result, kept.phases) == ("running", 2, None, ())
    assert kept.ended_at is None
    assert store.page(RunFilter()).rows[0].reason == ""
    store.finish("r1", a_result("r1", a_grade()), a_grade())
    assert store.get("r1").result == a_result("r1", a_grade())


def test_grades_are_added_and_never_overwritten(store: Store) -> None:
    finished(store, "r1", "passed")
    assert store.add_grade("r1", a_grade("failed"), cause="regrade", by="mona") == 2
    assert store.add_grade("r1", a_grade("error"), cause="regrade") == 3
    found = store.grades("r1")
    assert [(g.number, g.grade.verdict, g.cause, g.by) for g in found] == [
        (1, "passed", "run", None),
        (2, "failed", "regrade", "mona"),
        (3, "error", "regrade", None),
    ]
    assert all(grade.created_at.tzinfo is not None for grade in found)


def test_a_run_that_is_over_is_added_whole_or_stays_as_it_is(store: Store) -> None:
    grade = a_grade("failed")
    record = JobRecord(
        format="opsdrill.job/1", job=None, coverage=Coverage(default=Seen(state="whole"))
    )
    answer = HostAnswer(on="web-01", run="true", exit_code=0)
    store.add(spec(), record, [answer], a_result("r1", grade), grade)
    kept = store.get("r1")
    assert (kept.state, kept.attempt, kept.owner) == ("done", 1, None)
    assert kept.result is not None
    assert kept.result.verdict == "failed"
    assert (store.record("r1"), store.answers("r1")) == (record, [answer])
    assert [(one.number, one.cause, one.grade) for one in store.grades("r1")] == [(1, "run", grade)]
    assert [row.id for row in store.page(RunFilter(verdict="failed")).rows] == ["r1"]
    store.add(spec(), record, [], a_result("r1", a_grade()), a_grade())
    assert store.get("r1") == kept
    assert len(store.grades("r1")) == 1


def test_a_run_that_is_not_over_is_not_added_whole(store: Store) -> None:
    record = JobRecord(
        format="opsdrill.job/1", job=None, coverage=Coverage(default=Seen(state="whole"))
    )
    with pytest.raises(UsageError):
        store.add(spec(), record, [], a_result("r1", None, state="running"), a_grade())
    assert store.page(RunFilter()).rows == ()


def test_many_grades_are_added_at_once_or_none(store: Store) -> None:
    for run in ("r1", "r2"):
        finished(store, run, "passed")
    store.add_grades({"r1": a_grade("failed"), "r2": a_grade("error")}, cause="regrade", by="mona")
    assert [store.grades(run)[1].grade.verdict for run in ("r1", "r2")] == ["failed", "error"]
    assert {store.grades(run)[1].by for run in ("r1", "r2")} == {"mona"}
    assert [row.verdict for row in store.page(RunFilter()).rows] == ["error", "failed"]
    with pytest.raises(KeyError):
        store.add_grades({"r1": a_grade("passed"), "r3": a_grade()}, cause="regrade")
    assert len(store.grades("r1")) == 2


def test_what_runs_are_graded_again_by_is_sealed_as_it_was_kept(store: Store) -> None:
    finished(store, "r1", "passed")
    store.add_grade("r1", a_grade("failed"), cause="regrade")
    store.plan(spec("r2"))
    last, first = store.sealed(["r2", "r1"])
    assert RunSpec.model_validate_json(first.spec) == store.get("r1").spec
    assert first.latest is not None
    assert Grade.model_validate_json(first.latest) == store.grades("r1")[1].grade
    assert (first.run, first.state, first.scenario) == ("r1", "done", "disk-full")
    assert (last.run, last.state) == ("r2", "planned")
    assert (last.record, last.answers, last.latest) == (None, None, None)
    with pytest.raises(KeyError):
        store.sealed(["r1", "r3"])


def test_a_run_reads_and_is_listed_under_its_latest_grade(store: Store) -> None:
    finished(store, "r1", "passed")
    later = a_grade("failed", reason="edited").model_copy(
        update={"scenario_version": "v2", "warnings": ("a new warning",)}
    )
    store.add_grade("r1", later, cause="regrade")
    result = store.get("r1").result
    assert result is not None
    assert (result.verdict, result.reason, result.scenario_version) == ("failed", "edited", "v2")
    assert result.rules == later.rules
    assert result.warnings == ("a new warning", "restore failed")
    row = store.page(RunFilter(verdict="failed")).rows[0]
    assert (row.id, row.verdict, row.reason) == ("r1", "failed", "edited")


def test_a_grade_gives_no_verdict_to_a_run_that_did_not_end_by_itself(store: Store) -> None:
    store.plan(spec())
    store.begin("r1", US)
    store.interrupt("r1", "gone")
    store.add_grade("r1", a_grade(), cause="regrade")
    assert store.page(RunFilter()).rows[0].verdict is None
    kept = store.get("r1").result
    assert kept is not None
    assert kept.verdict is None


def test_pages_are_newest_first_and_stay_right_while_rows_arrive(store: Store) -> None:
    for n in range(7):
        store.plan(spec(f"r{n}", at=NOON + timedelta(microseconds=n // 2)))
    page = store.page(RunFilter(), limit=3)
    seen = [row.id for row in page.rows]
    assert seen == ["r6", "r5", "r4"]
    store.plan(spec("new", at=NOON + timedelta(hours=1)))
    while page.cursor is not None:
        page = store.page(RunFilter(), limit=2, cursor=page.cursor)
        seen += [row.id for row in page.rows]
    assert seen == ["r6", "r5", "r4", "r3", "r2", "r1", "r0"]


def test_a_page_of_exactly_all_rows_has_no_cursor(store: Store) -> None:
    for n in range(3):
        store.plan(spec(f"r{n}"))
    assert store.page(RunFilter(), limit=3).cursor is None
    assert store.page(RunFilter(), limit=2).cursor is not None


def test_listings_are_narrowed(store: Store) -> None:
    finished(store, "a", "passed", agent="one")
    finished(store, "b", "failed", agent="two")
    finished(store, "c", "error", scenario="other")
    store.plan(spec("d").model_copy(update={"batch": "night"}))
    assert rows(store, verdict="failed") == ["b"]
    assert rows(store, scenario="other") == ["c"]
    assert rows(store, agent="script:one") == ["a"]
    assert rows(store, state="planned") == ["d"]
    assert rows(store, batch="night") == ["d"]
    assert rows(store, scenario="disk-full", state="done") == ["b", "a"]
    assert rows(store, scenario="DISK-FULL") == []


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "bnVsbA==", "WzEsMl0", "WzFlMzAwLDFd", "W251bGwsMV0=", "[1,2]", "é", "\ud800",
               "WzE4NDQ2NzQ0MDczNzA5NTUxNjE2LDFd", "WzEsMiwzXQ=="]
)  # fmt: skip
def test_a_cursor_of_somebody_elses_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(UsageError, match="cursor"):
        store.page(RunFilter(), cursor=cursor)


@pytest.mark.parametrize("limit", [0, -1, 1001])
def test_a_page_has_a_bounded_size(store: Store, limit: int) -> None:
    with pytest.raises(UsageError, match="1 to 1000"):
        store.page(RunFilter(), limit=limit)


def test_ids_are_found_by_their_beginning(store: Store) -> None:
    for id in ("ab1", "ab2", "AB3", "a%", "b", "ab"):
        store.plan(spec(id))
    assert store.find("ab") == ["ab", "ab1", "ab2"]
    assert store.find("a%") == ["a%"]
    assert store.find("a_") == []
    assert store.find("zz") == []
    for n in range(25):
        store.plan(spec(f"x{n:02}"))
    assert store.find("x") == [f"x{n:02}" for n in range(20)]


def test_delete_removes_a_run_whole_and_no_other(store: Store) -> None:
    finished(store, "r1")
    finished(store, "r2")
    store.delete("r1")
    assert rows(store) == ["r2"]
    with pytest.raises(KeyError):
        store.get("r1")
    with pytest.raises(KeyError):
        store.delete("r1")
    assert len(store.grades("r2")) == 1
    store.plan(spec("r1"))
    assert store.grades("r1") == []
    assert store.get("r1").state == "planned"


def test_a_running_run_is_not_deleted(store: Store) -> None:
    store.plan(spec())
    store.begin("r1", US)
    with pytest.raises(UsageError, match="running"):
        store.delete("r1")
    assert store.get("r1").state == "running"


def test_a_file_is_kept_by_its_content(store: Store) -> None:
    digest = store.put_file(b"a\0b")
    assert digest == hashlib.sha256(b"a\0b").hexdigest()
    assert store.put_file(b"a\0b") == digest
    assert store.file(digest) == b"a\0b"
    assert store.file(store.put_file(b"")) == b""


@pytest.mark.parametrize(
    "digest", ["0" * 64, "", "../store.db", "A" * 64, "0" * 63, "0" * 63 + "\n", "/etc/passwd"]
)
def test_a_file_is_read_by_its_digest_only(store: Store, digest: str) -> None:
    with pytest.raises(KeyError):
        store.file(digest)


def _with_file(id: str, digest: str) -> RunSpec:
    kept = StoredFile(source="bin/break.sh", digest=digest, size=1)
    return spec(id).model_copy(update={"files": (kept,)})


def test_a_run_needs_its_support_files_in_the_store(store: Store) -> None:
    with pytest.raises(StoreError, match=r"r1 needs the support file bin/break\.sh"):
        store.plan(_with_file("r1", "0" * 64))
    with pytest.raises(KeyError):
        store.get("r1")


def test_delete_removes_files_that_no_other_run_uses(store: Store) -> None:
    shared, own, waiting = (store.put_file(body) for body in (b"shared", b"own", b"waiting"))
    store.plan(_with_file("r1", shared))
    store.plan(_with_file("r2", shared))
    store.plan(_with_file("r3", own))
    store.plan(_with_file("r4", waiting))
    store.put_file(b"waiting")
    for id in ("r1", "r3", "r4"):
        store.delete(id)
    assert store.file(shared) == b"shared"
    with pytest.raises(KeyError):
        store.file(own)
    assert store.file(waiting) == b"waiting", "put for a run that is still to be planned"
    store.delete("r2")
    with pytest.raises(KeyError):
        store.file(shared)


HOSTILE = [
    "../../etc/passwd", "a'; DROP TABLE runs; --", "nul\0byte", "half \ud83d pair", "back\\slash",
    "\\u0000", "%", "é\u202e😀", " ", "\x1b[2J", "\U0010ffff",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_hostile_texts_never_raise_and_read_back_as_they_were(store: Store, text: str) -> None:
    """NUL characters, lone surrogates and SQL in ids and texts."""
    id = "half" if "\ud83d" in text else text  # the model lets no lone surrogate into an id
    hostile = spec(id, agent=text).model_copy(
        update={
            "batch": text,
            "labels": {"x": text},
            "scenario": spec().scenario.model_copy(update={"title": f"x{text}"}),
        }
    )
    store.plan(hostile)
    store.begin(id, replace(US, machine=text))
    store.phase(id, 1, Phase(name="setup", status="running", started_at=NOON, reason=text))
    grade = a_grade(reason=text)
    store.finish(id, a_result(id, grade), grade)
    store.add_grade(id, grade, cause=text, by=text)
    kept = store.get(id)
    assert kept.spec == hostile
    assert kept.result is not None
    assert kept.result.reason == text
    assert kept.owner == replace(US, machine=text)
    assert kept.phases[0].reason == text
    assert store.grades(id)[1].grade == grade
    assert store.grades(id)[1].by == text
    row = store.page(RunFilter(agent=f"script:{text}", batch=text)).rows[0]
    assert (row.id, row.title, row.reason) == (id, f"x{text}", text)
    assert store.find(id) == [id]
    store.delete(id)
    assert rows(store) == []


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_a_hostile_id_that_is_not_there_is_a_key_error(store: Store, text: str) -> None:
    with pytest.raises(KeyError):
        store.get(text)
    assert store.find(text) == []


def test_ids_are_bounded(store: Store) -> None:
    with pytest.raises(UsageError, match="at most 200"):
        store.plan(spec("x" * 201))
    with pytest.raises(KeyError):
        store.get("x" * 100_000)
    assert store.find("x" * 100_000) == []


def test_a_long_text_is_cut_in_listings_only(store: Store) -> None:
    store.plan(spec())
    grade = a_grade(reason="x" * 5000)
    store.finish("r1", a_result("r1", grade), grade)
    assert store.page(RunFilter()).rows[0].reason == "x" * 499 + "…"
    kept = store.get("r1").result
    assert kept is not None
    assert kept.reason == "x" * 5000


CALLS: dict[str, Callable[[Store], object]] = {
    "begin": lambda s: s.begin("none", US),
    "phase": lambda s: s.phase("none", 1, Phase(name="setup", status="done", started_at=NOON)),
    "finish": lambda s: s.finish("none", a_result("none", None), None),
    "interrupt": lambda s: s.interrupt("none", "x"),
    "get": lambda s: s.get("none"),
    "delete": lambda s: s.delete("none"),
    "append_events": lambda s: s.append_events("none", 1, []),
    "events": lambda s: s.events("none"),
    "record": lambda s: s.record("none"),
    "answers": lambda s: s.answers("none"),
    "save_answers": lambda s: s.save_answers("none", 1, []),
    "save_steps": lambda s: s.save_steps("none", 1, "setup", []),
    "steps": lambda s: s.steps("none", "setup"),
    "hosts": lambda s: s.hosts("none"),
    "add_grade": lambda s: s.add_grade("none", a_grade(), cause="regrade"),
    "grades": lambda s: s.grades("none"),
}


@pytest.mark.parametrize("call", sorted(CALLS))
def test_a_run_that_is_not_there_is_a_key_error(store: Store, call: str) -> None:
    with pytest.raises(KeyError, match="none"):
        CALLS[call](store)


def test_a_planned_run_knows_the_process_that_will_begin_it(store: Store) -> None:
    """So that it can be told from one that nobody will ever begin."""
    store.plan(spec("r1"), US)
    store.plan(spec("r2"))
    store.plan(spec("r3"), US)
    assert store.planned() == [("r1", US), ("r2", None), ("r3", US)]
    store.begin("r1", replace(US, pid=US.pid + 1))
    store.interrupt("r3", "lost")
    assert store.planned() == [("r2", None)]
    assert store.running() == [("r1", replace(US, pid=US.pid + 1))]
