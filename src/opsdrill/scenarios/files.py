"""The support files of a scenario: regular files of bounded size inside its folder."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from opsdrill.errors import InvalidInput, Problem
from opsdrill.model.problem import Location

FILE_LIMIT = 16 * 1024 * 1024
"""Bytes of one support file."""


class Support(Protocol):
    """A support file, wherever it lies."""

    @property
    def source(self) -> str:
        """Its path in the scenario's folder."""

    @property
    def digest(self) -> str:
        """SHA-256 of the content, in hex."""

    @property
    def size(self) -> int:
        """In bytes."""

    def read(self) -> bytes:
        """The content.

        Raises:
            InvalidInput: it is not what it was any more.
            StoreError: it is kept in a store that cannot be read.
        """


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A support file as it was when the scenario was loaded.

    Args:
        source: its path in the scenario's folder, as written.
        path: where it lies, all links followed.
        digest: SHA-256 of the content, in hex.
        size: in bytes.
    """

    source: str
    path: Path
    digest: str
    size: int

    def read(self) -> bytes:
        """The content.

        Raises:
            InvalidInput: the file changed or went away since the scenario was loaded.
        """
        try:
            content = _content(self.path)
        except _Unusable as reason:
            problem = Problem("", str(reason), file=str(self.path))
            raise InvalidInput("support file", [problem]) from None
        if hashlib.sha256(content).hexdigest() != self.digest:
            problem = Problem("", "changed after the scenario was loaded", file=str(self.path))
            raise InvalidInput("support file", [problem], hint="load the scenario again")
        return content


class _Unusable(Exception):
    """Says why a file cannot be a support file."""


def support_files(
    folder: Path, sources: Iterable[tuple[int, str]]
) -> tuple[dict[str, LoadedFile], list[tuple[Location, str]]]:
    """The support files that a scenario names, and what is wrong with the others.

    Args:
        folder: the scenario's.
        sources: each `from` inside the folder, with its place in `files`.
    """
    found: dict[str, LoadedFile] = {}
    wrong: list[tuple[Location, str]] = []
    for index, source in sources:
        if source in found:
            continue
        try:
            found[source] = _load(folder, source)
        except _Unusable as reason:
            wrong.append((("files", index, "from"), str(reason)))
    return found, wrong


def _load(folder: Path, source: str) -> LoadedFile:
    try:
        root = folder.resolve(strict=True)
        path = (root / source).resolve(strict=True)
    except FileNotFoundError:
        raise _Unusable(f"there is no file {source!r} in the scenario's folder") from None
    except (OSError, RuntimeError, ValueError) as error:
        raise _Unusable(f"{source!r} cannot be found: {_reason(error)}") from None
    if not path.is_relative_to(root):
        raise _Unusable(f"{source!r} is a link that leads out of the scenario's folder")
    content = _content(path)
    return LoadedFile(source, path, hashlib.sha256(content).hexdigest(), len(content))


def _content(path: Path) -> bytes:
    with _opened(path) as descriptor:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _Unusable(f"{path.name!r} is no regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as stream:
            content = stream.read(FILE_LIMIT + 1)
    if len(content) > FILE_LIMIT:
        raise _Unusable(f"{path.name!r} is larger than {FILE_LIMIT // 1024 // 1024} MiB")
    return content


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    # Without O_NONBLOCK a pipe in the folder would wait for a writer for ever.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _Unusable(f"{path.name!r} cannot be opened: {_reason(error)}") from None
    try:
        yield descriptor
    except OSError as error:
        raise _Unusable(f"{path.name!r} cannot be read: {_reason(error)}") from None
    finally:
        os.close(descriptor)


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
