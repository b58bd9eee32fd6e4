"""What changed between two versions: nothing is told of what did not, and all of what did."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from opsdrill.app.scenario_changes import Change, FieldChange, data_changes, version_changes
from opsdrill.app.scenario_files import NewFile
from opsdrill.scenarios.document import Document
from opsdrill.scenarios.load import LoadedScenario, parse_scenario

RULE = {"label": "a", "validator": "host_state", "run": "true", "exit_code": 0}


def rule(label: str, **more: object) -> dict[str, object]:
    return {**RULE, "label": label, **more}


def changed(old: list[object], new: list[object]) -> list[Change]:
    return data_changes({"validation": old}, {"validation": new})


def summary(found: list[Change]) -> list[tuple[str, str]]:
    return [(one.kind, one.title) for one in found]


def test_a_changed_rule_tells_its_values_before_and_after() -> None:
    [found] = changed([rule("a")], [rule("a", exit_code=3, on="web-01")])
    assert (found.part, found.kind, found.title) == ("validation", "changed", "rule 0: a")
    assert found.fields == (
        FieldChange("exit_code", "0", "3"),
        FieldChange("on", None, "web-01"),
    )


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("abc", "abc", []),
        ("abc", "ab", [("removed", "rule 2: c")]),
        ("ac", "abc", [("added", "rule 1: b")]),
        ("abc", "cab", [("moved", "rule 0: c")]),
        ("", "a", [("added", "rule 0: a")]),
        ("aa", "a", [("removed", "rule 1: a")]),
    ],
)
def test_rules_are_known_by_their_labels_wherever_they_stand(
    old: str, new: str, wanted: list[tuple[str, str]]
) -> None:
    found = changed([rule(one) for one in old], [rule(one) for one in new])
    assert summary(found) == wanted


def test_a_rule_with_another_label_at_its_place_is_the_same_rule() -> None:
    [found] = changed([rule("a"), rule("b")], [rule("a"), rule("c")])
    assert found.fields == (FieldChange("label", "b", "c"),)


def test_a_rule_of_another_validator_is_another_rule() -> None:
    other = {"label": "b", "validator": "task_count", "min": 1}
    assert summary(changed([rule("a")], [other])) == [("removed", "rule 0: a"),
                                                      ("added", "rule 0: b")]  # fmt: skip


def test_other_keys_tell_their_values() -> None:
    found = data_changes(
        {"title": "a", "tags": ["x"], "limits": {"job_seconds": 1, "command_seconds": 2}},
        {"title": "b", "tags": [], "limits": {"job_seconds": 3, "command_seconds": 2}},
    )
    assert [one.fields for one in found] == [
        (FieldChange("title", "a", "b"),),
        (FieldChange("tags", '["x"]', "[]"),),
        (FieldChange("job_seconds", "1", "3"),),
    ]


def loaded(**files: str) -> LoadedScenario:
    data = {"key": "a", "title": "a", "ticket_title": "a"}
    kept = {name: NewFile(name, content.encode()) for name, content in files.items()}
    return LoadedScenario(parse_scenario(data), None, None, Document(data), kept)


def test_contents_of_support_files_are_compared() -> None:
    found = version_changes(loaded(a="1", b="1", c="1"), loaded(a="1", b="2", d="1"))
    assert summary(found) == [
        ("changed", "content of b"),
        ("removed", "content of c"),
        ("added", "content of d"),
    ]


ITEMS = st.lists(
    st.fixed_dictionaries(
        {"label": st.sampled_from("abcd"), "validator": st.sampled_from(("x", "y"))},
        optional={"run": st.text(max_size=3)},
    ),
    max_size=6,
)


@given(ITEMS, ITEMS)
def test_there_are_changes_exactly_where_something_is_otherwise(
    old: list[dict[str, Any]], new: list[dict[str, Any]]
) -> None:
    found = changed(list(old), list(new))
    assert (found == []) == (old == new)
    count = {kind: sum(one.kind == kind for one in found) for kind in ("added", "removed")}
    assert len(old) - count["removed"] + count["added"] == len(new)
