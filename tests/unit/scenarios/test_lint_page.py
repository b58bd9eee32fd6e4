"""The page about lint has every code, and its examples are told as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opsdrill.scenarios.lint import CHECKS, RECORDED_CHECKS, WRITTEN_CHECKS
from opsdrill.scenarios.lint.linter import findings
from opsdrill.scenarios.load import parse_scenario
from opsdrill.scenarios.yaml import parse_yaml

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "lint.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (OD\d{3}): [^\n]*\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S))
EXAMPLES = {
    code: found[1] for code, text in SECTIONS.items()
    if (found := re.search(r"```yaml\n(.*?)```", text, re.S))
}  # fmt: skip


def test_every_code_is_in_the_table_and_no_other() -> None:
    rows = re.findall(r"^\| (OD\d{3}) \|", PAGE, re.M)
    codes = [check.code for check in CHECKS]
    codes += [check.code for check in WRITTEN_CHECKS]
    codes += [check.code for check in RECORDED_CHECKS]
    assert rows == sorted(codes)


def test_every_trap_has_a_section_and_all_but_one_an_example() -> None:
    traps = [f"OD{number:03}" for number in range(20, 36)]
    assert list(SECTIONS)[: len(traps)] == traps
    assert [code for code in traps if code not in EXAMPLES] == ["OD028"]


@pytest.mark.parametrize("code", EXAMPLES)
def test_the_bad_example_is_told_and_the_better_one_suggested(code: str) -> None:
    example = parse_yaml(EXAMPLES[code]).data
    assert isinstance(example, dict)
    better = example["better"]
    wanted = [item["pattern"] for item in (better if isinstance(better, list) else [better])]
    rule = {"label": "a", "validator": "pattern_match", **example["bad"]}
    head = {"key": "a", "title": "t", "ticket_title": "t"}
    found = dict(findings(parse_scenario({**head, "validation": [rule]})))
    assert list(found[code].better) == wanted
    stated = re.search(rf"^\| {code} \| ([a-z, ]+) \|", PAGE, re.M)
    assert stated and found[code].severity in stated[1].split(", ")


@pytest.mark.parametrize("code", EXAMPLES)
def test_the_better_example_is_not_told(code: str) -> None:
    example = parse_yaml(EXAMPLES[code]).data
    assert isinstance(example, dict)
    better = example["better"]
    head = {"key": "a", "title": "t", "ticket_title": "t"}
    for item in better if isinstance(better, list) else [better]:
        rule = {"label": "a", "validator": "pattern_match", **item}
        codes = [found for found, _ in findings(parse_scenario({**head, "validation": [rule]}))]
        assert code not in codes
