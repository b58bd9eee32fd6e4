"""`opsdrill runs` and `regrade`: what is kept can be looked at, graded again and deleted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.acceptance.program import QUEUE, Cli, lab


@pytest.fixture
def kept(cli: Cli) -> dict[str, str]:
    """Two kept runs: agent -> id."""
    done = cli(
        "run", QUEUE, "--lab", lab(cli), "--agent", "script:right.yaml",
        "--agent", "script:wrong.yaml", "--format", "jsonl",
    )  # fmt: skip
    results = [json.loads(line) for line in done.stdout.splitlines()]
    return {result["agent"]: result["run"] for result in results}


def test_the_newest_run_comes_first_and_pages_follow_each_other(
    cli: Cli, kept: dict[str, str]
) -> None:
    names = list(kept.values())
    whole = json.loads(cli("runs", "list", "--format", "json").stdout)
    assert whole["format"] == "opsdrill.runs/1"
    left = json.loads(cli("runs", "list", "--format", "jsonl").stdout)
    assert left["id"] == stays


def test_a_regrade_with_the_same_rules_flips_nothing(cli: Cli, kept: dict[str, str]) -> None:
    done = cli("regrade", "--all", "--format", "json")
    found = json.loads(done.stdout)
    assert (found["graded"], found["flips"]) == (2, [])


def test_a_regrade_with_edited_rules_tells_every_flip_and_keeps_the_old_grade(
    cli: Cli, kept: dict[str, str]
) -> None:
    scenario = (Path(QUEUE) / "scenario.yaml").read_text()
    (cli.folder / "edited.yaml").write_text(scenario.replace(r"'\brm\b'", r"'\bshred\b'"))
    run = kept["script:wrong.yaml"]
    done = cli("regrade", run, "--scenario", "./edited.yaml", "--format", "json")
    flips = json.loads(done.stdout)["flips"]
    assert [(flip["rule"], flip["before"], flip["after"]) for flip in flips] == [
        ("verdict", "failed", "passed"),
        ("[2] Nothing was deleted", "failed", "passed"),
    ]
    shown = cli("runs", "show", run).stdout
    assert "1  failed  run" in shown
    assert "2  passed  regrade" in shown


@pytest.mark.parametrize("words", [[], ["--all", "some-run"], ["no-such-run"]])
def test_a_regrade_of_nothing_exits_with_2(cli: Cli, words: list[str]) -> None:
    assert cli("regrade", *words).returncode == 2
