"""The pages of reference say what the program has, and nothing that it has not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from opsdrill import cli
from opsdrill.app.settings import KEYS, variable
from opsdrill.cli.main import app
from opsdrill.model.result import Result, RuleResult

PAGES = Path(__file__).parents[3] / "docs" / "reference"
FOR_ALL = {"--home", "--no-color", "--debug", "--version", "--help", "-h"}


def commands() -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its whole name."""
    waiting: list[tuple[str, Any]] = [("", get_command(app))]
    while waiting:
        name, command = waiting.pop()
        below = getattr(command, "commands", {})
        waiting += [(f"{name} {part}".strip(), inner) for part, inner in below.items()]
        if not below:
            yield name, command


def section(name: str) -> str:
    """What the page says of one command."""
    page = (PAGES / "cli.md").read_text()
    found = re.search(rf"^## {re.escape(name)}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    assert found, f"docs/reference/cli.md has no section {name!r}"
    return found[1]


@pytest.mark.parametrize(("name", "command"), sorted(commands()), ids=str)
def test_every_option_of_a_command_is_in_its_section_and_no_other(name: str, command: Any) -> None:
    has = {
        option for param in command.params for option in param.opts if option.startswith("--")
    } - FOR_ALL
    said = set(re.findall(r"--[a-z][a-z-]*", section(name))) - FOR_ALL
    assert has == said


def test_every_section_in_lower_case_is_a_command() -> None:
    page = (PAGES / "cli.md").read_text()
    assert set(re.findall(r"^## ([a-z ]+)$", page, re.MULTILINE)) == {n for n, _ in commands()}


def test_options_for_all_commands_are_in_the_page() -> None:
    root: Any = get_command(app)
    text = section("Options for all commands")
    for param in root.params:
        assert all(f"`{option}" in text for option in param.opts if option.startswith("--"))


def test_every_setting_is_in_its_page_with_its_variable_and_no_other() -> None:
    page = (PAGES / "settings.md").read_text()
    rows = re.findall(r"^\| `([a-z-]+)` \|.*`(OPSDRILL_[A-Z_]+)`", page, re.MULTILINE)
    assert dict(rows) == {key: variable(key) for key in KEYS}


@pytest.mark.parametrize(
    ("heading", "model"), [("A result", Result), ("A rule's result", RuleResult)]
)
def test_every_field_of_a_result_is_in_its_page_and_no_other(
    heading: str, model: type[Result] | type[RuleResult]
) -> None:
    page = (PAGES / "result.md").read_text()
    part = page.split(f"## {heading}", 1)[1].split("\n## ", 1)[0]
    assert re.findall(r"^\| `(\w+)` \|", part, re.MULTILINE) == list(model.model_fields)


def test_every_command_has_a_first_line_that_fits_the_list_of_commands() -> None:
    for name, command in commands():
        first = (command.help or "").split("\n")[0]
        assert first.endswith(".") and len(first) <= 66, name


def test_help_names_arguments_as_the_page_does_and_shows_no_type_of_python() -> None:
    for name, command in commands():
        help = command.get_help(command.make_context(name, [], resilient_parsing=True))
        assert not re.search(r"[{<](str|path|list|int|[A-Z])", help), f"{name}:\n{help}"


def test_the_command_line_calls_only_the_use_cases() -> None:
    """Front ends know `app`, the nouns and the errors, and no room below them.

    `serve` starts the others, and a report is made of the pages' templates.
    """
    more = {"serve.py": {"api", "web"}, "runs.py": {"web"}}
    for path in Path(cli.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("opsdrill."):
                room = str(node.module).split(".")[1]
                known = {"cli", "app", "model", "errors"} | more.get(path.name, set())
                assert room in known, f"{path}:{node.lineno}"
