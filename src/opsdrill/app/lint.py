"""Lint: what is wrong with scenarios, and what is almost surely not meant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from opsdrill.app import documents, scenarios
from opsdrill.app.wiring import Place
from opsdrill.errors import InvalidInput, Problem
from opsdrill.scenarios.lint import lint as check


@dataclass(frozen=True, slots=True)
class Linted:
    """How many scenarios were looked at, and what was found in them."""

    scenarios: int
    problems: tuple[Problem, ...]


def lint(place: Place, words: Sequence[str]) -> Linted:
    """Look at every scenario that the words mean; a broken one hides none of the others.

    Raises:
        UsageError: the selection is empty, or there is no such path, key, tag or pack.
    """
    problems: list[Problem] = []
    count = 0
    for word in words:
        try:
            found = scenarios.entries(place, [word])
        except InvalidInput as error:
            count += 1
            problems += error.problems
            continue
        count += len(found)
        for entry in found:
            problems += entry.problems
            problems += check(entry.loaded) if entry.loaded else []
    return Linted(count, tuple(dict.fromkeys(problems)))


def line(problem: Problem) -> str:
    """`file:line:column: CODE message`, as linters write it."""
    place = ":".join(str(part) for part in (problem.file, problem.line, problem.column) if part)
    words = [f"{place}:" if place else "", problem.code or "", problem.path, problem.message]
    text = " ".join(word for word in words if word)
    if problem.suggestion and problem.suggestion not in problem.message:
        text += f"; better: {problem.suggestion}"
    return text if problem.severity == "error" else f"{text} ({problem.severity})"


def summary(found: Linted, shown: Sequence[Problem]) -> str:
    """`2 scenarios: 1 error, 3 warnings`."""
    counts = Counter(problem.severity for problem in shown)
    parts = [f"{counts[kind]} {kind}{'s' * (counts[kind] != 1)}" for kind in sorted(counts)]
    plural = "" if found.scenarios == 1 else "s"
    return f"{found.scenarios} scenario{plural}: {', '.join(parts) or 'nothing found'}"


def document(problems: Sequence[Problem], *, lines: bool) -> bytes:
    """The findings for programs."""
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
    return documents.lines(rows) if lines else documents.document("lint", "problems", rows)
