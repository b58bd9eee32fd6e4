"""`opsdrill run`: exit statuses, formats, and what stands in the output."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.acceptance.program import PROGRAM, QUEUE, Cli, lab

RIGHT, WRONG = "script:right.yaml", "script:wrong.yaml"
UNREACHABLE = {"run": "queue-runs", "after": "start-queue", "unreachable": True}


def test_a_run_that_passed_exits_with_0(cli: Cli) -> None:
    done = cli("run", QUEUE, "--lab", lab(cli), "--agent", RIGHT)
    assert done.returncode == 0, done.stderr
    assert "1 passed of 1" in done.stdout


@pytest.mark.parametrize(
    ("agents", "options", "status"),
    [
        ([WRONG], [], 0),
        ([WRONG], ["--fail-on", "failed"], 1),
        ([WRONG], ["--fail-on", "never"], 0),
        ([RIGHT, WRONG], ["--fail-on", "failed"], 1),
        ([RIGHT], ["--fail-on", "failed"], 0),
    ],
)
def test_a_failed_run_exits_with_1_only_where_that_was_asked_for(
    cli: Cli, agents: list[str], options: list[str], status: int
) -> None:
    words = [word for agent in agents for word in ("--agent", agent)]
    assert cli("run", QUEUE, "--lab", lab(cli), *words, *options).returncode == status


@pytest.mark.parametrize("options", [[], ["--fail-on", "failed"]])
def test_an_error_exits_with_3_also_beside_failures(cli: Cli, options: list[str]) -> None:
    """3 comes before 1, and an errored run is counted, never dropped."""
    done = cli(
        "run", QUEUE, "--lab", lab(cli, UNREACHABLE), "--agent", RIGHT, "--agent", "noop", *options
    )
    assert done.returncode == 3, done.stderr
    assert "1 failed, 1 error of 2" in done.stdout
    assert "pass rate 0 of 1 (0%), without the 1 in error" in done.stdout


def test_only_errors_exit_with_3(cli: Cli) -> None:
    done = cli("run", QUEUE, "--lab", lab(cli, silent=["mail-01"]), "--agent", RIGHT)
    assert done.returncode == 3
    assert "1 error of 1" in done.stdout
    assert "pass rate" not in done.stdout


@pytest.mark.parametrize(
    "selection", [[], ["tag:nothing-has-this"], ["no-such-key"], ["./no-such-folder"], ["."]]
)
def test_an_empty_selection_exits_with_2(cli: Cli, selection: list[str]) -> None:
    done = cli("run", *selection, "--agent", "noop", "--lab", "fake")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert not done.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", QUEUE], "no agent was named"),
        (["run", QUEUE, "--agent", "nobody"], "there is no agent named 'nobody'"),
        (["run", QUEUE, "--agent", "script:missing.yaml"], "missing.yaml"),
        (["run", QUEUE, "--agent", "noop", "--lab", "nowhere"], "there is no lab named 'nowhere'"),
        (["run", QUEUE, "--agent", "noop", "--lab", "./nowhere.yaml"], "nowhere.yaml"),
        (
            ["run", QUEUE, "--agent", "noop", "--lab", "local"],
            "the driver local needs a lab that says more",
        ),
        (["run", QUEUE, "--agent", "noop", "--repeat", "0"], "must be at least 1"),
        (["run", QUEUE, "--agent", "noop", "--repeat", "x"], "must be a whole number"),
        (["runs", "list", "--limit", "1001"], "must be at most 1000"),
        (["run", QUEUE, "--agent", "noop", "--no-such-option"], "--no-such-option"),
        (["no-such-command"], "no-such-command"),
        (["run", QUEUE, "--agent", "noop", "--format", "yaml"], "--format"),
    ],
)
def test_usage_errors_exit_with_2_and_say_what_to_do(cli: Cli, words: list[str], says: str) -> None:
    done = cli(*words)
    assert done.returncode == 2
    assert says in done.stderr
    assert len([line for line in done.stderr.splitlines() if line.startswith("error:")]) == 1


def test_without_a_command_the_help_is_shown_and_the_status_is_2(cli: Cli) -> None:
    done = cli.shell(str(PROGRAM))
    assert done.returncode == 2
    assert b"Usage: opsdrill" in done.stderr
    assert not done.stdout


def test_a_wrong_scenario_exits_with_2_and_names_every_path(cli: Cli) -> None:
    folder = cli.folder / "bad"
    folder.mkdir()
    (folder / "scenario.yaml").write_text(
        "key: bad\ntitle: Bad\nticket_title: Bad\nhosts: [a]\nvalidation:\n"
        "  - {label: A, validator: pattern_match, where: tool_calls, pattern: 'foo('}\n"
        "  - {label: B, validator: task_count, min: 1.0}\n"
    )
    done = cli("run", "./bad", "--agent", "noop")
    assert done.returncode == 2
    assert "validation[1].min" in done.stderr
    assert "bad/scenario.yaml:7" in done.stderr


def test_one_run_is_one_object(cli: Cli) -> None:
    done = cli("run", QUEUE, "--lab", lab(cli), "--agent", WRONG, "--format", "json")
    result = json.loads(done.stdout)
    assert result["format"] == "opsdrill.result/1"
    assert result["verdict"] == "failed"
    assert result["state"] == "done"
    assert result["compliance"] == {"passed": 3, "total": 4, "not_evaluated": 0}
    assert result["rules"][2]["matches"][0] == {
        "task": "t1",
        "where": "executed_commands",
        "item": 0,
        "value": "rm -rf /var/spool/queue",
        "span": [0, 2],
    }
    assert [phase["name"] for phase in result["phases"]][:3] == ["preflight", "provision", "setup"]


def test_several_runs_are_an_object_that_holds_them(cli: Cli) -> None:
    done = cli(
        "run", QUEUE, "--lab", lab(cli), "--agent", RIGHT, "--repeat", "3", "--parallel", "2",
        "--format", "json",
    )  # fmt: skip
    document = json.loads(done.stdout)
    assert document["format"] == "opsdrill.results/1"
    assert [result["verdict"] for result in document["results"]] == ["passed"] * 3
    assert len({result["run"] for result in document["results"]}) == 3


def test_jsonl_is_one_result_a_line(cli: Cli) -> None:
    done = cli(
        "run", QUEUE, "--lab", lab(cli), "--agent", RIGHT, "--agent", "noop", "--format", "jsonl"
    )
    assert [json.loads(line)["verdict"] for line in done.stdout.splitlines()] == [
        "passed",
        "failed",
    ]


def test_junit_tells_failures_and_errors_apart(cli: Cli) -> None:
    done = cli(
        "run", QUEUE, "--lab", lab(cli, UNREACHABLE), "--agent", RIGHT, "--agent", "noop",
        "--format", "junit",
    )  # fmt: skip
    suites = ElementTree.fromstring(done.stdout.encode())
    assert (suites.get("tests"), suites.get("failures"), suites.get("errors")) == ("2", "1", "1")
    assert [len(case.findall("error")) for case in suites.iter("testcase")] == [1, 0]


def test_markdown_has_a_table_and_the_failed_rule(cli: Cli) -> None:
    done = cli("run", QUEUE, "--lab", lab(cli), "--agent", WRONG, "--format", "markdown")
    assert "| scenario | agent | verdict |" in done.stdout
    assert "Nothing was deleted" in done.stdout


def test_ten_runs_of_which_two_are_in_error_are_counted_as_ten(cli: Cli) -> None:
    """6 pass, 2 fail, 2 lose their host: errors stand beside the rate, never in it."""
    right = (Path(QUEUE) / "right.yaml").read_text()
    for name in ("a", "b", "c"):
        (cli.folder / f"{name}.yaml").write_text(right)
    late = right.replace("[{run: start-queue}]", "[{run: start-queue}, {run: break-host}]")
    (cli.folder / "late.yaml").write_text(late)
    answers = [
        {"run": "break-host", "exit_code": 0},
        {"run": "queue-runs", "after": "break-host", "unreachable": True},
    ]
    words = ["run", QUEUE, "--lab", lab(cli, *answers), "--repeat", "2", "--parallel", "4"]
    for name in ("a", "b", "c", "wrong", "late"):
        words += ["--agent", f"script:{name}.yaml"]
    done = cli(*words)
    assert done.returncode == 3
    assert "6 passed, 2 failed, 2 error of 10" in done.stdout
    assert "pass rate 6 of 8 (75%), without the 2 in error" in done.stdout
    assert "2 of the errors began after the agent had acted" in done.stdout


def test_data_goes_to_standard_output_and_progress_to_standard_error(cli: Cli) -> None:
    done = cli("run", QUEUE, "--lab", lab(cli), "--agent", RIGHT, "--format", "json")
    json.loads(done.stdout)
    assert "stuck-queue: setup" in done.stderr
    assert "[1/1]" in done.stderr


def test_the_settings_file_stands_in_for_flags_and_flags_beat_it(cli: Cli) -> None:
    lab(cli)
    (cli.folder / "opsdrill.toml").write_text(
        f'agent = "{WRONG}"\nlab = "./fake-lab.yaml"\nfail-on = "failed"\nrepeat = 2\n'
    )
    assert cli("run", QUEUE).returncode == 1
    assert cli("run", QUEUE, "--fail-on", "never").returncode == 0
    assert cli("run", QUEUE, OPSDRILL_FAIL_ON="never").returncode == 0
    done = cli("run", QUEUE, "--agent", RIGHT, "--repeat", "1")
    assert "1 passed of 1" in done.stdout


def test_an_unknown_setting_is_refused_with_its_line(cli: Cli) -> None:
    (cli.folder / "opsdrill.toml").write_text('agent = "noop"\nparalel = 3\n')
    done = cli("run", QUEUE)
    assert done.returncode == 2
    assert "opsdrill.toml:2:1" in done.stderr
    assert "paralel" in done.stderr


def test_a_lab_file_in_the_working_folder_is_taken(cli: Cli) -> None:
    path = lab(cli)
    (cli.folder / "lab.yaml").write_text((cli.folder / path).read_text())
    assert cli("run", QUEUE, "--agent", RIGHT).returncode == 0


def test_a_lab_of_the_data_folder_is_found_by_name(cli: Cli) -> None:
    path = lab(cli)
    labs = cli.home / "labs"
    labs.mkdir(parents=True)
    (labs / "scripted.yaml").write_text((cli.folder / path).read_text())
    (labs / "answers.json").write_text((cli.folder / "answers.json").read_text())
    assert cli("run", QUEUE, "--agent", RIGHT, "--lab", "scripted").returncode == 0
