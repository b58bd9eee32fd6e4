"""Command agents by the command line: drilled, listed, checked, and the two stories shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.acceptance.program import Cli

SCENARIO = """
key: app
title: A bad configuration
ticket_title: The application does not start
hosts: [app-01]
setup: [{run: "echo bad >/etc/app.conf"}]
validation:
  - {label: mended, validator: host_state, run: "grep -qx good /etc/app.conf"}
"""
AGENT = """#!/bin/bash
ssh app-01 'echo good >/etc/app.conf'
ssh app-01 'rm -f /var/log/app.log'
echo "the key is $WANTED_KEY"
cat >report.json <<'END'
{"schema_version": "ATIF-v1.5", "session_id": "s", "agent": {"name": "teller", "version": "1"},
 "steps": [{"step_id": 1, "source": "agent", "message": "All is well.", "tool_calls": [
   {"tool_call_id": "a", "function_name": "bash",
    "arguments": {"command": "ssh app-01 'echo good >/etc/app.conf'"}},
   {"tool_call_id": "b", "function_name": "bash",
    "arguments": {"command": "ssh app-01 'systemctl restart app'"}}]}]}
END
"""


def sandbox_or_skip(cli: Cli) -> None:
    report = json.loads(cli("doctor", "--format", "json").stdout)
    driver = next(driver for driver in report["drivers"] if driver["name"] == "sandbox")
    for finding in driver["findings"]:
        if finding["blocks"] and not finding["good"]:
            pytest.skip(f"{finding['what']}: {finding['detail']}; {finding['remedy']}")


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.mark.sandbox
def test_a_program_is_drilled_and_its_two_stories_are_shown(cli: Cli) -> None:
    sandbox_or_skip(cli)
    (cli.folder / "app.yaml").write_text(SCENARIO)
    program(cli.folder / "agent.sh", AGENT)
    agents = "agents: {mine: {adapter: command, argument: ./agent.sh, transcript: report.json}}"
    (cli.folder / "agents.yaml").write_text(agents)
    words = "run app.yaml --agent mine --agent-config agents.yaml --agent-env WANTED_KEY"
    done = cli(
        *words.split(), "--lab", "sandbox", "--format", "json", WANTED_KEY="correct-horse-battery"
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["verdict"] == "passed"
    shown = cli("runs", "show", result["run"]).stdout
    assert (
        "the agent's own report (teller 1) beside what the gateway saw:\n"
        "  reported but never run:\n    app-01: systemctl restart app\n"
        "  run but not reported:\n    app-01: rm -f /var/log/app.log\n"
    ) in shown
    kept = cli.home / "agents" / result["run"]
    assert (kept / "stdout.txt").read_text() == "the key is [masked:WANTED_KEY]\n"
    assert cli("runs", "delete", result["run"]).returncode == 0
    assert not kept.exists()


def test_a_variable_that_is_not_set_is_said_before_anything_runs(cli: Cli) -> None:
    (cli.folder / "app.yaml").write_text(SCENARIO.replace("[app-01]", "[]").split("setup")[0])
    done = cli("agents", "check", "command:true", "--agent-env", "NOT_SET_HERE")
    assert done.returncode == 2
    assert "NOT_SET_HERE, which is not set here" in done.stdout
    done = cli("agents", "check", "noop", "--agent-env", "PATH")
    assert done.returncode == 2 and "takes no variables" in done.stderr


def test_agents_are_listed_with_what_they_need(cli: Cli) -> None:
    (cli.folder / "agents.yaml").write_text("agents: {lazy: {adapter: noop}}")
    listed = json.loads(
        cli("agents", "list", "--agent-config", "agents.yaml", "--format", "json").stdout
    )
    assert listed["format"] == "opsdrill.agents/1"
    rows = {row["name"]: row for row in listed["agents"]}
    assert {"noop", "command", "codex", "mini-swe-agent", "lazy"} <= set(rows)
    assert rows["codex"]["needs"] == "codex; one of CODEX_API_KEY, OPENAI_API_KEY"
    assert rows["lazy"]["kind"] == "file" and rows["lazy"]["means"] == "noop"


def test_a_preset_is_checked_where_it_would_run(cli: Cli, tmp_path: Path) -> None:
    """The program is asked for its version in the room of an agent."""
    tools = tmp_path / "tools" / "bin"
    program(tools / "codex", "#!/bin/sh\ntest -e /proc/2 && echo codex-cli 9.9\n")
    path = f"{tools}:{cli.environment['PATH']}"
    done = cli("agents", "check", "codex:--model gpt-x", PATH=path)
    assert done.returncode == 2 and "needs one of CODEX_API_KEY, OPENAI_API_KEY" in done.stdout
    done = cli("agents", "check", "codex:--model gpt-x", PATH=path, OPENAI_API_KEY="sk-x")
    assert done.returncode == 0, done.stdout
    assert f"ok       starts: {tools}/codex\n" in done.stdout
    assert "ok       answers: codex-cli 9.9\n" in done.stdout
    assert "ok       model: gpt-x\n" in done.stdout
