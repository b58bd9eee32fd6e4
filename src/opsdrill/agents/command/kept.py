"""What a program leaves behind, kept with the run: its output and its files, masked and bounded."""

from __future__ import annotations

import codecs
import os
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO

from opsdrill.agents.isolation.keeping import LEFT_OUT
from opsdrill.evidence.mask import Mask
from opsdrill.evidence.mask_stream import MaskStream

HEAD = 8 << 20
"""Characters of an output stream that are kept from its beginning."""
TAIL = 1 << 20
"""Bytes that are kept from its end."""
_TRANSCRIPTS = "transcripts"


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
    """

    def __init__(self, folder: Path, mask: Mask) -> None:
        folder.mkdir(parents=True, mode=0o700, exist_ok=True)
        self.folder = folder
        self.transcripts: list[Path] = []
        self.left_out = 0
        self._mask = mask
        self.out = KeptStream(folder / "stdout.txt", mask)
        self.err = KeptStream(folder / "stderr.txt", mask)

    def take(self, stream: IO[bytes]) -> None:
        """Keep the files of an archive, as `send_kept` writes one; their names are anybody's."""
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for entry in archive:
                first, *rest = PurePosixPath(self._mask.text(entry.name)).parts
                if first == LEFT_OUT:
                    self.left_out += int(rest[0])
                    continue
                content = archive.extractfile(entry)
                path = self._place(first, rest)
                if content is None or path is None:
                    self.left_out += 1
                    continue
                with _created(path) as file:
                    file.write(self._mask.data(content.read()))
                if first == _TRANSCRIPTS:
                    self.transcripts.append(path)

    def close(self) -> None:
        """Nothing more comes. Repeatable."""
        self.out.close()
        self.err.close()

    def _place(self, first: str, rest: list[str]) -> Path | None:
        """Where a file goes; None: nowhere."""
        if first not in ("work", _TRANSCRIPTS) or not rest or ".." in rest:
            return None
        path = self.folder.joinpath(first, *rest)
        try:
            path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        except OSError:
            return None
        return None if path.exists() else path


def _created(path: Path) -> IO[bytes]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600), "wb")
