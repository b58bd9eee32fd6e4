"""JSON Schemas of the files and outputs, generated from the models by `scripts/fix`.

Editors complete and check scenario files with `scenario.schema.json`.
"""

from __future__ import annotations

from importlib.resources import files


def schema_text(name: str) -> str:
    """The JSON Schema of a format as text.

    Args:
        name: `"scenario"`, `"lab"`, `"script"`, `"job"`, `"answers"`, `"result"` or `"results"`.

    Raises:
        KeyError: there is no such schema.
    """
    if name not in schema_names():
        raise KeyError(name)
    return files(__name__).joinpath(f"{name}.schema.json").read_text(encoding="utf-8")


def schema_names() -> list[str]:
    """The names of all schemas, sorted."""
    ending = ".schema.json"
    names = (file.name for file in files(__name__).iterdir())
    return sorted(name.removesuffix(ending) for name in names if name.endswith(ending))
