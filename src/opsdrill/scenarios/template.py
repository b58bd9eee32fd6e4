"""A new scenario folder: every field with a comment, valid, and runnable as it is."""

from __future__ import annotations

import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from opsdrill.errors import UsageError

_KEY = "key: my-drill\n"


def write_template(folder: Path) -> list[Path]:
    """Write a new scenario into a folder, which is made if it is not there.

    Returns:
        the files written, the scenario's own first.

    Raises:
        UsageError: the folder holds something already, or cannot be written.
    """
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UsageError(
                f"{folder} holds something already", hint="name a folder that is new or empty"
            )
        source = files("opsdrill.scenarios").joinpath("template")
        written = [_write(item, folder / path) for path, item in _walk(source, Path())]
        scenario = folder / "scenario.yaml"
        text = scenario.read_text(encoding="utf-8")
        scenario.write_text(text.replace(_KEY, f"key: {key_for(folder)}\n", 1), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror or error}") from None
    return sorted(written, key=lambda path: (path.name != "scenario.yaml", path))


def key_for(folder: Path) -> str:
    """A key made of a folder's name; `my-drill` where nothing of the name can stand in one."""
    words = re.findall(r"[a-z0-9]+", folder.resolve().name.lower())
    return "-".join(words)[:100].rstrip("-") or "my-drill"


def _walk(source: Traversable, path: Path) -> list[tuple[Path, Traversable]]:
    found: list[tuple[Path, Traversable]] = []
    for item in source.iterdir():
        inner = path / item.name
        found += _walk(item, inner) if item.is_dir() else [(inner, item)]
    return found


def _write(item: Traversable, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(item.read_bytes())
    return path
