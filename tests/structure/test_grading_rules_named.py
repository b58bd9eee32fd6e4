"""Every numbered rule of a reference page is named by a test, and no test names another.

A page numbers a rule in bold: `**G4.1**`. A test names it in brackets, mostly in its docstring:
`[G4.1]` or `[G4.1, G4.2]`; a golden case in its `rules`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {
    "grading.md": "GR",
    "scenario.md": "S",
    "scripts.md": "P",
    "gateway.md": "W",
    "api-access.md": "A",
}
"""Each page with numbered rules, and the letters that its numbers begin with."""

NUMBER = r"[A-Z]\d+(?:\.\d+)?"
DEFINED = re.compile(rf"\*\*({NUMBER})\*\*")
NAMED = re.compile(rf"\[({NUMBER}(?:, {NUMBER})*)\]")


def defined(page: str) -> list[str]:
    """The numbers that a page gives, in its order."""
    return DEFINED.findall((ROOT / "docs" / "reference" / page).read_text(encoding="utf-8"))


def named() -> dict[str, set[str]]:
    """The numbers that tests name, and the files that do."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "tests").rglob("*.py"):
        if path != Path(__file__):
            for names in NAMED.findall(path.read_text(encoding="utf-8")):
                for number in names.split(", "):
                    found.setdefault(number, set()).add(path.name)
    for path in (ROOT / "tests" / "golden" / "grading").rglob("*.json"):
        for case in json.loads(path.read_bytes()):
            for number in case["rules"]:
                found.setdefault(number, set()).add(path.name)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_number_is_named_by_a_test(page: str) -> None:
    """A rule that no test names may be wrong without anybody noticing."""
    assert [number for number in defined(page) if number not in named()] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_named_number_is_on_the_page(page: str) -> None:
    """A test of a rule that the page does not have tests nothing that was promised."""
    known = set(defined(page))
    strangers = {
        number: sorted(files)
        for number, files in named().items()
        if number[0] in PAGES[page] and number not in known
    }
    assert strangers == {}


@pytest.mark.parametrize("page", PAGES)
def test_no_number_is_given_twice(page: str) -> None:
    """A number means one rule."""
    numbers = defined(page)
    assert sorted(numbers) == sorted(set(numbers))
    assert numbers, f"{page} has no numbered rules"
