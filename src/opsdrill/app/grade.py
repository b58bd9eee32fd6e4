"""Grade recorded jobs by a scenario's rules, without running anything."""

from __future__ import annotations

from pathlib import Path

from opsdrill.app import scenarios
from opsdrill.app.secrets import NO_LAB, mask_for
from opsdrill.app.transcripts import placing_for, recorded_jobs, strange_hosts
from opsdrill.app.wiring import Place
from opsdrill.evidence.masked_spec import masked_scenario
from opsdrill.evidence.masking import masked
from opsdrill.evidence.transcripts.imported import Imported
from opsdrill.grading.engine import Grader
from opsdrill.model.host import HostAnswer
from opsdrill.model.result import Grade, Result
from opsdrill.patterns import BoundedSearcher
from opsdrill.scenarios.load import LoadedScenario, load_answers


def grade_record(
    place: Place,
    scenario: str,
    record: Path,
    answers: Path | None,
    *,
    host: str | None = None,
    split_ssh: bool = False,
) -> list[Result]:
    """The results that the rules give for the recorded jobs of a file, in its order.

    Args:
        scenario: a scenario's file, folder or key.
        record: a job record, `opsdrill.job/1`, or another tool's transcript.
        answers: what the hosts answered; without it every rule that asks a host is `error`.
        host: the host of whatever names none.
        split_ssh: take `ssh HOST COMMAND` for a command of that host.

    Raises:
        UsageError: a file that is not there, a selection that is not one scenario, or nobody says
            on which host the agent worked.
        InvalidInput: a file that breaks its format, with the path of every wrong value.
    """
    loaded = scenarios.one(place, scenario)
    rules, mask = masked_scenario(mask_for(place, NO_LAB), loaded.scenario)
    placing = placing_for(loaded.scenario, host, split_ssh=split_ssh)
    given: tuple[HostAnswer, ...] = load_answers(answers).answers if answers else ()
    given = tuple(masked(mask, answer) for answer in given)
    with BoundedSearcher() as searcher:
        grader = Grader(rules, searcher, scenario_version=loaded.version)
        return [
            _result(loaded, imported, grader.grade(imported.record, given))
            for imported in recorded_jobs(record, placing, mask)
        ]


def _result(loaded: LoadedScenario, imported: Imported, graded: Grade) -> Result:
    return Result(
        run=None,
        scenario=loaded.scenario.key,
        agent=imported.agent,
        scenario_version=loaded.version,
        state="done",
        warnings=(*imported.warnings, *strange_hosts(imported.record, loaded.scenario)),
    ).under(graded)
