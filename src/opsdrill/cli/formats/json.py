"""Results for programs: `opsdrill.result/1`, or `opsdrill.results/1` for several."""

from __future__ import annotations

from collections.abc import Sequence

from opsdrill.app import documents
from opsdrill.model.result import Result, Results


def results(found: Sequence[Result]) -> bytes:
    """One object for one run; for several an object that holds them, never a bare array."""
    document = found[0] if len(found) == 1 else Results(results=tuple(found))
    return documents.of_model(document)


def lines(found: Sequence[Result]) -> bytes:
    """One result a line."""
    return b"\n".join(documents.of_model(result, indented=False) for result in found)
