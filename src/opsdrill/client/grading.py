"""Grading without running anything: recorded jobs, kept runs graded again, patterns tried."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from opsdrill.client.call import (
    LONG_SECONDS,
    Call,
    Value,
    address,
    asked,
    get,
    model,
    nothing,
    of_model,
)
from opsdrill.client.uploads import Content, Upload
from opsdrill.model.job import JobRecord
from opsdrill.model.rules import Where
from opsdrill.model.scenario import Scenario
from opsdrill.wire.grading import (
    GradeAsked,
    PatternAsked,
    PatternTried,
    RecordGraded,
    RecordsKept,
    RegradeAsked,
    RegradeList,
    RegradeRow,
    RegradeTold,
    RunsWanted,
)

FILE = "application/octet-stream"
REGRADE_SECONDS = 60.0


def grade_record(
    scenario: str | Scenario | Mapping[str, Any],
    record: JobRecord | Mapping[str, Any] | Content,
    *,
    answers: Sequence[Mapping[str, Any]] | None = None,
    host: str | None = None,
    split_ssh: bool = False,
) -> Call[RecordGraded]:
    """Grades a recorded job; nothing is kept.

    Args:
        scenario: a key, or a whole scenario.
        record: a job record; or a file that an importer reads, its bytes or its path.
        answers: what hosts answered, as in the file of `--host-answers`; without it every rule
            that asks a host is `error`.
        host: the host of whatever names none.
        split_ssh: take `ssh HOST COMMAND` for a command of that host.
    """
    if isinstance(scenario, str) and not isinstance(record, (JobRecord, Mapping)) and not answers:
        query: dict[str, Value] = {"scenario": scenario, "host": host, "split-ssh": split_ssh}
        return _grade(query, Upload(record, FILE))
    values: dict[str, object] = {"scenario": _plain(scenario), "host": host, "split_ssh": split_ssh}
    if isinstance(record, (JobRecord, Mapping)):
        values["record"] = _plain(record)
    else:
        whole = b"".join(Upload(record, FILE).pieces())
        values["base64"] = base64.b64encode(whole).decode()
    if answers is not None:
        values["answers"] = [dict(each) for each in answers]
    return _grade({}, of_model(asked(GradeAsked, values)))


def _grade(query: Mapping[str, Value], body: Upload) -> Call[RecordGraded]:
    return Call(
        "POST", address("/grade"), model(RecordGraded), query, body=body, again=True,
        seconds=LONG_SECONDS,
    )  # fmt: skip


def keep_records(
    file: Content,
    *,
    scenario: str | None = None,
    host: str | None = None,
    split_ssh: bool = False,
    name: str | None = None,
    again: bool = False,
) -> Call[RecordsKept]:
    """Keeps every job of a file as a run; the same file read in the same way is kept once.

    Args:
        file: a job record or another tool's transcript, its bytes or its path.
        scenario: the key of the one whose rules they are graded by.
        host: the host of whatever names none.
        split_ssh: take `ssh HOST COMMAND` for a command of that host.
        name: what the file is called; kept as a label.
        again: keep once more what was kept before.
    """
    query: dict[str, Value] = {
        "scenario": scenario, "host": host, "split-ssh": split_ssh, "name": name, "again": again,
    }  # fmt: skip
    return Call(
        "POST", address("/records"), model(RecordsKept), query, body=Upload(file, FILE),
        again=not again, seconds=LONG_SECONDS,
    )  # fmt: skip


def try_pattern(
    scenario: str,
    pattern: str,
    where: Where,
    *,
    negate: bool = False,
    validation: Sequence[Mapping[str, Any]] | None = None,
    runs: int | None = None,
) -> Call[PatternTried]:
    """The values of the last runs of a scenario in which a pattern is found, with spans.

    Args:
        scenario: its key.
        pattern: a regular expression.
        where: in which evidence it is looked for.
        negate: the rule is a must-not rule.
        validation: rules that the runs are graded by as well, to tell how many would flip.
        runs: how many of the last runs are looked at.
    """
    values = {
        "scenario": scenario, "pattern": pattern, "where": where, "negate": negate, "runs": runs,
        "validation": None if validation is None else [dict(rule) for rule in validation],
    }  # fmt: skip
    body = of_model(asked(PatternAsked, values))
    path = address("/patterns/try")
    return Call("POST", path, model(PatternTried), body=body, again=True, seconds=LONG_SECONDS)


def regrade_runs(
    *,
    runs: Sequence[str] | None = None,
    filter: RunsWanted | Mapping[str, Any] | None = None,
    rules: str | Scenario | Mapping[str, Any] | None = None,
    preview: bool = True,
) -> Call[RegradeRow]:
    """Begins to grade kept runs again; `read_regrade` tells what flips.

    Args:
        runs: their ids; or
        filter: what lets them through.
        rules: the key of a scenario, or a whole one; without it each run's own.
        preview: keep no new grades.
    """
    if isinstance(filter, Mapping):
        filter = asked(RunsWanted, filter)
    values = {
        "runs": None if runs is None else list(runs),
        "filter": filter,
        "rules": None if rules is None else _plain(rules),
        "preview": preview,
    }
    body = of_model(asked(RegradeAsked, values))
    return Call("POST", address("/regrade"), model(RegradeRow), body=body)


def list_regrades() -> Call[RegradeList]:
    """The regrades that the server remembers, the newest first."""
    return get(address("/regrades"), model(RegradeList))


def read_regrade(
    regrade: str,
    *,
    wait: float | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[RegradeTold]:
    """How far a regrade is, and what flipped so far; `wait` up to 30 seconds for its end."""
    query: dict[str, Value] = {"wait": wait, "limit": limit, "cursor": cursor}
    path = address("/regrades/{}", regrade)
    return Call("GET", path, model(RegradeTold), query, again=True, seconds=REGRADE_SECONDS)


def cancel_regrade(regrade: str) -> Call[None]:
    """Stops a regrade; one that is over is forgotten."""
    return Call("DELETE", address("/regrades/{}", regrade), nothing)


def _plain(value: str | Scenario | JobRecord | Mapping[str, Any]) -> object:
    if isinstance(value, (str, Mapping)):
        return value if isinstance(value, str) else dict(value)
    return json.loads(value.model_dump_json(by_alias=True, exclude_none=True))
