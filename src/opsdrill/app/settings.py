"""The settings file `opsdrill.toml`: flags beat the environment, which beats the file.

Two files are read: the one in the data folder, and over it, key by key, the one in the working
folder. Every key is documented in docs/reference/settings.md; a test compares the two.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from opsdrill.errors import InvalidInput, Problem
from opsdrill.model.fields import Recorded
from opsdrill.model.problem import from_validation
from opsdrill.model.secret import SecretName, SecretReference

FILE = "opsdrill.toml"


class Settings(Recorded):
    """What a command is told without a flag; None leaves a thing to its default."""

    home: str | None = None
    """The data folder. Only in the file of the working folder, and in the environment."""
    database_url: Annotated[str | None, Field(alias="database-url", repr=False)] = None
    """The database on a server that the store is in; without it, a file in the data folder."""
    lab: str | None = None
    """Where hosts come from: as `--lab`."""
    agent: Annotated[tuple[str, ...], Field(strict=False)] | None = None
    """Who works: as `--agent`; a text, or a list for several."""
    agent_config: Annotated[str | None, Field(alias="agent-config")] = None
    """The file that names agents: as `--agent-config`."""
    parallel: Annotated[int, Field(ge=1, le=1000)] | None = None
    """How many runs at once: as `--parallel`."""
    repeat: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """How often each scenario runs: as `--repeat`."""
    fail_on: Annotated[Literal["failed", "never"] | None, Field(alias="fail-on")] = None
    """`failed`: exit with 1 when a run failed."""
    scenarios: Annotated[tuple[str, ...], Field(strict=False)] | None = None
    """Folders in which keys and tags are looked up, beside the packs that come along."""
    color: Literal["auto", "always", "never"] | None = None
    """Whether the terminal gets colours; `auto` asks it, and `NO_COLOR`."""
    secrets: dict[SecretName, SecretReference] = {}  # noqa: RUF012 (pydantic copies it)
    """What is masked in all that is kept, by name; each by reference, as in a lab."""


KEYS: tuple[str, ...] = tuple(field.alias or name for name, field in Settings.model_fields.items())
_LISTS = ("agent", "scenarios")
_PATHS = ("home", "agent-config", "scenarios")


def variable(key: str) -> str:
    """The environment variable that stands for a key: `fail-on` -> `OPSDRILL_FAIL_ON`."""
    return "OPSDRILL_" + key.upper().replace("-", "_")


def read(folder: Path, kept: Path | None, environment: Mapping[str, str] = os.environ) -> Settings:
    """The settings that hold here, from the least to the most particular.

    Args:
        folder: the working folder.
        kept: the settings file of the data folder, where that is known already.
        environment: the environment's variables.

    Raises:
        InvalidInput: a file that is no TOML, a key that is unknown, a value that cannot be; with
            file and line.
    """
    layers = (
        _file(kept, in_home=True) if kept else {},
        _file(folder / FILE),
        _environment(environment),
    )
    # One layer's secrets are no less secret for another's.
    secrets = {name: way for layer in layers for name, way in layer.get("secrets", {}).items()}
    merged = {key: value for layer in layers for key, value in layer.items()}
    return _checked({**merged, "secrets": secrets}, "settings")


def _environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in KEYS:
        text = environment.get(variable(key))
        if not text:
            continue
        if key == "scenarios":
            found[key] = text.split(os.pathsep)
        elif key == "agent":
            found[key] = [text]
        elif key == "secrets":
            names = [name.strip() for name in text.split(",")]
            found[key] = {name: {"env": name} for name in names if name}
        else:
            found[key] = int(text) if re.fullmatch(r"[0-9]{1,9}", text) else text
    for key, value in found.items():
        _checked({key: value}, "environment", rename=variable(key))
    return found


def _file(path: Path, *, in_home: bool = False) -> dict[str, Any]:
    """The keys of one file, checked, with its relative paths made whole."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError:
        problem = Problem("", "is not UTF-8", file=str(path))
        raise InvalidInput("settings", [problem]) from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}", ()) from None
    try:
        data: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        what = re.sub(r" \(at .*", "", str(error))
        # Without a place the library means the end of the document.
        line, column = (int(place[1]), int(place[2])) if place else (text.count("\n") + 1, None)
        problem = Problem("", f"is not TOML: {what[:1].lower()}{what[1:]}")
        problem = problem.at(str(path), line, column)
        raise InvalidInput("settings", [problem]) from None
    for key in _LISTS:
        if isinstance(data.get(key), str):
            data[key] = [data[key]]
    _checked(data, "settings", path=path, text=text)
    if in_home and "home" in data:
        problem = Problem("home", "cannot be set by the file inside the data folder itself")
        raise InvalidInput("settings", [problem.at(str(path), _line_of("home", text), 1)])
    for key in _PATHS:
        if key in data:
            data[key] = _whole(data[key], path.parent)
    for source in data.get("secrets", {}).values():
        if "file" in source:
            source["file"] = _whole(source["file"], path.parent)
    if isinstance(data.get("lab"), str) and "/" in data["lab"]:
        data["lab"] = _whole(data["lab"], path.parent)
    return data


def _whole(value: Any, folder: Path) -> Any:
    if isinstance(value, list):
        return [_whole(item, folder) for item in value]
    return str(folder / Path(value).expanduser())


def _checked(
    data: dict[str, Any],
    what: str,
    *,
    path: Path | None = None,
    text: str = "",
    rename: str | None = None,
) -> Settings:
    try:
        return Settings.model_validate(data)
    except ValidationError as error:
        problems = []
        for location, problem in from_validation(error):
            key = str(location[0])
            message = problem.message
            if key not in KEYS:
                message = f"is not a setting; the settings: {', '.join(KEYS)}"
            line = _line_of(key, text)
            found = Problem(rename or problem.path, message)
            problems.append(found.at(str(path) if path else None, line, 1 if line else None))
        raise InvalidInput(what, problems) from None


def _line_of(key: str, text: str) -> int | None:
    head = re.compile(rf"""^\s*(\[+\s*)?["']?{re.escape(key)}["']?\s*[=.\]]""")
    return next((n for n, line in enumerate(text.split("\n"), 1) if head.match(line)), None)
