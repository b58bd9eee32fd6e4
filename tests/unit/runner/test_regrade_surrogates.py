"""Runs whose stored parts hold halves of surrogate pairs, as names of files may: graded again as
any other. What cannot be read back is left out by name, and stops no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

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
from opsdrill.store.store import Sealed

HALF = "caf\udce9"


def scenario(**more: object) -> Scenario:
    return Scenario.model_validate(
        {
            "key": "d", "title": "D", "ticket_title": "T", "hosts": ["web-01"],
            "validation": [
                {"label": "asked", "validator": "host_state", "run": "true"},
                {"label": "used", "validator": "pattern_match", "pattern": "cat",
                 "where": "executed_commands"},
            ],
            **more,
        }
    )  # fmt: skip


def _whole(sealed: Sealed) -> Sealed:
    return sealed


HARMED: dict[str, Callable[[Sealed, bytes], Sealed]] = {
    "spec": lambda sealed, harm: replace(sealed, spec=harm),
    "record": lambda sealed, harm: replace(sealed, record=harm),
    "answers": lambda sealed, harm: replace(sealed, answers=harm),
    "latest": lambda sealed, harm: replace(sealed, latest=harm),
}


class Damaging(MemoryStore):
    """A store of which a part of some runs came to harm."""

    def __init__(self) -> None:
        super().__init__()
        self.harm: dict[str, Callable[[Sealed], Sealed]] = {}

    def sealed(self, runs: Sequence[str]) -> list[Sealed]:
        return [self.harm.get(each.run, _whole)(each) for each in super().sealed(runs)]


def keep(store: MemoryStore, run: str, name: str, made: Scenario | None = None) -> None:
    made = made or scenario()
    spec = RunSpec(
        id=run,
        scenario=made,
        scenario_version=made.version(),
        agent=AgentChoice(adapter="codex", argument=name),
        lab=LabChoice(name=name, driver="none"),
        labels={"file": name},
        created_at=datetime.now(UTC),
    )
    call = ToolCall(kind="shell", arguments={"command": f"cat {name}"}, outcome="ran")
    record = JobRecord(
        format="opsdrill.job/1",
        job=Job(id="j", status="completed", resolution="success"),
        tasks=(Task(id="t", host="web-01", status="completed", tool_calls=(call,)),),
        coverage=Coverage(default=Seen(state="whole")),
    )
    answer = HostAnswer(on="web-01", run="true", exit_code=0, stdout=name)
    store.plan(spec)
    attempt = store.begin(run, this_process())
    store.save_record(run, attempt, record)
    store.save_answers(run, attempt, [answer])
    with BoundedSearcher() as searcher:
        grader = Grader(made, searcher, scenario_version=spec.scenario_version)
        grade = grader.grade(record, [answer])
    assert grade.verdict == "passed", grade
    store.finish(run, graded(spec, grade), grade)


def again(store: MemoryStore, runs: list[str], manner: Manner) -> Chunk:
    [chunk] = regrade_here(store, runs, manner)
    return chunk


def edited() -> Manner:
    made = scenario(title="edited")
    return Manner(Edited(made, made.version()))


@pytest.mark.parametrize("manner", [Manner(), edited()], ids=["own", "edited"])
def test_half_a_pair_anywhere_is_graded_like_any_text(manner: Manner) -> None:
    """In the spec, the lab, the record, the answers and the grade."""
    store = MemoryStore()
    keep(store, "odd", HALF)
    keep(store, "plain", "plain")
    chunk = again(store, ["odd", "plain"], manner)
    assert (chunk.graded, chunk.flips, chunk.notes) == (2, [], [])


HARM = [b"{", b"{}", b'{"a": "\\ud800"}', b"\xff"]


@pytest.mark.parametrize("part", HARMED)
@pytest.mark.parametrize("harm", HARM)
def test_what_cannot_be_read_back_is_left_out_by_name(part: str, harm: bytes) -> None:
    """A part that is none any more: the run is named, and the others are graded."""
    store = Damaging()
    for run in ("first", "odd", "last"):
        keep(store, run, run)
    store.harm["odd"] = lambda sealed: HARMED[part](sealed, harm)
    chunk = again(store, ["first", "odd", "last"], Manner())
    assert chunk.graded == 2
    [(text, run)] = chunk.notes
    assert run == "odd"
    assert text.startswith("damaged, left out: ")
