"""`opsdrill lint` with `--notes` and `--fix`, as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

from tests.acceptance.program import QUEUE, Cli, lab

SCENARIO = """\
key: traps
title: Traps
ticket_title: Traps
hosts: [web-01]
validation:
  # must stay
  - label: a
    validator: pattern_match
    where: executed_commands
    pattern: %s
"""


def written(cli: Cli, pattern: str) -> Path:
    folder = cli.folder / "traps"
    folder.mkdir(exist_ok=True)
    path = folder / "scenario.yaml"
    path.write_text(SCENARIO % pattern)
    return path


def test_a_trap_is_told_with_its_place_and_the_better_pattern(cli: Cli) -> None:
    written(cli, "ping 10.0.0.1")
    done = cli("lint", "traps")
    assert done.returncode == 0
    assert done.stdout.startswith("traps/scenario.yaml:10:14: OD021 validation[0].pattern has an ")
    assert r"; better: ping 10\.0\.0\.1 (warning)" in done.stdout


def test_a_trap_that_cannot_be_meant_exits_with_2(cli: Cli) -> None:
    written(cli, '"\\breboot\\b"')
    done = cli("lint", "traps")
    assert done.returncode == 2
    assert "OD020" in done.stdout


def test_notes_are_shown_only_when_asked_for(cli: Cli) -> None:
    written(cli, "top")
    assert cli("lint", "traps").stdout == ""
    assert "OD022 validation[0].pattern" in cli("lint", "traps", "--notes").stdout
    assert not cli.home.exists()


def test_fix_mends_the_file_shows_what_and_has_nothing_left_the_second_time(cli: Cli) -> None:
    path = written(cli, '"(?i)\\breboot\\b"')
    done = cli("lint", "traps", "--fix")
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("traps/scenario.yaml:10:14: OD020 validation[0].pattern was ")
    assert lines[1].endswith(r'was "(?i)\\breboot\\b" and is now "\\breboot\\b" (mended)')
    assert "1 scenario: 2 mended" in done.stderr
    assert path.read_text() == SCENARIO % '"\\\\breboot\\\\b"'
    again = cli("lint", "traps", "--fix")
    assert (again.returncode, again.stdout) == (0, "")
    assert "nothing found" in again.stderr


def test_what_is_mended_is_in_the_documents_too(cli: Cli) -> None:
    written(cli, "(?i)df")
    told = json.loads(cli("lint", "traps", "--fix", "--format", "json").stdout)
    assert told["format"] == "opsdrill.lint/1"
    assert [(fix["code"], fix["before"], fix["after"]) for fix in told["fixes"]] == [
        ("OD030", "(?i)df", "df")
    ]
    written(cli, "(?i)10.0.0.1")
    rows = [
        json.loads(line)
        for line in cli("lint", "traps", "--fix", "--format", "jsonl").stdout.splitlines()
    ]
    assert [row["code"] for row in rows] == ["OD030", "OD021"]
    assert ["before" in row for row in rows] == [True, False]


def test_a_broken_scenario_is_told_and_not_touched(cli: Cli) -> None:
    path = written(cli, "(?i)(")
    done = cli("lint", "traps", "--fix")
    assert done.returncode == 2
    assert "OD003" in done.stdout
    assert path.read_text() == SCENARIO % "(?i)("


def test_must_not_rules_that_no_kept_run_broke_are_told(cli: Cli) -> None:
    """Of the two runs, the wrong agent's fires one rule; a right one alone fires none."""
    cli("run", QUEUE, "--lab", lab(cli), "--agent", "script:right.yaml")
    before = cli("lint", QUEUE, "--notes").stdout
    assert "OD028" in before
    assert "OD028" not in cli("lint", QUEUE).stdout
    cli("run", QUEUE, "--lab", lab(cli), "--agent", "script:wrong.yaml")
    after = cli("lint", QUEUE, "--notes").stdout
    assert after.count("OD028") < before.count("OD028")


def test_a_store_that_cannot_be_read_keeps_nobody_from_checking(cli: Cli) -> None:
    written(cli, "10.0.0.1")
    cli.home.mkdir()
    (cli.home / "store.db").write_text("no database" * 1000)
    done = cli("lint", "traps", "--notes")
    assert done.returncode == 0
    assert "OD021" in done.stdout
    assert "warning: kept runs were not looked at" in done.stderr
