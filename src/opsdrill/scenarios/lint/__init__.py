"""Lint: what is wrong with a scenario, and what is almost surely not meant."""

from opsdrill.scenarios.lint.fix import Fix, mend
from opsdrill.scenarios.lint.linter import (
    CHECKS,
    RECORDED_CHECKS,
    WRITTEN_CHECKS,
    lint,
    lint_path,
)

__all__ = [
    "CHECKS",
    "RECORDED_CHECKS",
    "WRITTEN_CHECKS",
    "Fix",
    "lint",
    "lint_path",
    "mend",
]
