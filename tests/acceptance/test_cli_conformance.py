"""`opsdrill hosts conformance`: what every driver must keep, tried on the driver of a lab."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.program import Cli

ANSWERS = {
    "answers": [
        {"run": "true", "exit_code": 0},
        {"run": "exit 3", "exit_code": 3},
        {"run": "echo out; echo err >&2", "exit_code": 0, "stdout": "out\n", "stderr": "err\n"},
        {"run": "sleep 9999", "exit_code": 0, "delay": 9999},
        {"starts_with": "head -c 3000000", "exit_code": 0, "stdout": "x" * 3_000_000},
    ]
}


def scripted(folder: Path, *first: object) -> str:
    """A lab whose answers are right, but for those that come first."""
    answers = {"answers": [*first, *ANSWERS["answers"]]}
    (folder / "answers.json").write_text(json.dumps(answers))
    (folder / "scripted.yaml").write_text("driver: fake\noptions: {answers: answers.json}\n")
    return "scripted.yaml"


def test_a_driver_that_keeps_everything(cli: Cli) -> None:
    """Status 0; the table has the sentences, and what was not tried is counted with its reason."""
    done = cli("hosts", "conformance", "--lab", scripted(cli.folder))
    assert (done.returncode, done.stderr) == (0, "")
    assert "passed" in done.stdout
    assert "Standard output and standard error are two things." in done.stdout
    assert "checks: its hosts answer from a script\n" in done.stdout
    assert done.stdout.endswith(" not applicable\n")
    assert ", 0 failed, " in done.stdout


def test_a_driver_that_does_not(cli: Cli) -> None:
    """Status 1; what was seen is said."""
    wrong = {"run": "exit 3", "exit_code": 0}
    done = cli("hosts", "conformance", "--lab", scripted(cli.folder, wrong))
    assert done.returncode == 1
    assert "statuses.answer-says-what-was-asked: the status is 0, not 3\n" in done.stdout
    assert ", 3 failed, " in done.stdout


def test_for_programs(cli: Cli) -> None:
    """JSON has every check with its outcome, and the counts."""
    done = cli("hosts", "conformance", "--lab", scripted(cli.folder), "--format", "json")
    told = json.loads(done.stdout)
    assert (told["format"], told["driver"], told["failed"]) == (
        "opsdrill.conformance/1",
        "fake",
        0,
    )
    results = {check["id"]: check["result"] for check in told["checks"]}
    assert results["outputs.streams-apart"] == "passed"
    assert results["shells.no-pipefail"] == "not-applicable"
    assert len(results) == told["passed"] + told["not_applicable"]


@pytest.mark.sandbox
def test_the_sandbox_keeps_everything(cli: Cli) -> None:
    """Real hosts, made for it and thrown away."""
    process = cli.start("hosts", "conformance", "--lab", "sandbox", "--format", "json")
    out, _ = process.communicate(timeout=900)
    told = json.loads(out)
    assert [check for check in told["checks"] if check["result"] == "failed"] == []
    assert process.returncode == 0
    assert told["passed"] > 90


def test_hosts_that_last_take_a_yes(cli: Cli) -> None:
    """Status 2 before anything is done there, with a hint."""
    (cli.folder / "lab.yaml").write_text(
        "driver: ssh\nhosts: {web-01: 192.0.2.1, db-01: 192.0.2.2, mail-01: 192.0.2.3}\n"
    )
    done = cli("hosts", "conformance")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: the checks run as root on web-01, db-01 and write files there, which are removed"
        " afterwards\nhint: give --yes if they may\n"
    )


def test_a_lab_without_hosts_has_nothing_to_try(cli: Cli) -> None:
    """Status 2; the hint begins a lab with machines."""
    for words in (("--driver", "ssh"), ("--lab", "ssh", "--yes")):
        done = cli("hosts", "conformance", *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            "error: the driver ssh needs a lab that says more: machines in the lab (none)\n"
            "hint: printf 'driver: ssh\\nhosts: {web-01: ADDRESS}\\n' >lab.yaml\n"
        )


def test_nobody_says_which_driver(cli: Cli) -> None:
    """Status 2, and the hint is a command that works."""
    done = cli("hosts", "conformance")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: there is no lab file here, and nobody says which driver is tried\n"
        "hint: opsdrill hosts conformance --driver sandbox\n"
    )


def test_a_driver_with_the_lab_here(cli: Cli) -> None:
    """`--driver` takes the lab file here where it is for that driver, and no file otherwise."""
    Path(cli.folder / scripted(cli.folder)).rename(cli.folder / "lab.yaml")
    done = cli("hosts", "conformance", "--driver", "fake", "--format", "json")
    assert json.loads(done.stdout)["failed"] == 0
    done = cli("hosts", "conformance", "--driver", "ssh")
    assert done.stderr.endswith(
        "hint: printf 'driver: ssh\\nhosts: {web-01: ADDRESS}\\n' >ssh-lab.yaml, then"
        " `--lab ssh-lab.yaml`\n"
    )
    done = cli("hosts", "conformance", "--driver", "fake", "--lab", "sandbox")
    assert (done.returncode, done.stderr.splitlines()[1]) == (2, "hint: give only one")


def test_a_script_that_nobody_named(cli: Cli) -> None:
    """No answer of a script is no failure of its driver."""
    done = cli("hosts", "conformance", "--driver", "fake")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no lab names one\nhint: printf 'driver: fake" in done.stderr


def test_this_very_machine_takes_a_yes(cli: Cli) -> None:
    """Named and confirmed on the command line it needs no lab file; without it nothing is done."""
    done = cli("hosts", "conformance", "--driver", "local")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: the checks run as root on this very machine and write")
    if os.geteuid() != 0:
        done = cli("hosts", "conformance", "--driver", "local", "--yes")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("error: the checks run as root, and the driver local runs")
        assert "hint: run as root, or `options: {sudo: yes}`" in done.stderr


def test_a_host_that_does_not_answer_is_no_failed_check(cli: Cli) -> None:
    """Status 3: nothing could be tried."""
    (cli.folder / "lab.yaml").write_text(
        "driver: ssh\nhosts: {web-01: {address: 127.0.0.1, port: 1}}\n"
    )
    done = cli("hosts", "conformance", "--yes")
    assert (done.returncode, done.stdout) == (3, "")
    assert "web-01" in done.stderr
