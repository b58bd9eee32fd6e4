"""A scenario's folder as a ZIP archive: unpacked with every name and size checked, and packed.

An archive holds one scenario: at its root, or in one folder at its root. The files beside the
scenario's own are kept with it.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from opsdrill.app.editing import Shown
from opsdrill.app.scenario_files import BYTES_LIMIT, FILES_LIMIT, check_source
from opsdrill.app.uploads import check_entries
from opsdrill.errors import InvalidInput, OpsDrillError, Problem, StoreError
from opsdrill.evidence.transcripts.source import UNREADABLE, reason_of
from opsdrill.evidence.transcripts.zips import zipfile
from opsdrill.scenarios.document import decoded
from opsdrill.scenarios.files import FILE_LIMIT, support_files
from opsdrill.scenarios.load import (
    SCENARIO_FILES,
    WRITTEN_LIMIT,
    LoadedScenario,
    is_json,
    load_text,
    scenario_file,
)
from opsdrill.scenarios.text import as_json, as_yaml

_ENTRIES = 10 * FILES_LIMIT
_PIECE = 64 * 1024
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first moment that an archive can tell
_IGNORED = ("__MACOSX",)
"""What programs that pack folders add of their own."""


def is_archive(path: Path) -> bool:
    """Whether a file begins as ZIP archives do."""
    with path.open("rb") as stream:
        return stream.read(4) in (b"PK\x03\x04", b"PK\x05\x06")


def sent(path: Path, folder: Path) -> LoadedScenario:
    """The scenario in a file that somebody sent: an archive, or a text without any files.

    Args:
        path: the file.
        folder: where an archive is unpacked.

    Raises:
        InvalidInput: as `unpacked`, or the text is broken.
    """
    if is_archive(path):
        return unpacked(path, folder)
    with path.open("rb") as stream:
        content = stream.read(WRITTEN_LIMIT + 1)
    if len(content) > WRITTEN_LIMIT:
        raise InvalidInput(
            "the scenario is refused",
            [Problem("", f"is larger than {WRITTEN_LIMIT // 1024 // 1024} MiB")],
        )
    return load_text(decoded(content, None), {})


def unpacked(archive: Path, folder: Path) -> LoadedScenario:
    """The scenario in an archive, with all its files; nothing is written outside `folder`.

    Args:
        archive: the ZIP archive.
        folder: where it is unpacked, which is not there yet.

    Raises:
        InvalidInput: the archive is damaged, made to do harm, or holds no scenario or a broken one.
    """
    check_entries(archive, _ENTRIES)
    try:
        with zipfile.ZipFile(archive) as opened:
            entries = _entries(opened)
            top = _top(entries)
            names = [name.removeprefix(top) for name in entries]
            for name, info in entries.items():
                _unpack(opened, info, folder, name.removeprefix(top))
    except OpsDrillError:
        raise
    except OSError as error:
        if isinstance(error, (FileExistsError, NotADirectoryError, IsADirectoryError)):
            raise _refused("names a file and a folder alike") from None
        raise StoreError(f"the archive cannot be unpacked: {reason_of(error)}") from None
    except UNREADABLE as error:
        raise _refused(f"cannot be read ({reason_of(error)})") from None
    return _loaded(folder, [name for name in names if name not in SCENARIO_FILES])


def packed(shown: Shown) -> Iterator[bytes]:
    """A scenario with its files as a ZIP archive, in pieces; the same scenario gives the same.

    Raises:
        StoreError: it cannot be packed, or a file of it is lost.
        InvalidInput: a file of it was changed meanwhile.
    """
    stream = cast("IO[bytes]", tempfile.SpooledTemporaryFile(4 * 1024 * 1024))  # noqa: SIM115
    try:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            _pack(archive, f"{shown.key}/scenario.yaml", as_yaml(shown.loaded.scenario).encode())
            for source, file in sorted(shown.loaded.files.items()):
                _pack(archive, f"{shown.key}/{source}", file.read())
        stream.seek(0)
    except BaseException:
        stream.close()
        raise
    return _pieces(stream)


def written(shown: Shown, *, json: bool) -> str:
    """A scenario without its files as JSON or YAML; what is said by nobody is left out."""
    scenario = shown.loaded.scenario
    return as_json(scenario, defaults=False) if json else as_yaml(scenario)


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    with stream:
        while piece := stream.read(_PIECE):
            yield piece


def _pack(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.external_attr = 0o100644 << 16
    archive.writestr(info, content, zipfile.ZIP_DEFLATED)


def _entries(opened: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    """The files of an archive, each checked. Raises InvalidInput."""
    found: dict[str, zipfile.ZipInfo] = {}
    for info in opened.infolist():
        # What stands in front of a NUL character is all that the library tells of a name.
        name = info.orig_filename
        if name.split("/")[0] in _IGNORED:
            continue
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise _refused(f"{name[:100]!r} is a link or no regular file")
        if info.is_dir():
            continue
        if info.flag_bits & 1:
            raise _refused(f"{name[:100]!r} is encrypted")
        if name in found:
            raise _refused(f"{name[:100]!r} is in it twice")
        if info.file_size > FILE_LIMIT:
            raise _refused(f"{name[:100]!r} is larger than {FILE_LIMIT // 1024 // 1024} MiB")
        found[name] = info
    if len(found) > FILES_LIMIT + 1:
        raise _refused(f"holds more than {FILES_LIMIT} files beside the scenario")
    if sum(info.file_size for info in found.values()) > BYTES_LIMIT:
        raise _refused(f"unpacks to more than {BYTES_LIMIT // 1024 // 1024} MiB")
    return found


def _top(entries: dict[str, zipfile.ZipInfo]) -> str:
    """The folder that all is in: empty, or one name and a slash. Raises InvalidInput."""
    places = [
        folder
        for name in entries
        for folder, _, last in [name.rpartition("/")]
        if last in SCENARIO_FILES and "/" not in folder
    ]
    places = [""] * places.count("") or places
    if not places:
        raise _refused(f"holds no scenario; a {SCENARIO_FILES[0]} must be at its root")
    if len(places) > 1:
        raise _refused("holds more than one scenario; send one at a time")
    top = f"{places[0]}/" if places[0] else ""
    beside = next((name for name in entries if not name.startswith(top)), None)
    if beside is not None:
        raise _refused(f"{beside[:100]!r} is beside the scenario's folder")
    return top


def _unpack(opened: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Path, name: str) -> None:
    if name not in SCENARIO_FILES:
        check_source(name)
    path = folder / name
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with opened.open(info) as source, os.fdopen(os.open(path, flags, 0o600), "wb") as target:
        left = info.file_size
        while piece := source.read(_PIECE):
            left -= len(piece)
            if left < 0:
                raise _refused(f"{name[:100]!r} is larger than the archive says")
            target.write(piece)


def _loaded(folder: Path, names: list[str]) -> LoadedScenario:
    own = scenario_file(folder)
    files, wrong = support_files(folder, enumerate(names))
    if wrong:
        raise _refused(wrong[0][1])
    text = decoded(own.read_bytes(), None)
    return load_text(text, files, json=is_json(own, text))


def _refused(why: str) -> InvalidInput:
    return InvalidInput("the archive is refused", [Problem("", why)])
