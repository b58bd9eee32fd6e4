"""Bodies by content, in the folder `files/`: `files/ab/cdef...` is the one with SHA-256 abcdef...

A file appears whole or not at all: it is written under another name, forced to the disk, renamed.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import time
from pathlib import Path

from opsdrill.errors import StoreError

_DIGEST = re.compile(r"[0-9a-f]{64}")
_ABANDONED_SECONDS = 24 * 3600


def digest_of(content: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(content).hexdigest()


def is_digest(text: str) -> bool:
    """Whether this is a SHA-256 in hex."""
    return _DIGEST.fullmatch(text) is not None


class Files:
    """The folder of files; safe to use from several threads and processes.

    Args:
        folder: made when it is first needed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, content: bytes) -> str:
        """Keep a body; returns its SHA-256 in hex.

        Raises:
            StoreError: it could not be written.
        """
        digest = digest_of(content)
        path = self._path(digest)
        try:
            if not path.exists():
                self._write(path, content)
        except OSError as error:
            raise _unusable("write", path, error) from error
        return digest

    def read(self, digest: str) -> bytes:
        """The body with this digest, checked against it.

        Raises:
            KeyError: there is none, or this is no SHA-256 in hex.
            StoreError: it cannot be read, or is damaged.
        """
        path = self._path(digest)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise KeyError(digest) from None
        except OSError as error:
            raise _unusable("read", path, error) from error
        if digest_of(content) != digest:
            raise StoreError(
                f"the store is damaged: the file {path} is not what was kept there",
                hint="restore it from a backup",
            )
        return content

    def remove(self, digest: str) -> None:
        """Forget a body; no error when it is not there.

        Raises:
            StoreError: it could not be removed.
        """
        path = self._path(digest)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise _unusable("remove", path, error) from error

    def sweep(self) -> None:
        """Remove what writers that were killed left half written, a day later."""
        try:
            for left in self._incoming.iterdir():
                if time.time() - left.stat().st_mtime > _ABANDONED_SECONDS:
                    left.unlink(missing_ok=True)
        except OSError:
            return  # only housekeeping: nobody waits for it

    @property
    def _incoming(self) -> Path:
        return self.folder / "incoming"

    def _path(self, digest: str) -> Path:
        if not is_digest(digest):
            raise KeyError(digest)
        return self.folder / digest[:2] / digest[2:]

    def _write(self, path: Path, content: bytes) -> None:
        self._incoming.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self._incoming)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if not path.parent.exists():
                path.parent.mkdir(mode=0o700, exist_ok=True)
                _force(self.folder)
            Path(name).rename(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        _force(path.parent)


def _force(folder: Path) -> None:
    # A rename is on the disk only when its folder is.
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unusable(verb: str, path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"cannot {verb} the file {path} of the store: {error.strerror or error}",
        hint="is the disk full, or the folder not yours?",
    )
