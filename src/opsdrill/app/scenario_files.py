"""The files that are kept with a scenario of the store: their paths, their sizes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from opsdrill.errors import InvalidInput, Problem
from opsdrill.model.scenario import is_inside
from opsdrill.scenarios.files import FILE_LIMIT, Support
from opsdrill.scenarios.load import SCENARIO_FILES

FILES_LIMIT = 200
"""Files that are kept with one scenario."""
BYTES_LIMIT = 64 * 1024 * 1024
"""Bytes of all of them."""
NAME_LIMIT = 200
"""Characters of a path."""


@dataclass(frozen=True, slots=True)
class NewFile:
    """A support file that has just come."""

    source: str
    content: bytes

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def size(self) -> int:
        return len(self.content)

    def read(self) -> bytes:
        return self.content


def check_source(source: str) -> None:
    """Raises InvalidInput for what cannot be the path of a file that is kept with a scenario."""
    parts = source.split("/")
    why = None
    if not is_inside(source) or "" in parts or "." in parts:
        why = "must be a path inside the scenario's folder"
    elif len(source) > NAME_LIMIT or any(len(part.encode()) > 255 for part in parts):
        why = f"must have at most {NAME_LIMIT} characters"
    elif not source.isprintable():
        why = "holds characters that cannot be shown"
    elif source.casefold() in SCENARIO_FILES:
        why = "is the name of the scenario's own file"
    if why is not None:
        raise InvalidInput("the file is refused", [Problem("", f"{source[:NAME_LIMIT]!r} {why}")])


def check_sizes(files: Mapping[str, Support]) -> None:
    """Raises InvalidInput for more files, or larger ones, than are kept with a scenario."""
    large = [file.source for file in files.values() if file.size > FILE_LIMIT]
    why = None
    if large:
        why = f"{large[0]!r} is larger than {FILE_LIMIT // 1024 // 1024} MiB"
    elif len(files) > FILES_LIMIT:
        why = f"there are more than {FILES_LIMIT} files"
    elif sum(file.size for file in files.values()) > BYTES_LIMIT:
        why = f"the files are larger than {BYTES_LIMIT // 1024 // 1024} MiB"
    if why is not None:
        raise InvalidInput("the files are refused", [Problem("files", why)])
