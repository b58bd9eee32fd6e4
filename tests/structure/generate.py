"""Writes the generated files anew: `python -m tests.structure.generate`.

What a generated file should hold is in `generated()`; `test_schemas_current.py` compares.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import BaseModel
from tests.structure import operations

from opsdrill.agents.http import openapi
from opsdrill.agents.script import Script
from opsdrill.model.host import HostAnswers
from opsdrill.model.job import JobRecord
from opsdrill.model.lab import Lab
from opsdrill.model.result import Result, Results
from opsdrill.model.scenario import Scenario

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "src" / "opsdrill" / "schemas"

Mode = Literal["validation", "serialization"]
MODELS: dict[str, tuple[type[BaseModel], Mode]] = {
    "scenario": (Scenario, "validation"),
    "lab": (Lab, "validation"),
    "job": (JobRecord, "validation"),
    "answers": (HostAnswers, "validation"),
    "script": (Script, "validation"),
    "result": (Result, "serialization"),
    "results": (Results, "serialization"),
}
"""The schemas by name: the model, and whether it is read or written."""


def generated() -> Iterator[tuple[Path, str]]:
    """Every generated file with the text that it should hold."""
    for name, (model, mode) in MODELS.items():
        yield SCHEMAS / f"{name}.schema.json", schema(model, mode)
    services = json.dumps(openapi.document(), indent=2, ensure_ascii=False)
    yield ROOT / "docs" / "reference" / "http-agents.openapi.json", services + "\n"
    api = ROOT / "docs" / "reference" / "api.md"
    yield api, operations.page(api.read_text(encoding="utf-8"))


def schema(model: type[BaseModel], mode: Mode) -> str:
    """The JSON Schema of a model as text, the same for the same model."""
    content = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **model.model_json_schema(mode=mode),
    }
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for path, text in generated():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(ROOT)}")
