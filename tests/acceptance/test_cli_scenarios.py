"""`opsdrill lint`, `scenarios`, `init` and `doctor`."""

from __future__ import annotations

import json
import re

import pytest
from tests.acceptance.program import QUEUE, Cli


def test_lint_writes_file_line_column_code_and_exits_with_2_on_errors(cli: Cli) -> None:
    folder = cli.folder / "bad"
    folder.mkdir()
    (folder / "scenario.yaml").write_text(
        "key: bad\ntitle: Bad\nticket_title: Bad\nhosts: [a]\nsetup:\n  - run: 'true'\n    on: b\n"
    )
    done = cli("lint", "bad")
    assert done.returncode == 2
    assert re.match(r"bad/scenario\.yaml:7:9: OD\d{3} setup\[0\]\.on ", done.stdout), done.stdout


def test_lint_warns_and_exits_with_0(cli: Cli) -> None:
    folder = cli.folder / "twice"
    folder.mkdir()
    rule = "  - {label: Same, validator: task_count, min: 1}\n"
    (folder / "scenario.yaml").write_text(
        f"key: twice\ntitle: T\nticket_title: T\nvalidation:\n{rule}{rule}"
    )
    done = cli("lint", "twice")
    assert done.returncode == 0
    assert "twice/scenario.yaml:6:13: OD010 validation[1].label" in done.stdout
    assert "(warning)" in done.stdout
    assert "1 scenario: 1 warning" in done.stderr


def test_a_broken_scenario_hides_none_of_the_others(cli: Cli) -> None:
    for name in ("a", "b"):
        folder = cli.folder / "all" / name
        folder.mkdir(parents=True)
        (folder / "scenario.yaml").write_text(f"key: {name}\ntitel: X\n")
    done = cli("lint", "all")
    assert done.returncode == 2
    assert "all/a/scenario.yaml" in done.stdout
    assert "all/b/scenario.yaml" in done.stdout
    rows = map(json.loads, cli("lint", "all", "--format", "jsonl").stdout.splitlines())
    assert {row["severity"] for row in rows} == {"error"}


@pytest.mark.parametrize("words", [[], ["no-such-folder"], ["tag:none"], ["."]])
def test_lint_of_nothing_exits_with_2(cli: Cli, words: list[str]) -> None:
    done = cli("lint", *words)
    assert done.returncode == 2
    assert not done.stdout


def test_the_packs_that_come_along_have_no_findings(cli: Cli) -> None:
    listed = json.loads(cli("scenarios", "list", "--format", "json").stdout)
    assert listed["format"] == "opsdrill.scenarios/1"
    keys = [row["key"] for row in listed["scenarios"]]
    assert keys
    done = cli("lint", *keys)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_shown_scenario_loads_again_as_the_same_version(cli: Cli) -> None:
    shown = cli("scenarios", "show", QUEUE, "--format", "json").stdout
    (cli.folder / "again.json").write_text(shown)
    text = cli("scenarios", "show", "./again.json").stdout
    version = re.search(r"version: (\w+)", text)
    assert version and version[1] in cli("scenarios", "show", QUEUE).stdout


@pytest.mark.parametrize("name", ["scenario", "job", "result"])
def test_schemas_are_printed(cli: Cli, name: str) -> None:
    assert json.loads(cli("scenarios", "schema", name).stdout)["$schema"]


def test_an_unknown_schema_lists_the_choices(cli: Cli) -> None:
    done = cli("scenarios", "schema", "../../pyproject")
    assert done.returncode == 2
    assert "scenario" in done.stderr


def test_a_new_folder_passes_lint_and_a_full_one_is_refused(cli: Cli) -> None:
    assert cli("init", "new-drill").returncode == 0
    assert cli("lint", "new-drill").returncode == 0
    spaced = cli("init", "My Drill")
    assert "`opsdrill lint 'My Drill'`" in spaced.stderr
    done = cli("init", "new-drill")
    assert done.returncode == 2
    assert "new-drill" in done.stderr


def test_settings_name_folders_with_scenarios(cli: Cli) -> None:
    cli("init", "mine/first-drill")
    (cli.folder / "opsdrill.toml").write_text('scenarios = "mine"\n')
    assert "first-drill" in cli("scenarios", "list").stdout
    assert cli("lint", "first-drill").returncode == 0


def test_doctor_says_what_works_and_cleans_repeatably(cli: Cli) -> None:
    report = json.loads(cli("doctor", "--format", "json").stdout)
    assert report["format"] == "opsdrill.doctor/1"
    assert "sandbox" in [driver["name"] for driver in report["drivers"]]
    for _ in range(2):
        done = cli("doctor", "--clean")
        assert done.returncode in (0, 2)
        assert "nothing was left behind" in done.stdout
