"""A transcript's file: read as lines or as one document, in memory that does not grow with it."""

from __future__ import annotations

import codecs
import io
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, cast

import ijson

from opsdrill.errors import InvalidInput, Problem, UsageError
from opsdrill.evidence.importers.glimpse import Glimpse
from opsdrill.evidence.importers.json_stream import TEXT_LIMIT, JsonStream
from opsdrill.evidence.importers.rows import row

HEAD = 1024 * 1024
"""Bytes that are looked at to find the format."""
LINE_LIMIT = TEXT_LIMIT
"""Bytes of one line; a longer one is not read."""
MEMBER_LIMIT = 8 * 1024**3
"""Bytes of one file of a ZIP archive, unpacked."""


class Damaged(Exception):
    """The rest cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line that is not blank; `value` is None where it is no JSON.

    Attributes:
        long: it is too long to be read.
        foreign: it does not look like JSON at all.
        null: it is JSON, and says null.
    """

    number: int
    value: object
    long: bool = False
    foreign: bool = False
    null: bool = False


class Source:
    """A file with a transcript.

    Args:
        name: how messages call it.
        opener: opens it anew at its start, for binary reading.
        members: the names in it, when it is a ZIP archive.
    """

    def __init__(
        self, name: str, opener: Callable[[], IO[bytes]], members: frozenset[str] = frozenset()
    ) -> None:
        self.name = name
        self.members = members
        self._opener = opener
        self._skip = 0
        with self._opened() as stream:
            self._head = stream.read(HEAD)
        if self._head.startswith(codecs.BOM_UTF8):
            self._skip = len(codecs.BOM_UTF8)
            self._head = self._head[self._skip :]

    @classmethod
    def of(cls, path: Path) -> Source:
        """The source in a file.

        Raises:
            UsageError: there is no such file, or it cannot be read.
        """
        try:
            if not path.is_file():
                raise UsageError(f"{path}: there is no such file")
            members: frozenset[str] = frozenset()
            if zipfile.is_zipfile(path):
                with zipfile.ZipFile(path) as archive:
                    members = frozenset(archive.namelist())
            return cls(str(path), lambda: path.open("rb"), members)
        except (OSError, zipfile.BadZipFile) as error:
            raise UsageError(f"{path}: cannot be read: {_reason(error)}") from None

    @cached_property
    def glimpse(self) -> Glimpse:
        """The first look at it."""
        return Glimpse(self._head, self.members)

    def lines(self) -> Iterator[Line]:
        """Its lines as JSON values; blank ones are left out.

        Raises:
            Damaged: the file cannot be read on.
        """
        with self._opened() as stream:
            number = 0
            while line := stream.readline(LINE_LIMIT + 1):
                number += 1
                if len(line) > LINE_LIMIT:
                    while line and not line.endswith(b"\n"):
                        line = stream.readline(LINE_LIMIT)
                    yield Line(number, None, long=True)
                elif line.strip():
                    start = line.lstrip()[:1]
                    foreign = start not in (b"{", b"[")
                    yield Line(number, row(line), foreign=foreign, null=line.strip() == b"null")

    def items(self, path: str) -> Iterator[object]:
        """What stands at a path of the single JSON document that it is, e.g. `messages.item`.

        Raises:
            Damaged: the document is broken behind what was given so far.
        """
        with self._opened() as stream:
            try:
                yield from ijson.items(JsonStream(stream), path, use_float=True)
            except ijson.JSONError as error:
                raise Damaged(f"the document breaks off or is damaged ({_first(error)})") from None

    def value(self, path: str) -> object:
        """The first thing at a path of a single JSON document; None where there is none."""
        try:
            return next(iter(self.items(path)), None)
        except Damaged:
            return None

    def member(self, name: str) -> Source:
        """A file of the ZIP archive that it is.

        Raises:
            Damaged: it cannot be unpacked.
        """

        def opener() -> IO[bytes]:
            archive = zipfile.ZipFile(self._opener())
            return cast("IO[bytes]", _Bounded(archive.open(name), archive))

        return Source(f"{self.name}:{name}", opener)

    def broken(self, message: str) -> InvalidInput:
        """The error for a file of which nothing can be read."""
        return InvalidInput("transcript", [Problem("", message, file=self.name)])

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        try:
            with self._opener() as stream:
                stream.read(self._skip)
                yield stream
        except (OSError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
            # RuntimeError: a member that is encrypted; KeyError: one that is not there.
            raise Damaged(f"it cannot be read on ({_reason(error)})") from None


class _Bounded(io.RawIOBase):
    """A file of an archive that ends the reading where it is larger than any transcript."""

    def __init__(self, stream: IO[bytes], archive: zipfile.ZipFile) -> None:
        self._stream = stream
        self._archive = archive
        self._read = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._count(self._stream.read(size))

    def readline(self, size: int | None = -1) -> bytes:
        return self._count(self._stream.readline(-1 if size is None else size))

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            self._archive.close()
        super().close()

    def _count(self, data: bytes) -> bytes:
        self._read += len(data)
        if self._read > MEMBER_LIMIT:
            raise Damaged(f"unpacked it is larger than {MEMBER_LIMIT // 1024**3} GiB")
        return data


def _reason(error: BaseException) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _first(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:120]
