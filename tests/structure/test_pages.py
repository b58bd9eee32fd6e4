"""The pages hang together: links lead somewhere, and the README's example is a scenario."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opsdrill.scenarios.load import parse_scenario
from opsdrill.scenarios.yaml import parse_yaml

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_to_a_file(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_page_can_be_found_from_the_readme() -> None:
    linked = re.findall(r"\]\((docs/[^)#]+)\)", (ROOT / "README.md").read_text())
    written = {str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md")}
    assert written == set(linked)


def test_the_rules_in_the_readme_are_rules() -> None:
    [example] = re.findall(
        r"```yaml\n(validation:\n.*?)```", (ROOT / "README.md").read_text(), re.S
    )
    head = "key: a\ntitle: a\nticket_title: a\nhosts: [web-01, web-02, mon-01]\n"
    assert len(parse_scenario(parse_yaml(head + example).data).validation) == 3


def test_every_room_of_the_source_is_on_the_map() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    source = ROOT / "src" / "opsdrill"
    for path in source.iterdir():
        if path.suffix == ".typed" or path.name.startswith("__"):
            continue
        assert f"src/opsdrill/{path.name}" in text or f" {path.name}/" in text, path.name
