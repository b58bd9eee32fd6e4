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
    assert [row["id"] for row in whole["runs"]] == names[::-1]
    first = json.loads(cli("runs", "list", "--limit", "1", "--format", "json").stdout)
    rest = json.loads(cli("runs", "list", "--cursor", first["cursor"], "--format", "json").stdout)
    assert [first["runs"][0]["id"], rest["runs"][0]["id"]] == names[::-1]


@pytest.mark.parametrize(
    ("option", "value", "count"),
    [
        ("--verdict", "failed", 1),
        ("--agent", "script:right.yaml", 1),
        ("--scenario", "stuck-queue", 2),
        ("--state", "interrupted", 0),
    ],
)
def test_a_listing_is_narrowed(
    cli: Cli, kept: dict[str, str], option: str, value: str, count: int
) -> None:
    done = cli("runs", "list", option, value, "--format", "jsonl")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == count


def test_a_state_that_there_is_not_is_refused(cli: Cli) -> None:
    done = cli("runs", "list", "--state", "sleeping")
    assert done.returncode == 2
    assert "interrupted" in done.stderr


def test_show_puts_completion_first_then_every_rule_with_reason_and_output(
    cli: Cli, kept: dict[str, str]
) -> None:
    text = cli("runs", "show", kept["script:wrong.yaml"]).stdout
    order = ["completion check", "[0] The queue runs", "[2] Nothing was deleted", "phases:"]
    assert [text.index(words) for words in order] == sorted(text.index(words) for words in order)
    assert ">>rm<< -rf /var/spool/queue" in text
    assert "mail-01$ queue-runs" in text
    assert "running" in text


def test_a_run_is_found_by_how_its_id_begins(cli: Cli, kept: dict[str, str]) -> None:
    run = kept["script:right.yaml"]
    result = json.loads(cli("runs", "show", run[:-2], "--format", "json").stdout)
    assert result["run"] == run
    done = cli("runs", "show", run[:8])
    assert done.returncode == 2
    assert all(name in done.stderr for name in kept.values())


@pytest.mark.parametrize("run", ["no-such-run", "", "%", "../../etc/passwd", "x" * 5000, "'; --"])
def test_a_run_that_is_not_there_is_one_sentence(cli: Cli, run: str) -> None:
    for command in ("show", "evidence", "delete"):
        done = cli("runs", command, run)
        assert done.returncode == 2
        assert done.stderr.startswith("error: ")


def test_evidence_is_the_job_record_and_grades_the_same(cli: Cli, kept: dict[str, str]) -> None:
    run = kept["script:wrong.yaml"]
    done = cli("runs", "evidence", run)
    assert json.loads(done.stdout)["format"] == "opsdrill.job/1"
    (cli.folder / "record.json").write_text(done.stdout)
    (cli.folder / "given.json").write_text(
        json.dumps({"answers": [{"on": "mail-01", "run": "queue-runs", "exit_code": 0}]})
    )
    words = ["grade", QUEUE, "record.json", "--host-answers", "given.json", "--format", "json"]
    again = json.loads(cli(*words).stdout)
    shown = json.loads(cli("runs", "show", run, "--format", "json").stdout)
    assert again["verdict"] == shown["verdict"]
    assert again["compliance"] == shown["compliance"]


def test_a_deleted_run_is_gone_and_the_other_stays(cli: Cli, kept: dict[str, str]) -> None:
    gone, stays = kept["script:wrong.yaml"], kept["script:right.yaml"]
    assert cli("runs", "delete", "not-there", gone).returncode == 2
    assert cli("runs", "delete", gone).returncode == 0
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
