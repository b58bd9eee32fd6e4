"""Commands that need neither store nor hosts do not wait for the libraries of those."""

from __future__ import annotations

import re

import pytest
from tests.acceptance.program import DATA, QUEUE, Cli

HEAVY = {"sqlalchemy", "alembic", "asyncssh", "pyroute2"}
ANSWERS = ["--host-answers", str(DATA / "host-answers.json")]
LIGHT = {
    "--help": (["--help"], 0),
    "grade": (["grade", QUEUE, str(DATA / "record.json"), *ANSWERS, "--format", "json"], 0),
    "lint": (["lint", QUEUE], 0),
    "scenarios list": (["scenarios", "list"], 0),
    "init": (["init", "mine"], 0),
}


def imported(cli: Cli, *words: str) -> tuple[int, set[str]]:
    """The exit status of a command, and the libraries that Python loaded for it."""
    done = cli(*words, PYTHONPROFILEIMPORTTIME="1")
    names = re.findall(r"^import time:[^|]*\|[^|]*\|\s*(\w+)", done.stderr, re.MULTILINE)
    return done.returncode, set(names)


@pytest.mark.parametrize("command", sorted(LIGHT))
def test_a_command_loads_what_it_needs(cli: Cli, command: str) -> None:
    words, status = LIGHT[command]
    ended, names = imported(cli, *words)
    assert ended == status
    assert "typer" in names
    assert names & HEAVY == set()


def test_what_is_heavy_is_seen(cli: Cli) -> None:
    """A command that looks at what is kept does load the library of the store."""
    ended, names = imported(cli, "runs", "list")
    assert ended == 0
    assert "sqlalchemy" in names
