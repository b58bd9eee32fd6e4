"""Writing a file anew in its place: whole or not at all, and never over what changed meanwhile."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from opsdrill.errors import UsageError


def rewrite(path: Path, before: bytes, after: bytes) -> None:
    """Replace the content of a file; its mode stays, and a link to it stays a link.

    Args:
        path: the file.
        before: what it must still hold.
        after: what it is to hold.

    Raises:
        UsageError: it holds something else by now, or cannot be written. Then it is as it was.
    """
    try:
        real = path.resolve(strict=True)
        about = real.stat()
        if not stat.S_ISREG(about.st_mode):
            raise UsageError(f"{path} is no regular file, so it is not rewritten")
        descriptor, name = tempfile.mkstemp(prefix=f".{real.name}.", dir=real.parent)
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(after)
            stream.flush()
            os.fchmod(stream.fileno(), stat.S_IMODE(about.st_mode))
            with contextlib.suppress(PermissionError):  # not the owner: it becomes ours
                os.fchown(stream.fileno(), about.st_uid, about.st_gid)
            os.fsync(stream.fileno())
        if real.read_bytes() != before:
            raise UsageError(
                f"{path} was changed by somebody else meanwhile, so it is left as it is",
                hint="run it again",
            )
        Path(name).replace(real)
    except OSError as error:
        raise _unwritable(path, error) from None
    finally:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot rewrite {path}: {error.strerror or error}")
