"""What a program leaves behind, kept with the run: its output and its files, masked and bounded."""

from __future__ import annotations

import codecs
import errno
import os
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO

from opsdrill.agents.isolation.keeping import LEFT_OUT, REPORTS_LEFT_OUT
from opsdrill.evidence.mask import Mask
from opsdrill.evidence.mask_stream import MaskStream

HEAD = 8 << 20
"""Characters of an output stream that are kept from its beginning."""
TAIL = 1 << 20
"""Bytes that are kept from its end."""
_TRANSCRIPTS = "transcripts"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EMFILE, errno.ENFILE)
"""Errors that say nothing of a name."""


class KeptStream:
    """One output stream in a file: its beginning and its end, with what was left out between.

    Args:
        path: the file; made for this user alone.
        mask: what is masked before anything is written.
    """

    def __init__(self, path: Path, mask: Mask) -> None:
        self._mask = mask
        self._masked = MaskStream(mask)
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._file = _created(path)
        self._taken = self._passed = 0
        self._tail = bytearray()

    def take(self, part: bytes) -> None:
        """Keep a part, as far as there is room."""
        if self._taken < HEAD:
            room = HEAD - self._taken
            self._write(self._masked.feed(self._decode(part[:room])))
            self._taken += len(part[:room])
            part = part[room:]
        self._passed += len(part)
        self._tail += part
        del self._tail[:-TAIL]

    def close(self) -> None:
        """There is no more. Repeatable."""
        if self._file.closed:
            return
        self._write(self._masked.feed(self._decode(b"", final=True)))
        self._write(self._masked.end(cut=self._passed > 0))
        left_out = self._passed - len(self._tail)
        if left_out:
            self._write(f"\n[{left_out} bytes left out]\n")
        text = bytes(self._tail).decode(errors="replace")
        self._write(self._mask.text(text, resumed=True))
        self._file.close()

    def _write(self, text: str) -> None:
        self._file.write(text.encode("utf-8", "replace"))


class KeptFiles:
    """The folder of what a program left.

    Args:
        folder: where; made for this user alone.
        mask: what is masked before anything is written.

    Attributes:
        transcripts: what may be its own report, the newest first.
        left_out: how many files were not kept.
        unread: why not all that may be its own report is among the transcripts; None: all is.
    """

    def __init__(self, folder: Path, mask: Mask) -> None:
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        self.folder = folder
        self.transcripts: list[Path] = []
        self.left_out = 0
        self.unread: str | None = None
        self._mask = mask
        self.out = KeptStream(folder / "stdout.txt", mask)
        self.err = KeptStream(folder / "stderr.txt", mask)

    def take(self, stream: IO[bytes]) -> None:
        """Keep the files of an archive, as `send_kept` writes one; their names are anybody's."""
        try:
            with tarfile.open(fileobj=stream, mode="r|") as archive:
                for entry in archive:
                    self._take(archive, entry)
        except tarfile.TarError:
            # Who wrote it was ended in the middle.
            self.left_out += 1
            self.unread = self.unread or "not all files of the agent could be kept"

    def _take(self, archive: tarfile.TarFile, entry: tarfile.TarInfo) -> None:
        first, *rest = PurePosixPath(self._mask.text(entry.name)).parts
        if first == LEFT_OUT:
            self.left_out += int(rest[0])
        elif first == REPORTS_LEFT_OUT:
            self.unread = (
                f"{rest[0]} transcripts of the agent were not kept: too many, or too large"
            )
        else:
            content = archive.extractfile(entry)
            file = None if content is None else self._made(first, rest)
            if content is None or file is None:
                self.left_out += 1
                if first == _TRANSCRIPTS:
                    self.unread = "a transcript of the agent has a name that cannot be kept"
                return
            with file:
                file.write(self._mask.data(content.read()))
            if first == _TRANSCRIPTS:
                self.transcripts.append(Path(file.name))

    def close(self) -> None:
        """Nothing more comes. Repeatable."""
        self.out.close()
        self.err.close()

    def _made(self, first: str, rest: list[str]) -> IO[bytes] | None:
        """A new file for what a program calls so; None: there can be none."""
        if first not in ("work", _TRANSCRIPTS) or not rest or ".." in rest:
            return None
        path = self.folder.joinpath(first, *rest)
        try:
            path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
            return _created(path, os.O_EXCL)
        except OSError as error:
            if error.errno in _FULL:
                raise
            return None


def _created(path: Path, more: int = 0) -> IO[bytes]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC | more
    fd = os.open(path, flags, 0o600)
    return open(path, "wb", opener=lambda *_: fd)
