"""Runs: started, listed, read, cancelled, retried, deleted, followed; what is kept of one."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, TypedDict, Unpack

from opsdrill.client.call import (
    LONG_SECONDS,
    Call,
    Value,
    address,
    asked,
    content,
    get,
    model,
    nothing,
    of_model,
)
from opsdrill.client.streams import Following
from opsdrill.errors import Fault
from opsdrill.model.job import JobRecord
from opsdrill.model.result import Grade, Result, RunState, Verdict
from opsdrill.wire.runs import (
    DifferencesTold,
    EvidenceItem,
    EvidencePage,
    GradeList,
    PhaseList,
    RunDetail,
    RunFiles,
    RunHosts,
    RunList,
    RunRetried,
    RunsAsked,
    RunsStarted,
    RunTold,
    ScenarioRan,
)

RUNS = address("/runs")
Sort = Literal["-created_at", "created_at"]
Kind = Literal["plan", "task", "call", "message", "ticket", "resolution"]


def start_runs(
    scenarios: Sequence[str],
    agents: Sequence[str],
    *,
    lab: str | None = None,
    repeat: int | None = None,
    parallel: int | None = None,
    labels: Mapping[str, str] | None = None,
    idempotency_key: str | None = None,
) -> Call[RunsStarted]:
    """Every scenario by every agent, `repeat` times, as one batch.

    Args:
        scenarios: keys, `tag:NAME` or `pack:NAME`.
        agents: names that `list_agents` tells.
        lab: a name that `list_labs` tells; without it the default.
        repeat: how often each agent works each scenario.
        parallel: how many of these runs work at once, where fewer than the server allows.
        labels: kept with each run.
        idempotency_key: one is made where none is given; a start that was sent with it before
            starts nothing anew, for 24 hours.
    """
    values = {
        "scenarios": list(scenarios),
        "agents": list(agents),
        "lab": lab,
        "repeat": repeat,
        "parallel": parallel,
        "labels": dict(labels) if labels is not None else None,
    }
    key = secrets.token_hex(16) if idempotency_key is None else idempotency_key
    body = of_model(asked(RunsAsked, values))
    headers = {"idempotency-key": key}
    return Call(
        "POST",
        RUNS,
        model(RunsStarted),
        headers=headers,
        body=body,
        again=True,
        seconds=LONG_SECONDS,  # thousands of runs are planned one by one
    )


class Filters(TypedDict, total=False):
    """What runs are narrowed to; times need an offset."""

    scenario: str | None
    tag: str | None
    agent: str | None
    lab: str | None
    state: RunState | None
    verdict: Verdict | None
    fault: Fault | None
    batch: str | None
    labels: Mapping[str, str]
    since: datetime | None
    until: datetime | None


def list_runs(
    *,
    sort: Sort | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    **filters: Unpack[Filters],
) -> Call[RunList]:
    """Runs that all filters let through, the newest first."""
    query = {**narrowed(filters), "sort": sort, "limit": limit, "cursor": cursor}
    return Call("GET", RUNS, model(RunList), query, again=True)


def narrowed(filters: Filters) -> dict[str, Value]:
    """What runs are narrowed to, as a query."""
    labels = filters.get("labels", {})
    return {
        "scenario": filters.get("scenario"),
        "tag": filters.get("tag"),
        "agent": filters.get("agent"),
        "lab": filters.get("lab"),
        "state": filters.get("state"),
        "verdict": filters.get("verdict"),
        "fault": filters.get("fault"),
        "batch": filters.get("batch"),
        "label": [f"{name}:{value}" for name, value in labels.items()],
        "since": filters.get("since"),
        "until": filters.get("until"),
    }


def read_run(run: str) -> Call[RunDetail]:
    """A run as it stands."""
    return get(_of(run), model(RunDetail))


def delete_run(run: str) -> Call[None]:
    """Removes a run with everything that is kept of it."""
    return Call("DELETE", _of(run), nothing)


def cancel_run(run: str) -> Call[RunTold]:
    """Stops a run; answers when its hosts are given back."""
    path = _of(run, "/cancel")
    return Call("POST", path, model(RunTold), again=True, seconds=LONG_SECONDS)


def retry_run(run: str) -> Call[RunRetried]:
    """Plans a run anew that ended in `error` or was interrupted."""
    return Call("POST", _of(run, "/retry"), model(RunRetried))


def follow_run(run: str, *, last: str | None = None) -> Following:
    """The events of a run until its result; when the connection breaks, it goes on behind the last.

    Args:
        run: its id.
        last: the id of the last event that was heard before, by whomever.
    """
    return Following(_of(run, "/events"), ends="result", last=last)


def follow_runs(*, batch: str | None = None, last: str | None = None) -> Following:
    """The events of a batch, or of all runs; they do not end by themselves.

    Args:
        batch: its id.
        last: the id of the last event that was heard before.
    """
    query = {"batch": batch} if batch is not None else {}
    return Following(address("/events"), query, last=last)


def read_results(run: str) -> Call[Result]:
    """A run's result: the verdict, the completion check, and each rule with its reason."""
    return get(_of(run, "/results"), model(Result))


def list_grades(run: str) -> Call[GradeList]:
    """Every grade that a run ever got, in short; the last one counts."""
    return get(_of(run, "/grades"), model(GradeList))


def read_grade(run: str, number: int) -> Call[Grade]:
    """One grade whole, counted from 1."""
    return get(_of(run, f"/grades/{number:d}"), model(Grade))


def list_phases(run: str) -> Call[PhaseList]:
    """The phases that began, in order."""
    return get(_of(run, "/phases"), model(PhaseList))


def list_run_hosts(run: str) -> Call[RunHosts]:
    """The hosts of a run, and what they answered."""
    return get(_of(run, "/hosts"), model(RunHosts))


def list_evidence(
    run: str,
    *,
    kind: Kind | None = None,
    task: str | None = None,
    host: str | None = None,
    text: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[EvidencePage]:
    """The pieces of a run's job record that all of this lets through; long texts are cut."""
    wanted: dict[str, Value] = {"kind": kind, "task": task, "host": host, "text": text}
    path = _of(run, "/evidence")
    return get(path, model(EvidencePage), **wanted, limit=limit, cursor=cursor)


def read_evidence(run: str, number: int) -> Call[EvidenceItem]:
    """One piece of a job record, whole; counted from 0."""
    return get(_of(run, f"/evidence/{number:d}"), model(EvidenceItem))


def read_differences(run: str) -> Call[DifferencesTold]:
    """Where the agent's own report and what was seen differ."""
    return get(_of(run, "/differences"), model(DifferencesTold))


def read_record(run: str) -> Call[JobRecord]:
    """The whole job record of a run."""
    return get(_of(run, "/record"), model(JobRecord))


def list_run_files(run: str) -> Call[RunFiles]:
    """The files that changed on a run's hosts, and the support files that they got."""
    return get(_of(run, "/files"), model(RunFiles))


def read_run_file(run: str, digest: str) -> Call[bytes]:
    """The content of a support file of a run, by its digest."""
    return get(address("/runs/{}/files/{}", run, digest), content)


def read_run_scenario(run: str) -> Call[ScenarioRan]:
    """The scenario exactly as a run ran it."""
    return get(_of(run, "/scenario"), model(ScenarioRan))


def _of(run: str, rest: str = "") -> str:
    return address("/runs/{}", run) + rest
