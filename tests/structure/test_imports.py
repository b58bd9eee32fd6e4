"""Imports point down only, and stand at the top of their module."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "opsdrill"


def test_the_contracts_of_import_linter_hold() -> None:
    program = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run(
        [program, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 kept, 0 broken" in done.stdout


def test_no_import_stands_inside_a_function_but_where_the_command_line_starts() -> None:
    for path in SOURCE.rglob("*.py"):
        if path.is_relative_to(SOURCE / "cli"):
            continue
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            for node in ast.walk(function):
                inside = isinstance(node, (ast.Import, ast.ImportFrom))
                assert not inside, f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"
