"""The generated files are those that the models give now."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.structure.generate import MODELS, generated

from opsdrill.schemas import schema_names, schema_text


@pytest.mark.parametrize(("path", "text"), list(generated()), ids=lambda v: getattr(v, "name", ""))
def test_generated_file_is_current(path: Path, text: str) -> None:
    assert path.read_text(encoding="utf-8") == text, "run scripts/fix"


def test_every_schema_ships_under_its_name() -> None:
    assert schema_names() == sorted(MODELS)
    assert all(schema_text(name).startswith("{") for name in schema_names())


def test_an_unknown_schema_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        schema_text("../scenario")
