"""`opsdrill import`, `grade` of transcripts, and `regrade` of many runs."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from tests.acceptance.program import DATA, QUEUE, Cli

ANSWERS = str(DATA / "host-answers.json")
COMMANDS = ["mailq | tail -n 1", "systemctl start queue"]


def transcript(folder: Path, name: str = "session.jsonl", commands: list[str] = COMMANDS) -> str:
    """A session of a coding agent that ran some commands."""
    at = "2026-01-31T12:00:{:02}.000Z"
    lines: list[dict[str, object]] = [
        {
            "type": "user", "timestamp": at.format(0), "sessionId": "s1", "uuid": "u0",
            "message": {"role": "user", "content": "Mails are not sent. Repair it."},
        }
    ]  # fmt: skip
    for number, command in enumerate(commands):
        use = {
            "type": "tool_use",
            "id": f"t{number}",
            "name": "Bash",
            "input": {"command": command},
        }
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "ok"}
        lines += [
            {
                "type": "assistant", "timestamp": at.format(2 * number + 1), "sessionId": "s1",
                "uuid": f"a{number}",
                "message": {"id": f"m{number}", "role": "assistant", "content": [use]},
            },
            {
                "type": "user", "timestamp": at.format(2 * number + 2), "sessionId": "s1",
                "uuid": f"u{number + 1}", "message": {"role": "user", "content": [result]},
            },
        ]  # fmt: skip
    said = {"type": "text", "text": "The queue runs again."}
    lines.append(
        {
            "type": "assistant", "timestamp": at.format(59), "sessionId": "s1", "uuid": "last",
            "message": {
                "id": "last", "role": "assistant", "content": [said], "stop_reason": "end_turn",
            },
        }
    )  # fmt: skip
    path = folder / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def test_a_transcript_is_graded_directly_on_the_scenarios_only_host(cli: Cli) -> None:
    words = ["grade", QUEUE, transcript(cli.folder), "--host-answers", ANSWERS]
    done = cli(*words, "--format", "json")
    result = json.loads(done.stdout)
    assert (done.returncode, result["verdict"]) == (0, "passed"), done.stderr
    assert [rule["status"] for rule in result["rules"]] == ["passed"] * 4


def test_imported_files_are_runs_with_evidence_and_a_grade(cli: Cli) -> None:
    good = transcript(cli.folder)
    bad = transcript(cli.folder, "bad.jsonl", ["rm -rf /var/spool/queue"])
    done = cli(
        "import", good, bad, "--scenario", QUEUE, "--host-answers", ANSWERS, "--format", "json"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [row["verdict"] for row in found["runs"]] == ["passed", "failed"]
    assert [row["commands"] for row in found["runs"]] == [2, 1]
    assert {row["format"] for row in found["runs"]} == {"claude-code"}
    listed = json.loads(cli("runs", "list", "--format", "json").stdout)["runs"]
    assert {row["id"] for row in listed} == {row["run"] for row in found["runs"]}
    record = json.loads(cli("runs", "evidence", found["runs"][0]["run"]).stdout)
    [task] = record["tasks"]
    assert [call["arguments"]["command"] for call in task["tool_calls"]] == COMMANDS
    assert task["host"] == "mail-01"
    shown = cli("runs", "show", found["runs"][1]["run"])
    assert "Nothing was deleted" in shown.stdout


def test_a_file_that_cannot_be_read_hides_no_other_and_exits_with_2(cli: Cli) -> None:
    (cli.folder / "notes.txt").write_text("this is no transcript\n")
    done = cli(
        "import", "notes.txt", "absent.jsonl", transcript(cli.folder), "--host", "mail-01",
        "--format", "json",
    )  # fmt: skip
    assert done.returncode == 2
    found = json.loads(done.stdout)
    assert [one["file"] for one in found["refused"]] == ["notes.txt", "absent.jsonl"]
    assert "format" in found["refused"][0]["reason"]
    assert len(found["runs"]) == 1


def test_without_a_host_it_says_what_to_do(cli: Cli) -> None:
    done = cli("import", transcript(cli.folder))
    assert done.returncode == 2
    assert "--host NAME" in done.stderr
    assert json.loads(cli("runs", "list", "--format", "json").stdout)["runs"] == []


def test_what_was_imported_without_rules_is_graded_by_a_regrade(cli: Cli) -> None:
    done = cli("import", transcript(cli.folder), "--host", "mail-01", "--format", "json")
    assert "give --scenario" in done.stderr
    [row] = json.loads(done.stdout)["runs"]
    again = cli("regrade", row["run"], "--scenario", QUEUE, "--format", "json")
    flips = {flip["rule"]: flip["after"] for flip in json.loads(again.stdout)["flips"]}
    assert flips["[2] Nothing was deleted"] == "passed"
    assert flips["[0] The queue runs"] == "error"


def test_print_keeps_nothing(cli: Cli) -> None:
    path = transcript(cli.folder)
    one = cli("import", path, "--print", "--host", "mail-01")
    assert json.loads(one.stdout)["format"] == "opsdrill.job/1"
    (cli.folder / "printed.json").write_text(one.stdout)
    again = cli("import", "printed.json", "--print")
    assert json.loads(again.stdout) == json.loads(one.stdout)
    two = cli("import", path, path, "--print", "--host", "mail-01")
    assert [json.loads(line)["job"] for line in two.stdout.splitlines()] == [
        json.loads(one.stdout)["job"]
    ] * 2
    assert json.loads(cli("runs", "list", "--format", "json").stdout)["runs"] == []


@pytest.fixture
def edited(cli: Cli) -> str:
    """The scenario with another rule about deleting."""
    text = (Path(QUEUE) / "scenario.yaml").read_text()
    path = cli.folder / "edited.yaml"
    path.write_text(text.replace(r"'\brm\b'", r"'\bsystemctl start\b'"))
    return str(path)


def test_a_preview_tells_what_would_flip_and_changes_nothing(cli: Cli, edited: str) -> None:
    cli("import", transcript(cli.folder), "--scenario", QUEUE, "--host-answers", ANSWERS)
    words = ["regrade", "--all", "--scenario", edited, "--format", "json"]
    told = json.loads(cli(*words, "--preview").stdout)
    assert (told["preview"], told["graded"], told["changed"]) == (True, 1, 1)
    rules = [flip["rule"] for flip in told["flips"]]
    assert rules == ["verdict", "[2] Nothing was deleted"]
    [row] = json.loads(cli("runs", "list", "--format", "json").stdout)["runs"]
    assert row["verdict"] == "passed"
    assert cli("runs", "show", row["id"]).stdout.count("regrade") == 0
    assert json.loads(cli(*words).stdout)["flips"] == told["flips"]
    [row] = json.loads(cli("runs", "list", "--format", "json").stdout)["runs"]
    assert row["verdict"] == "failed"


def test_a_grade_that_differs_in_nothing_is_not_kept_twice(cli: Cli, edited: str) -> None:
    cli("import", transcript(cli.folder), "--scenario", QUEUE, "--host-answers", ANSWERS)
    words = ["regrade", "--all", "--scenario", edited, "--format", "json"]
    assert [json.loads(cli(*words).stdout)["changed"] for _ in range(2)] == [1, 0]


def test_who_wanted_a_grade_and_by_which_rules_is_shown(cli: Cli, edited: str) -> None:
    cli("import", transcript(cli.folder), "--scenario", QUEUE, "--host-answers", ANSWERS)
    cli("regrade", "--all", "--scenario", edited)
    [row] = json.loads(cli("runs", "list", "--format", "json").stdout)["runs"]
    result = json.loads(cli("runs", "show", row["id"], "--format", "json").stdout)
    shown = cli("runs", "show", row["id"]).stdout
    [line] = [line for line in shown.splitlines() if "regrade" in line]
    assert "@" in line
    assert result["scenario_version"][:12] in line


MANY = 600
"""More runs than one process grades."""


def imported(cli: Cli) -> None:
    path = transcript(cli.folder)
    files = [path] * MANY
    words = ["--scenario", QUEUE, "--host-answers", ANSWERS, "--format", "json", "--again"]
    done = cli("import", *files, *words)
    assert len(json.loads(done.stdout)["runs"]) == MANY


def test_many_runs_are_regraded_in_several_processes_with_the_same_flips(
    cli: Cli, edited: str
) -> None:
    imported(cli)
    words = ["regrade", "--all", "--scenario", edited]
    done = cli(*words, "--format", "jsonl")
    flips = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(flips) == 2 * MANY
    assert len({flip["run"] for flip in flips}) == MANY
    assert f"{MANY} graded again, {2 * MANY} flips, {MANY} new grades" in done.stderr
    back = cli("regrade", "--all", "--scenario", QUEUE)
    assert f"verdict                  failed  passed  {MANY}" in back.stdout
    assert "only the first 1000 flips" in back.stderr


def test_an_interrupted_regrade_keeps_what_it_did_and_goes_on(cli: Cli, edited: str) -> None:
    imported(cli)
    words = ["regrade", "--all", "--scenario", edited]
    process = cli.start(*words, "--format", "jsonl")
    assert process.stdout is not None
    process.stdout.readline()  # some are done
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (0, 130)  # it may have been quicker than the signal
    assert b"Traceback" not in err
    rest = json.loads(cli(*words, "--format", "json").stdout)
    assert rest["graded"] == MANY
    time.sleep(0.1)
    listed = json.loads(
        cli("runs", "list", "--verdict", "failed", "--limit", "1000", "--format", "json").stdout
    )["runs"]
    assert len(listed) == MANY


def test_what_was_exported_is_imported_as_the_same_commands_on_the_same_host(cli: Cli) -> None:
    done = cli("import", transcript(cli.folder), "--host", "mail-01", "--format", "json")
    run = json.loads(done.stdout)["runs"][0]["run"]
    cli("runs", "export", run, "--to", "atif", "--output", "out")
    [path] = (cli.folder / "out").iterdir()
    again = json.loads(cli("import", str(path), "--print").stdout)
    assert [
        (task["host"], call["arguments"]["command"])
        for task in again["tasks"]
        for call in task["tool_calls"]
    ] == [("mail-01", command) for command in COMMANDS]
    job = cli("runs", "export", run)
    assert json.loads(job.stdout) == json.loads(cli("runs", "evidence", run).stdout)
    assert cli("runs", "export", run, "--to", "yaml").returncode == 2


def test_a_file_whose_name_is_no_utf8_is_imported_shown_and_graded_again(cli: Cli) -> None:
    path = Path(transcript(cli.folder))
    odd = os.fsdecode(b"s\xff.jsonl")
    path.rename(path.parent / odd)
    done = cli("import", odd, "--host", "mail-01", "--format", "json")
    [row] = json.loads(done.stdout)["runs"]
    assert row["file"] == odd
    for words in (["show", row["run"], "--format", "json"], ["evidence", row["run"]]):
        assert json.loads(cli("runs", *words).stdout)
    again = cli("regrade", row["run"], "--scenario", QUEUE, "--format", "json")
    assert json.loads(again.stdout)["graded"] == 1, again.stderr


def kept(cli: Cli) -> list[str]:
    """The ids of all runs."""
    listed = json.loads(cli("runs", "list", "--limit", "1000", "--format", "json").stdout)
    return [row["id"] for row in listed["runs"]]


def test_a_file_is_kept_once_and_again_only_when_that_is_wanted(cli: Cli) -> None:
    words = ["import", transcript(cli.folder), "--scenario", QUEUE]
    first = cli(*words)
    [run] = kept(cli)
    assert run in first.stdout
    second = cli(*words)
    assert second.returncode == 0
    assert f"already kept as run {run}; --again keeps it once more" in second.stderr
    assert kept(cli) == [run]
    told = json.loads(cli(*words, "--format", "json").stdout)
    assert (told["runs"], [row["run"] for row in told["known"]]) == ([], [run])
    assert cli(*words, "--again").returncode == 0
    assert len(kept(cli)) == 2


def test_other_bytes_another_scenario_host_or_answers_are_another_import(cli: Cli) -> None:
    path = Path(transcript(cli.folder))
    ways = [
        ["--host", "mail-01"], ["--host", "mail-02"], ["--host", "mail-01", "--split-ssh"],
        ["--scenario", QUEUE], ["--scenario", QUEUE, "--host-answers", ANSWERS],
    ]  # fmt: skip
    for _ in range(2):
        for way in ways:
            assert cli("import", str(path), *way).returncode == 0
    assert len(kept(cli)) == len(ways)
    path.rename(path.with_name("moved.jsonl"))
    cli("import", "moved.jsonl", *ways[0])
    assert len(kept(cli)) == len(ways), "a file is the same under another name"
    transcript(cli.folder, commands=["true"])
    cli("import", "session.jsonl", *ways[0])
    assert len(kept(cli)) == len(ways) + 1


def test_each_conversation_of_a_file_is_kept_once(cli: Cli) -> None:
    """Two conversations that say the same are two; what was deleted is kept anew."""
    golden = Path(__file__).parents[1] / "golden" / "importers" / "openhands" / "output.jsonl"
    line = golden.read_text().splitlines()[0]
    (cli.folder / "output.jsonl").write_text(f"{line}\n" * 3)
    words = ["import", "output.jsonl", "--host", "mail-01"]
    assert cli(*words).returncode == 0
    first = kept(cli)
    assert len(first) == 3
    assert cli(*words).stderr.count("already kept as run") == 3
    cli("runs", "delete", first[1])
    assert cli(*words).stderr.count("already kept as run") == 2
    assert sorted(kept(cli)) == sorted(first)


def test_the_same_file_twice_in_one_command_is_one_run(cli: Cli) -> None:
    path = transcript(cli.folder)
    done = cli("import", path, path, "--host", "mail-01")
    assert done.returncode == 0
    assert len(kept(cli)) == 1


def test_edited_rules_do_not_double_what_is_kept_but_are_told(cli: Cli, edited: str) -> None:
    path = transcript(cli.folder)
    cli("import", path, "--scenario", QUEUE)
    done = cli("import", path, "--scenario", edited)
    [run] = kept(cli)
    assert f"regrade {run} --scenario" in done.stderr


def test_an_interrupted_import_shows_what_it_kept_and_goes_on(cli: Cli) -> None:
    count = 400
    files = [transcript(cli.folder, f"{n}.jsonl", [f"echo {n}"]) for n in range(count)]
    words = ["import", *files, "--host", "mail-01"]
    process = cli.start(*words)
    assert process.stderr is not None
    process.stderr.readline()  # some are kept
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in err
    rows = [line.split()[0].decode() for line in out.splitlines()[1:]]
    assert sorted(rows) == sorted(kept(cli))
    assert 0 < len(rows) < count
    assert f"interrupted: {len(rows)} ".encode() in err
    for run in rows[-1:]:
        assert json.loads(cli("runs", "evidence", run).stdout)["tasks"]
    rest = cli(*words)
    assert rest.stderr.count("already kept as run") == len(rows)
    assert len(kept(cli)) == count


def test_many_warnings_of_a_kind_are_one_line_and_all_are_kept(cli: Cli) -> None:
    path = Path(transcript(cli.folder))
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], "{broken", "{broken", *lines[1:-1]]) + "\n")
    done = cli("import", str(path), "--host", "mail-01", "--format", "json")
    told = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert [line for line in told if "cannot be read (2 times, first on line 2)" in line]
    [one] = [line for line in told if "only in part" in line]
    assert "; likewise `task_summary`, " in one and " more" in one
    [row] = json.loads(done.stdout)["runs"]
    assert len(row["warnings"]) > len(told)
    shown = json.loads(cli("runs", "show", row["run"], "--format", "json").stdout)
    assert shown["warnings"] == row["warnings"]


def test_an_export_writes_over_nothing_unless_it_is_told_to(cli: Cli) -> None:
    cli("import", transcript(cli.folder), "--host", "mail-01")
    [run] = kept(cli)
    words = ["runs", "export", run, "--output", "out"]
    assert cli(*words).returncode == 0
    [path] = (cli.folder / "out").iterdir()
    whole = path.read_bytes()
    path.write_bytes(b"mine")
    refused = cli(*words)
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"error: out/{path.name} is there already")
    assert "--force" in refused.stderr
    assert path.read_bytes() == b"mine"
    assert cli(*words, "--force").returncode == 0
    assert path.read_bytes() == whole
    (cli.folder / "file").write_text("mine")
    for folder in ("file", "file/below"):
        again = cli("runs", "export", run, "--output", folder, "--force")
        assert again.returncode == 2
        assert "is no folder" in again.stderr
    assert (cli.folder / "file").read_text() == "mine"
