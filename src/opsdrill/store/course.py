"""The course of a run, as every store keeps it: what may follow what, and what a row shows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from opsdrill.errors import Conflict, StoreError, UsageError
from opsdrill.model.result import Fraction, Grade, Phase, Result, RunState
from opsdrill.model.run import RunSpec, StoredFile

ID_LIMIT = 200
"""Characters of a run's id or a batch's."""
MARK_LIMIT = 200
"""Characters of a label's name or value, and those of a tag by which it is told from others."""
ROW_TEXT = 500
"""Characters of a text in a listing; the whole text is in the result."""

OVER: frozenset[RunState] = frozenset({"done", "cancelled", "interrupted"})


def check_new(spec: RunSpec) -> None:
    """Raises UsageError for an id or a label that no store can hold."""
    for what, text in (("run", spec.id), ("batch", spec.batch or "")):
        if len(text) > ID_LIMIT:
            raise UsageError(
                f"the id of a {what} has at most {ID_LIMIT} characters: {text[:40]}..."
            )
    for name, value in spec.labels.items():
        if max(len(name), len(value)) > MARK_LIMIT:
            raise UsageError(
                f"a label has at most {MARK_LIMIT} characters on either side: {name[:40]}..."
            )


def clipped_mark(tag: str) -> str:
    """A tag as runs and scenarios are found by it."""
    return tag[:MARK_LIMIT]


def check_added(spec: RunSpec, result: Result) -> None:
    """Raises UsageError for a run that cannot be kept at once, as it is not over or has files."""
    check_new(spec)
    if result.state not in OVER or spec.files:
        raise UsageError(f"run {spec.id} must be over and without support files to be added whole")


def check_files(what: str, files: Iterable[StoredFile], known: Collection[str]) -> None:
    """Raises StoreError for a support file whose content was never put into the store."""
    for file in files:
        if file.digest not in known:
            raise StoreError(
                f"{what} needs the support file {file.source}, whose content is not in the store",
                hint=f"put the file first, then keep the {what.split(maxsplit=1)[0]}",
            )


def check_begin(run: str, state: RunState) -> None:
    """Raises Conflict for a run that cannot begin: it runs, or it is over for good.

    An interrupted run may begin again: that is its next attempt.
    """
    if state == "running":
        raise Conflict(f"run {run} is running already")
    if state in ("done", "cancelled"):
        raise Conflict(f"run {run} is over ({state})", hint="plan it anew under a new id")


def check_delete(run: str, state: RunState) -> None:
    """Raises Conflict for a run that is still running."""
    if state == "running":
        raise Conflict(f"run {run} is running", hint="stop it first, then delete it")


def interrupted(spec: RunSpec, reason: str, phases: Sequence[Phase]) -> Result:
    """The result of a run whose process is no more: no verdict, only what became of it."""
    return Result(
        run=spec.id,
        scenario=spec.scenario.key,
        agent=str(spec.agent),
        scenario_version=spec.scenario_version,
        state="interrupted",
        reason=reason,
        phases=tuple(phases),
    )


def regraded(result: Result, first: Grade | None, grade: Grade) -> Result:
    """The result as it reads under a later grade than its `first`."""
    ours = first.warnings if first is not None else ()
    kept = tuple(warning for warning in result.warnings if warning not in ours)
    return result.model_copy(update={"warnings": kept}).under(grade)


def clipped(text: str) -> str:
    """`text` as a listing shows it."""
    return text if len(text) <= ROW_TEXT else f"{text[: ROW_TEXT - 1]}…"


def pair(fraction: Fraction | None) -> tuple[int, int] | None:
    """A fraction as a listing shows it."""
    return None if fraction is None else (fraction.passed, fraction.total)
