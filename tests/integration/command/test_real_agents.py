"""Programs of others, not a line of them changed, repair a host through the gateway.

`scripts/agents` installs them; where one is not installed its test is skipped, which is said.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.integration.command_runs import drill, opened_range
from tests.integration.messages_server import messages_server

pytestmark = pytest.mark.sandbox

COMMANDS = (
    "ssh app-01 'cat /etc/app.conf'",
    "ssh app-01 'echo good >/etc/app.conf'",
    "opsdrill-ticket post mended; echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT",
)


@pytest.mark.program("mini")
async def test_mini_swe_agent_with_its_own_deterministic_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Graded, and its transcript reconciled: both witnesses tell the same."""
    outputs = [
        {
            "role": "assistant",
            "content": f"Step {number}.",
            "extra": {"cost": 0.01, "timestamp": number, "actions": [{"command": command}]},
        }
        for number, command in enumerate(COMMANDS, start=1)
    ]
    model = tmp_path / "model.yaml"
    model.write_text(json.dumps({"model": {"model_name": "deterministic", "outputs": outputs}}))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    command = f"@mini-swe-agent -c mini.yaml -c {model} --model-class deterministic"
    async with opened_range(tmp_path / "home") as grounds:
        [came] = await grounds.drill(drill(command))
    assert came.result.verdict == "passed", f"{came.result.reason}\n{came.calls}\n{came.out}"
    assert [(call.command, call.witness) for call in came.calls] == [
        ("cat /etc/app.conf", "both"),
        ("echo good >/etc/app.conf", "both"),
    ]
    assert came.record.reported_by is not None
    assert came.record.reported_by.startswith("mini-swe-agent")
    assert [message.body for message in came.record.ticket.messages] == ["mended"]
    [task] = came.record.tasks
    assert [message.text for message in task.messages] == ["Step 1.", "Step 2.", "Step 3."]


@pytest.mark.program("claude")
async def test_claude_code_with_a_scripted_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program distributed by npm, against a model server of ours on loopback."""
    with messages_server([command for command in COMMANDS if command.startswith("ssh")]) as url:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-none")
        async with opened_range(tmp_path / "home") as grounds:
            limits = {"job_seconds": 60}
            [came] = await grounds.drill(drill("@claude-code", limits=limits))
    assert came.result.verdict == "passed", (came.result.reason, came.out[-2000:], came.err)
    assert [(call.command, call.witness) for call in came.calls] == [
        ("cat /etc/app.conf", "both"),
        ("echo good >/etc/app.conf", "both"),
    ]
    assert came.record.reported_by is not None
    assert came.record.reported_by.startswith("Claude Code")
    assert came.record.tasks[0].messages[-1].text == "All is done."
