"""What a program needs of this machine in order to start, beside what every machine has."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

from opsdrill.agents.isolation.mounts import SYSTEM

_MODULES = "node_modules"
_HEAD = 256
_HOME = re.compile(r"^home\s*=\s*(.+?)\s*$", re.MULTILINE)
_STEPS = 8
"""Programs that start one another by their first line."""


def find_program(name: str, path: str, folder: Path) -> str | None:
    """The absolute path of a program; None: there is none.

    Args:
        name: as a shell would look for it; with a slash in it, from `folder`.
        path: folders to look in, as `PATH` has them.
    """
    if "/" in name:
        place = os.path.normpath(folder / Path(name).expanduser())
        return place if os.access(place, os.X_OK) and Path(place).is_file() else None
    found = shutil.which(name, path=path)
    return None if found is None else os.path.abspath(found)  # noqa: PTH100 - no link is followed


def needed(program: str, path: str, home: str, arguments: Collection[str] = ()) -> tuple[str, ...]:
    """Files and folders without which a program cannot start, as far as they can be told.

    These are the program, where links lead from it, what its first line names, and where such a
    program is installed (a virtual environment, a prefix with `bin` and `lib`, a folder of Node
    modules), but never a home folder. Then the files that its arguments name by a whole path.
    """
    found: dict[str, None] = {}
    queue = [program]
    for _ in range(_STEPS):
        if not queue:
            break
        one = queue.pop(0)
        for place in _links(one):
            for shown in (place, *_installation(place, home)):
                found.setdefault(shown)
        queue += _first_line(one, path)
    for argument in arguments:
        if argument.startswith("/") and Path(argument).is_file():
            found.setdefault(os.path.normpath(argument))
    return tuple(place for place in found if not _everywhere(place))


def _everywhere(place: str) -> bool:
    return any(place == root or place.startswith(root + "/") for root in SYSTEM)


def _links(path: str) -> Iterator[str]:
    """A path, and every path that leads from it to the file."""
    for _ in range(_STEPS):
        yield path
        if not os.path.islink(path):  # noqa: PTH114
            break
        path = os.path.normpath(Path(path).parent / os.readlink(path))  # noqa: PTH115
    real = os.path.realpath(path)
    if real != path:
        yield real


def _installation(path: str, home: str) -> Iterator[str]:
    place = Path(path)
    if _MODULES in place.parts:
        where = place.parts.index(_MODULES)
        yield str(Path(*place.parts[: where + 1]))
    folder = place.parent
    if folder.name not in ("bin", "sbin"):
        return
    prefix = folder.parent
    if str(prefix) == "/" or Path(home).is_relative_to(prefix):
        return
    settings = prefix / "pyvenv.cfg"
    if settings.is_file():
        yield str(prefix)
        if match := _HOME.search(settings.read_text(errors="replace")):
            yield from _installation(f"{match[1]}/python3", home)
    elif (prefix / "lib").is_dir() and (prefix / "lib") != Path(home) / ".local" / "lib":
        yield str(prefix)


def _first_line(path: str, search: str) -> list[str]:
    """The programs that the first line of a script names."""
    try:
        with Path(path).open("rb") as file:
            line = file.readline(_HEAD)
    except OSError:
        return []
    if not line.startswith(b"#!"):
        return []
    words = line[2:].decode(errors="replace").split()
    if words and words[0].endswith("/env"):
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        found = shutil.which(words[0], path=search) if words else None
        return [found] if found else []
    return words[:1] if words and words[0].startswith("/") else []
