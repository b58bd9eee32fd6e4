"""The end of `run` and `grade`: results written in the chosen format, and the exit status."""

from __future__ import annotations

from collections.abc import Sequence

from opsdrill.cli.choices import FailOn, ResultFormat
from opsdrill.cli.formats import WRITERS, terminal
from opsdrill.cli.front import ERROR, FAILED, PASSED, Front
from opsdrill.model.result import Result


def report(
    told: Front, results: Sequence[Result], format: ResultFormat, fail_on: FailOn | None
) -> int:
    """Write the results to standard output; returns the exit status that they ask for."""
    if format == "table":
        terminal.table(told.out, results)
    else:
        told.out.document(WRITERS[format](results))
    return status(results, fail_on or told.place.settings.fail_on)


def status(results: Sequence[Result], fail_on: FailOn | None) -> int:
    """3 where a run ended in error; else 1 where one failed and that was asked for; else 0."""
    verdicts = {result.verdict for result in results}
    if "error" in verdicts:
        return ERROR
    return FAILED if "failed" in verdicts and fail_on == "failed" else PASSED
