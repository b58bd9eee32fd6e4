"""Grade a recorded job by a scenario's rules, without running anything."""

from __future__ import annotations

from pathlib import Path

from opsdrill.app import scenarios
from opsdrill.app.wiring import Place
from opsdrill.errors import InvalidInput
from opsdrill.grading.engine import grade
from opsdrill.model.host import HostAnswer
from opsdrill.model.job import JobRecord
from opsdrill.model.result import Result
from opsdrill.patterns import BoundedSearcher
from opsdrill.scenarios.load import load_answers, load_record


def grade_record(place: Place, scenario: str, record: Path, answers: Path | None) -> Result:
    """The result that the rules give for a recorded job.

    Args:
        scenario: a scenario's file, folder or key.
        record: a job record, `opsdrill.job/1`.
        answers: what the hosts answered; without it every rule that asks a host is `error`.

    Raises:
        UsageError: a file that is not there, or a selection that is not one scenario.
        InvalidInput: a file that breaks its format, with the path of every wrong value.
    """
    loaded = scenarios.one(place, scenario)
    evidence = _record(record)
    given: tuple[HostAnswer, ...] = load_answers(answers).answers if answers else ()
    with BoundedSearcher() as searcher:
        graded = grade(loaded.scenario, evidence, given, searcher, scenario_version=loaded.version)
    return Result(
        run=None,
        scenario=loaded.scenario.key,
        agent=None,
        scenario_version=loaded.version,
        state="done",
    ).under(graded)


def _record(path: Path) -> JobRecord:
    try:
        return load_record(path)
    except InvalidInput as error:
        if any(problem.path in ("", "format") for problem in error.problems):
            error.hint = (
                "it must be a job record, opsdrill.job/1; other transcripts are not read yet"
            )
        raise
