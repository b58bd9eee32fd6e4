"""Grade recorded jobs by a scenario's rules, without running anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from opsdrill.patterns import BoundedSearcher, Searcher
from opsdrill.scenarios.load import LoadedScenario, load_answers


@dataclass(frozen=True, slots=True)
class Graded:
    """One recorded job with its result."""

    imported: Imported
    result: Result

    @property
    def commands(self) -> int:
        """How many shell commands its record holds."""
        calls = (call for task in self.imported.record.tasks for call in task.tool_calls)
        return sum(call.kind == "shell" for call in calls)


def grade_record(
    place: Place,
    scenario: str,
    record: Path,
    answers: Path | None,
    *,
    host: str | None = None,
    split_ssh: bool = False,
    shelf: scenarios.Kept = (),
) -> list[Result]:
    """The results that the rules give for the recorded jobs of a file, in its order.

    Args:
        scenario: a scenario's file, folder or key.
        record: a job record, `opsdrill.job/1`, or another tool's transcript.
        answers: what the hosts answered; without it every rule that asks a host is `error`.
        host: the host of whatever names none.
        split_ssh: take `ssh HOST COMMAND` for a command of that host.
        shelf: the scenarios that are kept in the store.

    Raises:
        UsageError: a file that is not there, a selection that is not one scenario, or nobody says
            on which host the agent worked.
        InvalidInput: a file that breaks its format, with the path of every wrong value.
    """
    loaded = scenarios.one(place, scenario, shelf)
    given: tuple[HostAnswer, ...] = load_answers(answers).answers if answers else ()
    with BoundedSearcher() as searcher:
        found = graded(
            place, loaded, record, given, searcher=searcher, host=host, split_ssh=split_ssh
        )
        return [each.result for each in found]


def graded(
    place: Place,
    loaded: LoadedScenario,
    record: Path,
    answers: Sequence[HostAnswer],
    *,
    searcher: Searcher,
    host: str | None = None,
    split_ssh: bool = False,
) -> Iterator[Graded]:
    """The recorded jobs of a file with their results, in its order. Raises as `grade_record`."""
    mask = mask_for(place, NO_LAB)
    rules, mask = masked_scenario(mask, loaded.scenario)
    placing = placing_for(loaded.scenario, host, split_ssh=split_ssh)
    given = tuple(masked(mask, answer) for answer in answers)
    grader = Grader(rules, searcher, scenario_version=loaded.version)
    for imported in recorded_jobs(record, placing, mask):
        yield Graded(imported, _result(loaded, imported, grader.grade(imported.record, given)))


def _result(loaded: LoadedScenario, imported: Imported, grade: Grade) -> Result:
    return Result(
        run=None,
        scenario=loaded.scenario.key,
        agent=imported.agent,
        scenario_version=loaded.version,
        state="done",
        warnings=(*imported.warnings, *strange_hosts(imported.record, loaded.scenario)),
    ).under(grade)
