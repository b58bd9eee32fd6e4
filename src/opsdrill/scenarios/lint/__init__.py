"""Lint: what is wrong with a scenario, and what is almost surely not meant."""

from opsdrill.scenarios.lint.linter import CHECKS, WRITTEN_CHECKS, lint, lint_path

__all__ = ["CHECKS", "WRITTEN_CHECKS", "lint", "lint_path"]
