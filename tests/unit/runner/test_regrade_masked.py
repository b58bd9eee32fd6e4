"""Graded again: every run by its rules as they were masked, and edited rules masked alike."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from opsdrill.app.secrets import mask_for
from opsdrill.app.wiring import Place
from opsdrill.evidence.mask import Mask
from opsdrill.evidence.masked_spec import masked_spec
from opsdrill.evidence.masking import masked
from opsdrill.grading.engine import Grader
from opsdrill.model.host import HostAnswer
from opsdrill.model.job import Coverage, Job, JobRecord, Seen, Task, ToolCall
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.patterns import BoundedSearcher
from opsdrill.runner.owner import this_process
from opsdrill.runner.regrader import Chunk, Edited, Manner, regrade_here
from opsdrill.runner.result import graded
from opsdrill.store.memory import MemoryStore

VALUE = "hunter2-x9"
MASK = Mask([("PW", VALUE)])


def scenario(**more: object) -> Scenario:
    return Scenario.model_validate(
        {
            "key": "d",
            "title": "D",
            "ticket_title": "T",
            "hosts": ["web-01"],
            "validation": [
                {"label": "set", "validator": "host_state", "run": f"grep {VALUE} /etc/pw"},
                {"label": "used", "validator": "pattern_match", "pattern": f"-p{VALUE}",
                 "where": "executed_commands"},
            ],
            **more,
        }
    )  # fmt: skip


RECORD = JobRecord(
    format="opsdrill.job/1",
    job=Job(id="j", status="completed", resolution="success"),
    tasks=(
        Task(
            id="t",
            host="web-01",
            status="completed",
            tool_calls=(
                ToolCall(kind="shell", arguments={"command": f"mysql -p{VALUE}"}, outcome="ran"),
            ),
        ),
    ),
    coverage=Coverage(default=Seen(state="whole")),
)


def keep(store: MemoryStore, run: str, mask: Mask) -> None:
    """A run as it would have been kept under a mask."""
    made = scenario()
    spec = RunSpec(
        id=run,
        scenario=made,
        scenario_version=made.version(),
        agent=AgentChoice(adapter="noop"),
        lab=LabChoice(name="fake", driver="fake"),
        created_at=datetime.now(UTC),
    )
    kept = masked_spec(mask, spec)
    answer = masked(mask, HostAnswer(on="web-01", run=f"grep {VALUE} /etc/pw", exit_code=0))
    record = masked(mask, RECORD)
    store.plan(kept.spec)
    attempt = store.begin(run, this_process())
    store.save_record(run, attempt, record)
    store.save_answers(run, attempt, [answer])
    with BoundedSearcher() as searcher:
        grader = Grader(kept.spec.scenario, searcher, scenario_version=spec.scenario_version)
        grade = grader.grade(record, [answer])
    assert grade.verdict == "passed", grade
    store.finish(run, graded(kept.spec, grade), grade)


def again(store: MemoryStore, runs: list[str], manner: Manner) -> Chunk:
    [chunk] = regrade_here(store, runs, manner)
    return chunk


@pytest.mark.parametrize("order", [["open", "masked"], ["masked", "open"]])
def test_runs_of_one_version_with_other_secrets_masked(order: list[str]) -> None:
    """The same rules, once kept with a secret that nobody knew then, and once without."""
    store = MemoryStore()
    keep(store, "open", Mask())
    keep(store, "masked", MASK)
    chunk = again(store, order, Manner())
    assert (chunk.graded, chunk.flips, chunk.changed) == (2, [], 0)


def test_edited_rules_are_masked_as_the_run_was() -> None:
    store = MemoryStore()
    keep(store, "masked", MASK)
    edited = Edited(scenario(title="edited"), "v2")
    chunk = again(store, ["masked"], Manner(edited, mask=lambda _lab: MASK))
    assert (chunk.graded, chunk.flips) == (1, [])
    [_, second] = store.grades("masked")
    assert second.grade.scenario_version == "v2"
    assert VALUE not in second.grade.model_dump_json()


def test_without_the_secrets_edited_rules_are_not_for_the_run() -> None:
    """They would be kept, in reasons, with the value that was masked before."""
    store = MemoryStore()
    keep(store, "masked", MASK)
    keep(store, "open", Mask())
    edited = Edited(scenario(title="edited"), "v2")
    warned = Mask(warnings=["the secret 'PW' cannot be had"])
    chunk = again(store, ["masked", "open"], Manner(edited, mask=lambda _lab: warned))
    assert chunk.graded == 1
    assert ("it holds secrets that cannot be had here (PW), left out", "masked") in chunk.notes
    assert "the secret 'PW' cannot be had" in [text for text, _ in chunk.notes]
    assert len(store.grades("masked")) == 1


def test_the_way_to_a_mask_goes_to_other_processes(tmp_path: Path) -> None:
    """Values are looked up there; what goes over is where they are found."""
    place = Place(tmp_path, tmp_path)
    manner = Manner(mask=partial(mask_for, place))
    sent = pickle.loads(pickle.dumps(manner))
    assert sent.mask(LabChoice(name="fake", driver="fake")).text("text") == "text"
    assert pickle.loads(pickle.dumps(Manner())).mask is Manner().mask
