"""The shipped JSON Schema accepts what loads, short forms too, and refuses plain mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from opsdrill.errors import InvalidInput
from opsdrill.scenarios.catalogue import PACKS, Catalogue
from opsdrill.scenarios.load import load_scenario, parse_scenario
from opsdrill.scenarios.template import write_template
from opsdrill.schemas import schema_names, schema_text

SCHEMA = Draft202012Validator(json.loads(schema_text("scenario")))
BASE: dict[str, Any] = {"key": "a", "title": "t", "ticket_title": "t", "hosts": ["web"]}


def accepts(data: object) -> bool:
    return bool(SCHEMA.is_valid(data))


@pytest.mark.parametrize("name", schema_names())
def test_schemas_are_schemas(name: str) -> None:
    Draft202012Validator.check_schema(json.loads(schema_text(name)))


def test_the_packs_and_the_template(tmp_path: Path) -> None:
    for entry in Catalogue([PACKS]).entries:
        assert accepts(entry.scenario().document.data), entry.key
    write_template(tmp_path)
    assert accepts(load_scenario(tmp_path).document.data)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"hosts": ["web", {"name": "db"}, {"name": "x", "image": None}]},
        {"requires": ["curl", "users"]},
        {"requires": {"web": ["curl"], "systemd": True}},
        {"requires": {"commands": ["curl"], "by_host": {"web": []}, "users": False}},
        {"requires": None, "tags": None, "limits": None, "hosts": None},
        {"limits": {"job_seconds": 5, "command_seconds": 0.5}},
        {"setup": [{"run": "true", "on": None, "exit_code": 3}]},
        {"validation": [{"label": "l", "validator": "task_count", "min": None, "max": 0}]},
        {"validation": [{"label": "l", "validator": "host_state", "run": "true"}]},
    ],
)
def test_what_loads_is_accepted(more: dict[str, Any]) -> None:
    data = {**BASE, **more}
    parse_scenario(data)
    assert accepts(data), [error.message for error in SCHEMA.iter_errors(data)]


@pytest.mark.parametrize(
    "more",
    [
        {"zz": 1},
        {"key": "A"},
        {"title": " "},
        {"hosts": ["Web"]},
        {"hosts": [{"nam": "web"}]},
        {"hosts": [f"h{n}" for n in range(65)]},
        {"requires": ["a b"]},
        {"requires": {"web": "curl"}},
        {"requires": {"zz_z": ["curl"]}},
        {"limits": {"job_seconds": 0}},
        {"setup": [{"rum": "true"}]},
        {"setup": [{"run": "true", "exit_code": 256}]},
        {"validation": [{"label": "l", "validator": "zz"}]},
        {"validation": [{"label": "l", "validator": "task_count", "max": "1"}]},
        {"validation": [{"validator": "task_count", "max": 1}]},
        {
            "validation": [
                {"label": "l", "validator": "pattern_match", "pattern": "x", "where": "y"}
            ]
        },
    ],
)
def test_plain_mistakes_are_refused_by_both(more: dict[str, Any]) -> None:
    data = {**BASE, **more}
    assert not accepts(data)
    with pytest.raises(InvalidInput):
        parse_scenario(data)
