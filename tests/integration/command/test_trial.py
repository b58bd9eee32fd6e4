"""`opsdrill agents check` of programs: what is tried, and what is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from opsdrill.agents.command.trial import Trial, try_program

pytestmark = pytest.mark.sandbox


async def tried(argument: str) -> dict[str, Trial]:
    return {trial.what: trial for trial in await try_program(argument, Path("/"), None)}


async def test_any_program_is_there_and_nobody_knows_more() -> None:
    """That the network is shared with this machine is said before anybody runs it."""
    found = await tried("cat --model small")
    assert found["starts"].good and found["starts"].detail.endswith("/cat")
    assert found["network"].detail.startswith("this machine's")
    assert "loopback" in found["network"].detail
    assert found["model"].detail == "small"
    assert found["answers"].good and "not tried" in found["answers"].detail


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        pytest.param(
            "@mini-swe-agent", "mini-swe-agent version 2", marks=pytest.mark.program("mini")
        ),
        pytest.param("@claude-code", "(Claude Code)", marks=pytest.mark.program("claude")),
    ],
)
async def test_a_well_known_program_says_its_version(
    argument: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "sk-none")
    found = await tried(argument)
    assert found["answers"].good and says in found["answers"].detail, found
