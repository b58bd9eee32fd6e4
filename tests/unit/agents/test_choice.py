"""How an agent is named on the command line and in an agents.yaml."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.agents.adapter import ADAPTERS
from opsdrill.agents.choice import load_agents, make_adapter, parse_agent
from opsdrill.agents.command.presets import PRESETS
from opsdrill.errors import InvalidInput, UnknownName, UsageError
from opsdrill.model.scenario import Step

KNOWN = ", ".join(ADAPTERS.names())
EVERY = sorted([*ADAPTERS.names(), *PRESETS])


def write(folder: Path, text: str) -> Path:
    path = folder / "agents.yaml"
    path.write_text(text)
    return path


def test_a_name_and_an_argument(tmp_path: Path) -> None:
    choice = parse_agent("script:agents/by:the-book.yaml", tmp_path)
    assert (choice.adapter, choice.argument) == ("script", "agents/by:the-book.yaml")
    assert choice.folder == str(tmp_path)
    assert str(choice) == "script:agents/by:the-book.yaml"


@pytest.mark.parametrize("name", ["noop", "reference", " noop "])
def test_a_name_alone(tmp_path: Path, name: str) -> None:
    choice = parse_agent(name, tmp_path)
    assert (choice.adapter, choice.argument) == (name.strip(), None)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("", None), ("Script", "script"), ("nop", "noop"), (":x", None), ("gpt:x", None)],
)
def test_a_name_that_nobody_registered_lists_the_choices(
    tmp_path: Path, name: str, meant: str | None
) -> None:
    with pytest.raises(UnknownName, match="no agent named") as caught:
        parse_agent(name, tmp_path)
    close = f"did you mean {meant}? " if meant else ""
    assert caught.value.hint == f"{close}known: {', '.join(EVERY)}"


@pytest.mark.parametrize("text", ["script", "script:", "script: "])
def test_an_argument_that_is_missing(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError):
        parse_agent(text, tmp_path)


@given(st.text())
def test_any_text_is_an_agent_or_a_usage_error(text: str) -> None:
    try:
        assert parse_agent(text, Path()).adapter in ADAPTERS.names()
    except UsageError as error:
        assert error.message


def test_a_name_of_the_file_is_its_adapter_with_its_argument(tmp_path: Path) -> None:
    names = load_agents(
        write(
            tmp_path,
            "agents: {careful: {adapter: script, argument: a.yaml}, lazy: {adapter: noop}}",
        )
    )
    choice = parse_agent("careful", Path("/elsewhere"), names)
    assert (choice.adapter, choice.argument, choice.folder) == ("script", "a.yaml", str(tmp_path))
    assert parse_agent("lazy", Path("/elsewhere"), names).argument is None
    assert parse_agent("noop", tmp_path, names).adapter == "noop"
    with pytest.raises(UnknownName) as caught:
        parse_agent("carefull", tmp_path, names)
    assert caught.value.hint == (
        f"did you mean careful? known: {', '.join(sorted([*EVERY, 'careful', 'lazy']))}"
    )
    with pytest.raises(UsageError, match="has its argument in the agents file"):
        parse_agent("careful:b.yaml", tmp_path, names)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "agents is missing"),
        ("agents: {}", "agents must not be empty"),
        ("agents: {a: {}}", "agents.a.adapter is missing"),
        ("agents: {a: {adapter: nop}}", f"agents.a.adapter must be one of {KNOWN}"),
        ("agents: {noop: {adapter: script}}", "agents.noop is the name of an adapter"),
        ("agents: {a: {adapter: noop, extra: 1}}", "agents.a.extra is not a known key here"),
        ("agents: {a: {adapter: noop, budgets: {tokens: 9}}}", "agents.a.budgets is nothing that"),
        (
            "agents: {a: {adapter: noop}}\ndeny: [reboot]",
            "deny is nothing that the agent 'a' (noop)",
        ),
        ("agents: {a: {adapter: noop}}\ndeny: ['(']", "deny[0]"),
        ("agents: {a: {adapter: noop, budgets: {tokens: 0}}}", "budgets.tokens"),
        (
            "agents: {a: {adapter: noop, mcp_servers: {x: {}}}}",
            "exactly one of `command` and `url`",
        ),
        ("agents: {'a:b': {adapter: noop}}", "must match"),
    ],
)
def test_an_agents_file_that_cannot_be_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(said)):
        load_agents(write(tmp_path, text))


def test_making_an_adapter_tells_a_wrong_script_early(tmp_path: Path) -> None:
    choice = parse_agent("script:agent.yaml", tmp_path)
    with pytest.raises(UsageError, match="no script"):
        make_adapter(choice)
    scenario = tmp_path / "scenario"
    scenario.mkdir()
    (scenario / "agent.yaml").write_text("format: opsdrill.script/1\nturn: []\n")
    with pytest.raises(InvalidInput, match="turn is not a known key"):
        make_adapter(choice, scenario)


async def test_the_reference_gets_the_scenarios_steps(tmp_path: Path) -> None:
    adapter = make_adapter(parse_agent("reference", tmp_path), None, (Step(run="a"),))
    await adapter.preflight(("web-01",))
