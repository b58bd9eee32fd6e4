"""A transcript's file: read as lines or as one document, in memory that does not grow with it."""

from __future__ import annotations

import codecs
import lzma
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, TypeVar, cast

import ijson

from opsdrill.errors import InvalidInput, Problem, UsageError
from opsdrill.evidence.transcripts.glimpse import Glimpse
from opsdrill.evidence.transcripts.json_stream import TEXT_LIMIT, JsonStream
from opsdrill.evidence.transcripts.outline import Stretch, end_of, objects, outline
from opsdrill.evidence.transcripts.rows import row
from opsdrill.evidence.transcripts.salvage import Mended, directory_of
from opsdrill.evidence.transcripts.zips import ZstdError, zipfile

HEAD = 1024 * 1024
"""Bytes that are looked at to find the format."""
LINE_LIMIT = TEXT_LIMIT
"""Bytes of one line; a longer one is not read."""

BREAKS_OFF = "the document breaks off"
ANOTHER = "another document stands behind the first one, and is not read"
MORE = "something that is no JSON stands behind the document, and is not read"

UNREADABLE = (
    OSError, EOFError, KeyError, RuntimeError, ValueError,
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, ZstdError, struct.error,
)  # fmt: skip
"""What reading may raise. RuntimeError: a file of an archive that is encrypted or packed in a way
that is not known here; KeyError: one that is not there; ValueError: one before the start."""

Value = TypeVar("Value")


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
        stretch: the part of the file that it is; None: the whole file.
        breaks_off: it is an archive without its directory, and so without its end.
    """

    def __init__(
        self,
        name: str,
        opener: Callable[[], IO[bytes]],
        members: frozenset[str] = frozenset(),
        stretch: Stretch | None = None,
        *,
        breaks_off: bool = False,
    ) -> None:
        self.name = name
        self.members = members
        self.stretch = stretch
        self.breaks_off = breaks_off
        self._opener = opener
        self._skip = 0
        if stretch is not None:
            self._head = b""
            return
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
                what = "is no ordinary file" if path.exists() else "there is no such file"
                raise UsageError(f"{path}: {what}")
            with path.open("rb") as stream:
                if stream.read(2) != b"PK":
                    return cls(str(path), lambda: path.open("rb"))
                behind = b"" if zipfile.is_zipfile(path) else directory_of(stream)

            def opener() -> IO[bytes]:
                whole = path.open("rb")
                return cast("IO[bytes]", Mended(whole, behind)) if behind else whole

            with opener() as packed, zipfile.ZipFile(packed) as archive:
                members = frozenset(archive.namelist())
            return cls(str(path), opener, members, breaks_off=bool(behind))
        except (*UNREADABLE, Damaged) as error:
            raise UsageError(f"{path}: cannot be read: {reason_of(error)}") from None

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

    def items(self, path: str, *, several: bool = False) -> Iterator[object]:
        """What stands at a path of the single JSON document that it is, e.g. `messages.item`.

        Args:
            path: keys; `item` stands for any place in a list.
            several: there may be more documents, one behind the other.

        Raises:
            Damaged: the document is broken behind what was given so far.
        """
        yield from self._parsed(
            lambda stream: ijson.items(stream, path, use_float=True, multiple_values=several)
        )

    def _parsed(self, parse: Callable[[JsonStream], Iterator[Value]]) -> Iterator[Value]:
        with self._opened() as stream:
            try:
                yield from parse(JsonStream(stream))
            except ijson.JSONError as error:
                if "trailing garbage" in str(error):
                    raise Damaged(self._behind()) from None
                raise Damaged(f"the document breaks off or is damaged ({_first(error)})") from None

    def value(self, path: str) -> object:
        """The first thing at a path of a single JSON document; None where there is none."""
        try:
            return next(iter(self.items(path)), None)
        except Damaged:
            return None

    def has_list(self, path: str) -> bool:
        """Whether what a path of `items` goes through last is a list; true where it breaks off.

        Raises:
            Damaged: the document is broken before that.
        """
        list_path = path.removesuffix("item").removesuffix(".")
        for prefix, event, _ in self._parsed(lambda stream: ijson.parse(stream, use_float=True)):
            if prefix == list_path and event != "map_key":
                return bool(event == "start_array")
        return False

    def pairs(self) -> Iterator[tuple[str, object]]:
        """The keys of the single object that it is, each with its value.

        Raises:
            Damaged: the document is broken behind what was given so far.
        """
        yield from self._parsed(lambda stream: ijson.kvitems(stream, "", use_float=True))

    def parts(self, *keys: str) -> tuple[dict[str, Source], str | None]:
        """The values of some keys of the single object that it is, and why that is not all.

        It is not where the object lacks its end, or another document follows it; else None.

        Raises:
            Damaged: the file cannot be read on.
        """
        with self._opened() as stream:
            found = outline(stream, keys)
        missing = None if found.whole else BREAKS_OFF
        if found.whole and self.stretch is None and self._goes_on(found.end):
            missing = ANOTHER
        return {key: self._part(place) for key, place in found.parts.items()}, missing

    def _behind(self) -> str:
        """What stands behind the document, in which a parser saw garbage."""
        with self._opened() as stream:
            end = end_of(stream)
        return ANOTHER if end is not None and self._goes_on(end) else MORE

    def _goes_on(self, end: int) -> bool:
        """Whether another document stands behind the first one."""
        with self._opened() as stream:
            stream.seek(self._skip + end)
            while piece := stream.read(HEAD):
                if piece.strip():
                    return piece.lstrip().startswith((b"{", b"["))
        return False

    def objects(self) -> Iterator[Source]:
        """The objects in the single list that it is, each as a document of its own.

        Raises:
            Damaged: the file cannot be read on.
        """
        with self._opened() as stream:
            for place in objects(stream):
                yield self._part(place)

    def _part(self, place: Stretch) -> Source:
        start = self.stretch.start if self.stretch else self._skip
        place = Stretch(start + place.start, place.length)
        return Source(self.name, self._opener, stretch=place)

    def open(self) -> IO[bytes]:
        """The file's bytes, from its start."""
        return self._opener()

    def broken(self, message: str) -> InvalidInput:
        """The error for a file of which nothing can be read."""
        return InvalidInput("transcript", [Problem("", message, file=self.name)])

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        try:
            with self._opener() as stream:
                if self.stretch is not None:
                    yield cast("IO[bytes]", _Part(stream, self.stretch))
                else:
                    stream.read(self._skip)
                    yield stream
        except UNREADABLE as error:
            raise Damaged(f"it cannot be read on ({reason_of(error)})") from None


class _Part:
    """Some bytes of a stream, as a stream of their own."""

    def __init__(self, stream: IO[bytes], place: Stretch) -> None:
        stream.seek(place.start)
        self._stream = stream
        self._left = place.length

    def read(self, size: int = -1) -> bytes:
        data = self._stream.read(self._left if size < 0 else min(size, self._left))
        self._left -= len(data)
        return data


def reason_of(error: BaseException) -> str:
    """Why something cannot be read, in a few words."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _first(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0][:120]
