"""Files that callers send: written to the data folder piece by piece, looked at, and removed.

    <home>/uploads/RANDOM/upload

The name that a caller gives a file is shown and kept as a label; it is never a path.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from opsdrill.app.wiring import Place
from opsdrill.errors import InvalidInput, Problem, StoreError, UsageError

FOLDER = "uploads"
ENTRIES_LIMIT = 100_000
"""Files that an archive may hold."""
_ABANDONED_SECONDS = 24 * 3600
_PIECE = 1024 * 1024
_HEADS = (b"PK\x01\x02", b"PK\x03\x04")
"""What every entry of an archive begins with, in its directory and before its content."""


class Upload:
    """A file that is coming in; whoever begins it discards it.

    Attributes:
        folder: its own, for its owner only; others may be unpacked beside it.
        path: where it lies.
    """

    def __init__(self, place: Place) -> None:
        root = place.home / FOLDER
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            _sweep(root)
            self.folder = Path(tempfile.mkdtemp(dir=root))
            self.path = self.folder / "upload"
            self._file = self.path.open("xb")
        except OSError as error:
            raise _unusable(error) from None

    def write(self, piece: bytes) -> None:
        """Keep the next piece. Raises StoreError."""
        try:
            self._file.write(piece)
        except OSError as error:
            raise _unusable(error) from None

    def end(self) -> None:
        """All of it has come. Raises StoreError."""
        try:
            self._file.close()
        except OSError as error:
            raise _unusable(error) from None

    def discard(self) -> None:
        """Remove it, and all that was unpacked."""
        with contextlib.suppress(OSError):
            self._file.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def told_as(upload: Upload, name: str) -> Iterator[None]:
    """Errors about an upload name it as its sender does, and say nothing of where it lies."""
    try:
        yield
    except InvalidInput as error:
        problems = [
            replace(
                problem.at(None, problem.line, problem.column),
                message=told(problem.message, upload, name),
            )
            for problem in error.problems
        ]
        refused = InvalidInput(f"{name} is refused", problems, hint=error.hint)
        raise refused from None
    except UsageError as error:
        error.message = told(error.message, upload, name)
        error.args = (error.message,)
        raise


def told(text: str, upload: Upload, name: str) -> str:
    """A sentence with the upload's own name in place of where it lies."""
    return text.replace(str(upload.path), name).replace(f"{upload.folder}/", "")


def check_entries(path: Path, most: int = ENTRIES_LIMIT) -> None:
    """Refuse an archive of so many files that their names alone would fill the memory.

    What is counted is what the entries begin with, so it holds whatever the archive's end claims.

    Raises:
        InvalidInput: it holds more than `most`.
    """
    counts = dict.fromkeys(_HEADS, 0)
    with path.open("rb") as stream:
        if stream.read(2) != b"PK":
            return
        left = b"PK"
        while piece := stream.read(_PIECE):
            piece = left + piece
            for head in _HEADS:
                counts[head] += piece.count(head)
            if max(counts.values()) > most:
                raise InvalidInput(
                    "the archive is refused", [Problem("", f"holds more than {most} files")]
                )
            left = piece[-3:]


def _sweep(root: Path) -> None:
    """Remove what a process that was killed left behind, a day later."""
    for left in root.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _ABANDONED_SECONDS:
                shutil.rmtree(left, ignore_errors=True)


def _unusable(error: OSError) -> StoreError:
    return StoreError(
        f"the upload cannot be written: {error.strerror or error}", hint="is the disk full?"
    )
