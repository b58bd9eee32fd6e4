"""The folder of files: by content, whole or not at all, never a path."""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from opsdrill.errors import StoreError
from opsdrill.store.files import Files


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path / "files")


def test_a_body_lies_under_its_digest(files: Files) -> None:
    digest = files.put(b"body")
    assert digest == hashlib.sha256(b"body").hexdigest()
    path = files.folder / digest[:2] / digest[2:]
    assert path.read_bytes() == b"body"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list((files.folder / "incoming").iterdir()) == []


def test_the_same_body_is_written_once(files: Files) -> None:
    digest = files.put(b"body")
    path = files.folder / digest[:2] / digest[2:]
    before = path.stat()
    assert files.put(b"body") == digest
    after = path.stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


@pytest.mark.parametrize(
    "digest",
    [
        "../../etc/passwd",
        "/" * 64,
        "ab/../" + "0" * 58,
        "A" * 64,
        "0" * 64 + "\n",
        "٠" * 64,
        "\0" * 64,
    ],
    ids=ascii,
)
def test_what_is_no_digest_never_becomes_a_path(files: Files, digest: str) -> None:
    with pytest.raises(KeyError):
        files.read(digest)
    with pytest.raises(KeyError):
        files.remove(digest)


def test_a_damaged_file_is_told(files: Files) -> None:
    """Evidence that is not what was sealed is no evidence."""
    digest = files.put(b"body")
    (files.folder / digest[:2] / digest[2:]).write_bytes(b"b0dy")
    with pytest.raises(StoreError, match="damaged"):
        files.read(digest)


def test_removing_twice_is_no_error(files: Files) -> None:
    digest = files.put(b"body")
    files.remove(digest)
    files.remove(digest)
    with pytest.raises(KeyError):
        files.read(digest)


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "files").write_text("in the way")
    with pytest.raises(StoreError, match=r"cannot write the file .*files/"):
        Files(tmp_path / "files").put(b"body")


def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    """The limit on a file's size stands in for a full disk: the write really fails half way."""
    code = (
        "import sys; from pathlib import Path\n"
        "from opsdrill.errors import StoreError; from opsdrill.store.files import Files\n"
        "try: Files(Path(sys.argv[1])).put(b'x' * 100_000)\n"
        "except StoreError as error: print(error)\n"
        "else: raise SystemExit('it was written')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "files")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)),
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.stdout.startswith("cannot write the file ")
    assert [path for path in (tmp_path / "files").rglob("*") if path.is_file()] == []


def test_what_killed_writers_left_is_swept_a_day_later(files: Files) -> None:
    files.put(b"body")
    old, new = files.folder / "incoming" / "old", files.folder / "incoming" / "new"
    old.write_bytes(b"half")
    new.write_bytes(b"half")
    os.utime(old, (0, 0))
    files.sweep()
    assert (old.exists(), new.exists()) == (False, True)
