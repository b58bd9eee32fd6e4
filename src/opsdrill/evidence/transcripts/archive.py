"""The files in a ZIP archive, read one after the other; nothing is ever unpacked to a disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO

from opsdrill.evidence.transcripts.source import UNREADABLE, Damaged, Source, reason_of
from opsdrill.evidence.transcripts.zips import zipfile

FREE = 1024**3
"""Bytes that any archive may unpack to."""
RATIO = 200
"""How many times its own size a larger one may unpack to; logs of text reach about 50."""


class Archive:
    """The files of one archive, opened once.

    Attributes:
        names: the files, in the archive's order; each once.
    """

    def __init__(self, source: Source, opened: zipfile.ZipFile) -> None:
        self.names = tuple(dict.fromkeys(opened.namelist()))
        self._source = source
        self._opened = opened
        self._folders: dict[str, list[str]] = {}
        for name in self.names:
            self._folders.setdefault(name.rpartition("/")[0], []).append(name)

    def folder(self, path: str) -> list[str]:
        """The files right in a folder, by their whole names."""
        return self._folders.get(path, [])

    def member(self, name: str) -> Source:
        """One of its files. It is read anew each time, and not beyond the size that it states.

        Raises:
            Damaged: it cannot be unpacked.
        """
        return Source(f"{self._source.name}:{name}", partial(self._open, name))

    def _open(self, name: str) -> IO[bytes]:
        return self._opened.open(name)


@contextmanager
def unpacked(source: Source) -> Iterator[Archive]:
    """The archive that a source is.

    Raises:
        Damaged: it is none, or one that is made to fill memory or disks.
    """
    with source.open() as stream:
        try:
            opened = zipfile.ZipFile(stream)
        except UNREADABLE as error:
            raise Damaged(f"it cannot be read ({reason_of(error)})") from None
        with opened:
            states = sum(info.file_size for info in opened.infolist())
            packed = stream.seek(0, 2)
            if states > FREE + RATIO * packed:
                raise Damaged(f"it would unpack to {states // max(1, packed)} times its size")
            yield Archive(source, opened)
