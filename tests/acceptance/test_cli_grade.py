"""`opsdrill grade`: the contract's output for a recorded job, and its refusals."""

from __future__ import annotations

import json

import pytest
from tests.acceptance.program import DATA, QUEUE, Cli

RECORD = str(DATA / "record.json")
ANSWERS = str(DATA / "host-answers.json")


def test_the_result_has_every_field_of_the_contract(cli: Cli) -> None:
    done = cli("grade", QUEUE, RECORD, "--host-answers", ANSWERS, "--format", "json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["format"] == "opsdrill.result/1"
    assert result["run"] is None
    assert result["agent"] is None
    assert result["scenario"] == "stuck-queue"
    assert result["grading_version"] == "1"
    assert len(result["scenario_version"]) == 64
    assert result["state"] == "done"
    assert (result["verdict"], result["fault"]) == ("passed", None)
    assert result["reason"]
    assert result["compliance"] == {"passed": 4, "total": 4, "not_evaluated": 0}
    assert result["remediation"] == {"passed": 1, "total": 1, "not_evaluated": 0}
    assert result["completion"]["status"] == "passed"
    assert [rule["index"] for rule in result["rules"]] == [0, 1, 2, 3]
    wanted = {
        "index", "label", "validator", "required", "status", "reason", "fault", "vacuous",
        "match_count", "matches",
    }  # fmt: skip
    assert all(wanted <= rule.keys() for rule in result["rules"])
    assert (result["phases"], result["warnings"]) == ([], [])


def test_without_host_answers_a_host_rule_is_an_error_and_so_is_the_result(cli: Cli) -> None:
    done = cli("grade", QUEUE, RECORD, "--format", "json")
    assert done.returncode == 3
    rule = json.loads(done.stdout)["rules"][0]
    assert (rule["status"], rule["fault"]) == ("error", "operator")
    assert "not evaluable from the record" in rule["reason"]
    assert "hint: what the hosts answered is missing; give it with --host-answers" in done.stderr


def test_a_failed_grade_exits_with_1_only_where_that_was_asked_for(cli: Cli) -> None:
    record = json.loads((DATA / "record.json").read_text())
    record["job"]["resolution"] = "partial"
    path = cli.folder / "record.json"
    path.write_text(json.dumps(record))
    words = ["grade", QUEUE, str(path), "--host-answers", ANSWERS]
    assert cli(*words).returncode == 0
    done = cli(*words, "--fail-on", "failed")
    assert done.returncode == 1
    assert "failed  [1] Says how it ended" in done.stdout


@pytest.mark.parametrize(
    ("file", "change", "path"),
    [
        ("scenario", ("validation", 0, "exit_code", True), "validation[0].exit_code"),
        ("scenario", ("validation", 2, "patern", "x"), "validation[2].patern"),
        ("scenario", ("validation", 2, "pattern", "foo("), "validation[2].pattern"),
        ("record", ("tasks", 0, "host", 7), "tasks[0].host"),
        ("record", ("coverage", "default", "state", "all"), "coverage.default.state"),
    ],
)
def test_a_wrong_file_exits_with_2_and_names_the_path(
    cli: Cli, file: str, change: tuple[str | int, ...], path: str
) -> None:
    shown = json.loads(cli("scenarios", "show", QUEUE, "--format", "json").stdout)
    documents = {"scenario": shown, "record": json.loads((DATA / "record.json").read_text())}
    place = documents[file]
    for step in change[:-2]:
        place = place[step]
    place[change[-2]] = change[-1]
    for name, document in documents.items():
        (cli.folder / f"{name}.json").write_text(json.dumps(document))
    done = cli("grade", "./scenario.json", "record.json")
    assert done.returncode == 2
    assert path in done.stderr
    assert not done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("no-such-key", RECORD),
        (QUEUE, "missing.json"),
        (QUEUE, RECORD, "--host-answers", "missing.json"),
        (QUEUE,),
        ("tag:basics", RECORD),
        ("", RECORD),
    ],
)
def test_what_is_not_there_exits_with_2(cli: Cli, words: tuple[str, ...]) -> None:
    done = cli("grade", *words)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")


def test_a_wrong_choice_is_told_with_the_right_ones(cli: Cli) -> None:
    done = cli("grade", QUEUE, RECORD, "--format", "xml")
    assert done.returncode == 2
    assert done.stderr.startswith(
        "error: invalid value for '--format': 'xml' is not one of 'table'"
    )


def test_of_very_many_problems_the_first_are_listed(cli: Cli) -> None:
    (cli.folder / "many.json").write_text(json.dumps({f"k{number}": 1 for number in range(150)}))
    done = cli("grade", "./many.json", RECORD)
    assert done.returncode == 2
    first, *listed, last = done.stderr.splitlines()
    assert first == "error: the scenario is refused: more than 50 problems"
    assert len(listed) == 50
    assert last == "  and others"


def test_a_record_in_another_format_is_refused_in_one_sentence(cli: Cli) -> None:
    path = cli.folder / "other.jsonl"
    path.write_text('{"type": "user"}\n{"type": "assistant"}\n')
    done = cli("grade", QUEUE, str(path))
    assert done.returncode == 2
    assert "opsdrill.job/1" in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_grading_touches_no_data_folder(cli: Cli) -> None:
    cli("grade", QUEUE, RECORD)
    assert not cli.home.exists()
