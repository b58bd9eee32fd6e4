"""The script file: what it may say, and how it is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from opsdrill.agents.script import Script
from opsdrill.errors import InvalidInput
from opsdrill.scenarios.load import load_model

FORMAT = "opsdrill.script/1"
PACKS = Path(__file__).parents[3] / "src" / "opsdrill" / "packs"


def load(folder: Path, text: str) -> Script:
    path = folder / "agent.yaml"
    path.write_text(text)
    return load_model(path, Script, noun="script")


def test_all_that_a_script_may_say(tmp_path: Path) -> None:
    script = load(
        tmp_path,
        """
format: opsdrill.script/1
plan: P
turns:
  - post: Before.
    tasks:
      - host: web-01
        description: D
        operational_rules: [R]
        agent: fixer
        do:
          - {run: echo 0644}
          - {write: {path: /a, content: "x", mode: 0644}}
          - {update: {path: /a, old: x, new: ""}}
          - {mcp: {server: s, tool: t, arguments: {a: [1, null, {b: c}]}, refuse: true}}
          - {say: Done.}
          - {claim: reboot}
          - {sleep: 1}
        end: {status: failed, stop_reason: r, summary: s}
post: After.
resolve: {resolution: partial, reasoning: Half.}
""",
    )
    kinds = [type(item).__name__ for item in script.turns[0].tasks[0].do]
    assert kinds == ["Run", "Write", "Update", "Mcp", "Say", "Claim", "Sleep"]
    assert script == Script.model_validate_json(script.model_dump_json())


def test_a_script_may_be_nothing_but_its_format() -> None:
    script = Script.model_validate({"format": FORMAT})
    assert (script.turns, script.resolve, script.plan) == ((), None, None)


def test_a_task_without_an_end_is_completed() -> None:
    """[P6]"""
    script = Script.model_validate(
        {"format": FORMAT, "turns": [{"tasks": [{"host": "web-01", "do": None}]}]}
    )
    assert script.turns[0].tasks[0].end.status == "completed"


def test_a_command_has_unix_lines() -> None:
    content = {"host": "a", "do": [{"run": "a\r\nb"}]}
    script = Script.model_validate({"format": FORMAT, "turns": [{"tasks": [content]}]})
    assert script.turns[0].tasks[0].do[0].model_dump() == {"run": "a\nb"}


ITEM = "turns[0].tasks[0].do[0]"


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ({"runn": "x"}, f"{ITEM} must be an object with one of the keys run, write"),
        ("run", f"{ITEM} must be an object with one of the keys run, write"),
        ({"run": "x", "say": "y"}, f"{ITEM}.say is not a known key here"),
        ({"run": "  "}, f"{ITEM}.run must not be blank"),
        ({"run": 7}, f"{ITEM}.run must be a text"),
        ({"write": {"path": "a", "content": ""}}, f"{ITEM}.write.path must be an absolute path"),
        ({"write": {"path": "/a/", "content": ""}}, f"{ITEM}.write.path must be an absolute path"),
        ({"write": {"path": "/a"}}, f"{ITEM}.write.content is missing"),
        (
            {"write": {"path": "/a", "content": "", "mode": "999"}},
            f"{ITEM}.write.mode must be an octal",
        ),
        ({"update": {"path": "/a", "old": "", "new": "b"}}, f"{ITEM}.update.old must not be empty"),
        ({"mcp": {"server": "s"}}, f"{ITEM}.mcp.tool is missing"),
        ({"mcp": {"server": "s", "tool": "t", "arguments": [1]}}, f"{ITEM}.mcp.arguments must be"),
        ({"sleep": -1}, f"{ITEM}.sleep must be at least 0"),
        ({"sleep": True}, f"{ITEM}.sleep must be a number"),
        ({"sleep": 100_000}, f"{ITEM}.sleep must be at most 86400"),
    ],
)
def test_an_item_that_cannot_be_is_refused_with_its_path(
    tmp_path: Path, item: object, said: str
) -> None:
    """[P2]"""
    content = {"format": FORMAT, "turns": [{"tasks": [{"host": "web-01", "do": [item]}]}]}
    with pytest.raises(InvalidInput, match=re.escape(said)):
        load(tmp_path, json.dumps(content))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({}, "format is missing"),
        ({"format": "opsdrill.script/2"}, "format must be"),
        ({"format": FORMAT, "turn": []}, "turn is not a known key here"),
        ({"format": FORMAT, "turns": [{"tasks": [{}]}]}, "turns[0].tasks[0].host is missing"),
        (
            {"format": FORMAT, "turns": [{"tasks": [{"host": "Web 1"}]}]},
            "tasks[0].host must be a host name",
        ),
        ({"format": FORMAT, "resolve": {"resolution": "ok"}}, "resolve.resolution must be one of"),
        ({"format": FORMAT, "post": " "}, "post must not be blank"),
        ({"format": FORMAT, "no_job": "Busy.", "plan": "P"}, "has `no_job`"),
        (
            {"format": FORMAT, "turns": [{"tasks": [{"host": "a", "end": {"status": "running"}}]}]},
            "turns[0].tasks[0].end.status must be",
        ),
    ],
)
def test_a_script_that_cannot_be_is_refused_with_its_path(
    tmp_path: Path, content: object, said: str
) -> None:
    """[P2, P7]"""
    with pytest.raises(InvalidInput, match=re.escape(said)):
        load(tmp_path, json.dumps(content))


def test_a_refusal_names_line_and_column(tmp_path: Path) -> None:
    """[P2]"""
    with pytest.raises(InvalidInput) as caught:
        load(tmp_path, "format: opsdrill.script/1\nturns:\n  - tasks:\n      - host: 7\n")
    problem = caught.value.problems[0]
    assert (problem.path, problem.line, problem.column) == ("turns[0].tasks[0].host", 4, 15)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
        lambda item: st.lists(item, max_size=4) | st.dictionaries(
            st.sampled_from(["turns", "tasks", "do", "run", "mcp", "end", "host", "sleep"])
            | st.text(max_size=3), item, max_size=4),
        max_leaves=12,
    )
)  # fmt: skip
def test_any_data_is_a_script_or_refused(content: object) -> None:
    data = {"format": FORMAT, "turns": content}
    for candidate in (content, data):
        try:
            assert isinstance(Script.model_validate(candidate), Script)
        except ValidationError as error:
            assert error.errors()


@pytest.mark.parametrize(
    "path", sorted(PACKS.glob("*/*/agents/*.yaml")), ids=lambda path: path.name
)
def test_the_scripts_of_the_packs_are_scripts(path: Path) -> None:
    assert load_model(path, Script).turns
