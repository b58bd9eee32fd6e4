"""A scenario that is written loads again as it is, whatever its texts are."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.model.fields import KEY
from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.catalogue import PACKS, Catalogue
from opsdrill.scenarios.load import load_text, parse_scenario
from opsdrill.scenarios.text import as_data, as_json, as_yaml

ODD = st.sampled_from(
    [
        "yes", "null", "0644", "1.10", "22:22", "- a", "a: b", "a #b", "#", "|", "&a", "*a", "!x",
        "%", "@", "`", "{", "[", "'", '"', "\\", "\t", "a\n", "\n", "a\nb", "a\n\nb\n", " a", "a ",
        "a\n b\n  c", "  a\nb", "\x85", "\u2028", "\ufeff", "\x07", "\U0001f600", "...", "---", "~",
        "a\r\nb", "a\n\n\n", "\ta\nb", "a\n \nb", "=", "<<", "?", ": ", "e1", "1e3", ".5", "0x1f",
    ]
)  # fmt: skip
TEXT = st.one_of(ODD, st.text(st.characters(exclude_categories=["Cs"]), max_size=30)) | st.tuples(
    ODD, ODD, ODD
).map("".join)
SHOWN = TEXT.filter(lambda text: bool(text.strip()))
COMMAND = SHOWN.filter(lambda text: "\0" not in text and text.replace("\r\n", "\n").strip() != "")
SECONDS = st.floats(0.001, 1000, allow_nan=False) | st.integers(1, 1000)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A scenario as plain data, of odd texts."""
    steps = st.fixed_dictionaries(
        {"run": COMMAND}, optional={"timeout": SECONDS, "exit_code": st.integers(0, 255)}
    )
    rules = st.fixed_dictionaries(
        {"label": SHOWN, "validator": st.just("host_state"), "run": COMMAND},
        optional={"required": st.booleans()},
    ) | st.fixed_dictionaries(
        {
            "label": SHOWN,
            "validator": st.just("pattern_match"),
            "where": st.just("tool_calls"),
            "pattern": SHOWN.map(re.escape).filter(lambda text: bool(text.strip())),
        },
        optional={"negate": st.booleans()},
    )
    return {
        "key": draw(st.from_regex(re.compile(KEY), fullmatch=True).map(str.strip)),
        "title": draw(SHOWN),
        "description": draw(TEXT),
        "ticket_title": draw(TEXT),
        "ticket_body": draw(TEXT),
        "tags": draw(st.lists(SHOWN, max_size=3)),
        "operational_rules": draw(st.lists(TEXT, max_size=3)),
        "hosts": ["web-01"],
        "setup": draw(st.lists(steps, max_size=2)),
        "limits": {"job_seconds": draw(SECONDS)},
        "requires": {"web-01": ["curl"], "users": draw(st.booleans())},
        "validation": draw(st.lists(rules, max_size=3)),
    }


@given(documents())
def test_what_is_written_loads_again_as_the_same_version(data: dict[str, Any]) -> None:
    """[S6.12] YAML, and JSON with and without defaults; a second writing is the same text."""
    scenario = parse_scenario(data)
    for text in (as_yaml(scenario), as_json(scenario), as_json(scenario, defaults=False)):
        loaded = load_text(text, {})
        assert loaded.scenario == scenario
        assert loaded.version == scenario.version()
    assert as_yaml(load_text(as_yaml(scenario)).scenario) == as_yaml(scenario)


def test_yaml_is_what_people_would_write() -> None:
    scenario = Scenario.model_validate(
        {
            "key": "disk-full",
            "title": "The disk is full: web-01",
            "ticket_title": "yes",
            "ticket_body": "One.\nTwo.\n",
            "hosts": ["web-01"],
            "setup": [{"run": "set -e\ntrue", "timeout": 5}],
        }
    )
    assert as_yaml(scenario) == (
        "key: disk-full\n"
        'title: "The disk is full: web-01"\n'
        'ticket_title: "yes"\n'
        "ticket_body: |\n"
        "  One.\n"
        "  Two.\n"
        "hosts:\n"
        "  - name: web-01\n"
        "setup:\n"
        "  - run: |-\n"
        "      set -e\n"
        "      true\n"
        "    timeout: 5\n"
    )


@pytest.mark.parametrize("entry", Catalogue([PACKS]).entries, ids=lambda entry: entry.key)
def test_scenarios_of_the_packs_are_written_as_blocks(entry: Any) -> None:
    loaded = entry.scenario()
    text = as_yaml(loaded.scenario)
    assert not text.startswith("{")
    again = load_text(text, loaded.files)
    assert (again.version, as_data(again.scenario)) == (loaded.version, as_data(loaded.scenario))
