"""Lint: what is wrong with scenarios, and what is almost surely not meant."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opsdrill.app import documents, scenarios
from opsdrill.app.wiring import Place
from opsdrill.errors import Problem
from opsdrill.scenarios.lint import Fix, mend
from opsdrill.scenarios.lint import lint as check

if TYPE_CHECKING:  # with it comes the store
    from opsdrill.app.recorded import KeptRuns


@dataclass(frozen=True, slots=True)
class Linted:
    """How many scenarios were looked at, what was found in them, and what was mended.

    `trouble` says why kept runs could not be looked at, where they could not.
    """

    scenarios: int
    problems: tuple[Problem, ...]
    fixes: tuple[Fix, ...] = ()
    trouble: str | None = None


def lint(
    place: Place,
    words: Sequence[str],
    kept: KeptRuns | None = None,
    *,
    fix: bool = False,
    shelf: scenarios.Kept = (),
) -> Linted:
    """Look at every scenario that the words mean; a broken one hides none of the others.

    Args:
        words: paths, keys, tags and packs.
        kept: kept runs, which some of what depends on judgement takes; None: nobody asks for that.
        fix: mend in the files what can safely be mended, before they are looked at.
        shelf: the scenarios that are kept in the store; nothing is mended in those.

    Raises:
        UsageError: the selection is empty, there is no such path, key, tag or pack, or a file
            cannot be mended.
    """
    fixes = _fix(place, words, shelf) if fix else []
    problems: list[Problem] = []
    count = 0
    for word in words:
        found = scenarios.entries(place, [word], shelf)
        count += len(found)
        for entry in found:
            problems += entry.problems
            if entry.loaded is not None:
                seen = kept.of(entry.loaded.scenario) if kept is not None else None
                problems += check(entry.loaded, seen)
    trouble = kept.trouble if kept is not None else None
    return Linted(count, tuple(dict.fromkeys(problems)), tuple(fixes), trouble)


def _fix(place: Place, words: Sequence[str], shelf: scenarios.Kept) -> list[Fix]:
    """Mend every file that loads, each once."""
    files: dict[Path, Path] = {}
    for word in words:
        found = scenarios.entries(place, [word], shelf)
        paths = (entry.path for entry in found if entry.loaded is not None)
        files.update((path.resolve(), path) for path in paths if path is not None)
    return [fix for path in files.values() for fix in mend(path)]


def line(problem: Problem) -> str:
    """`file:line:column: CODE message`, as linters write it."""
    place = ":".join(str(part) for part in (problem.file, problem.line, problem.column) if part)
    words = [f"{place}:" if place else "", problem.code or "", problem.path, problem.message]
    text = " ".join(word for word in words if word)
    if problem.suggestion and problem.suggestion not in problem.message:
        text += f"; better: {problem.suggestion}"
    return text if problem.severity == "error" else f"{text} ({problem.severity})"


def fix_line(fix: Fix) -> str:
    """`file:line:column: CODE path was "..." and is now "..." (mended)`."""
    place = ":".join(str(part) for part in (fix.file, fix.line, fix.column) if part)
    was, now = (json.dumps(text, ensure_ascii=False) for text in (fix.before, fix.after))
    return f"{place}: {fix.code} {fix.path} was {was} and is now {now} (mended)"


def summary(found: Linted, shown: Sequence[Problem]) -> str:
    """`2 scenarios: 1 error, 3 warnings`."""
    counts = Counter(problem.severity for problem in shown)
    parts = [f"{counts[kind]} {kind}{'s' * (counts[kind] != 1)}" for kind in sorted(counts)]
    plural = "" if found.scenarios == 1 else "s"
    mended = [f"{len(found.fixes)} mended"] if found.fixes else []
    told = ", ".join([*mended, *(parts or ([] if mended else ["nothing found"]))])
    return f"{found.scenarios} scenario{plural}: {told}"


def document(found: Linted, problems: Sequence[Problem], *, lines: bool) -> bytes:
    """What was mended and what is found, for programs; in lines the former have `before`."""
    rows: list[dict[str, object]] = [
        {
            "file": problem.file,
            "line": problem.line,
            "column": problem.column,
            "code": problem.code,
            "severity": problem.severity,
            "path": problem.path,
            "message": problem.message,
            "suggestion": problem.suggestion,
        }
        for problem in problems
    ]
    fixes = [asdict(fix) for fix in found.fixes]
    if lines:
        return documents.lines([*fixes, *rows])
    return documents.document("lint", "problems", rows, fixes=fixes)
