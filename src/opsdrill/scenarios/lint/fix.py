"""Mending a scenario's file where nothing that was meant can be lost by it.

Only the characters that must change do: comments, order and layout stay. What came out is read
again, and is kept only if it means what it meant before but for the patterns that were mended.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from opsdrill.errors import InvalidInput, UsageError
from opsdrill.model.problem import dotted
from opsdrill.scenarios.document import Document, Location, decoded
from opsdrill.scenarios.lint.check import Finding
from opsdrill.scenarios.lint.linter import findings
from opsdrill.scenarios.lint.replacement import Replacement, replaced
from opsdrill.scenarios.lint.rewrite import rewrite
from opsdrill.scenarios.lint.token import changed
from opsdrill.scenarios.load import is_json, load_document, parse_text

_ROUNDS = 10
_ONE_BY_ONE = 50
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Fix:
    """One pattern that was mended: by which check, where, and what it was and is now."""

    code: str
    file: str
    line: int | None
    column: int | None
    path: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class _Edit:
    code: str
    location: Location
    before: str
    after: str
    change: Replacement
    """Of the file's text."""


def mend(path: Path) -> list[Fix]:
    """Mend a scenario's file in its place, whole or not at all; gives what was mended.

    Raises:
        UsageError: it cannot be read or written, or somebody else changed it meanwhile.
    """
    try:
        before = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot open {path}: {error.strerror or error}") from None
    after, fixes = fixed(path, before)
    if fixes:
        rewrite(path, before, after)
    return fixes


def fixed(path: Path, content: bytes) -> tuple[bytes, list[Fix]]:
    """The content of a scenario's file after all that can safely be mended, and what was.

    Args:
        path: the file, by which its format and its support files are found; it is not read.
        content: what stands in it. One that is refused comes back as it is.
    """
    done: list[Fix] = []
    try:
        text = decoded(content, str(path))
        json = is_json(path, text)
        for _ in range(_ROUNDS):  # what one check mends may hide what another would
            document = parse_text(text, str(path), json=json)
            edits = list(_edits(path, text, document))
            text, kept = _apply(text, document, edits, json=json)
            done += (_told(path, document, edit) for edit in kept)
            if not kept:
                break
    except InvalidInput:
        return content, []
    mark = _MARK if content.startswith(_MARK) else b""
    return (mark + text.encode() if done else content), done


def _edits(path: Path, text: str, document: Document) -> Iterator[_Edit]:
    """At most one edit for each pattern."""
    seen: set[Location] = set()
    for code, finding in findings(load_document(path, document).scenario):
        if finding.fix and finding.location not in seen:
            edit = _edit(text, document, code, finding)
            if edit is not None:
                seen.add(finding.location)
                yield edit


def _edit(text: str, document: Document, code: str, finding: Finding) -> _Edit | None:
    span, value = document.span(finding.location), _at(document.data, finding.location)
    if span is None or not isinstance(value, str):
        return None
    token = changed(text[slice(*span)], value, finding.fix)
    if token is None:
        return None
    after = replaced(value, finding.fix)
    return _Edit(code, finding.location, value, after, Replacement(*span, token))


def _apply(
    text: str, document: Document, edits: list[_Edit], *, json: bool
) -> tuple[str, list[_Edit]]:
    """The text after the edits that do what they should and nothing else, and those edits."""
    new = _tried(text, document, edits, json=json)
    if new is not None:
        return new, edits
    sound = [
        edit
        for edit in edits[:_ONE_BY_ONE]
        if _tried(text, document, [edit], json=json) is not None
    ]
    new = _tried(text, document, sound, json=json)
    return (new, sound) if new is not None else (text, [])


def _tried(text: str, document: Document, edits: list[_Edit], *, json: bool) -> str | None:
    new = replaced(text, (edit.change for edit in edits))
    wanted = copy.deepcopy(document.data)
    for edit in edits:
        holder = _at(wanted, edit.location[:-1])
        if isinstance(holder, dict):
            holder[edit.location[-1]] = edit.after
    try:
        return new if parse_text(new, None, json=json).data == wanted else None
    except InvalidInput:
        return None


def _at(data: object, location: Location) -> object:
    for part in location:
        if isinstance(data, dict):
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int):
            data = data[part]
    return data


def _told(path: Path, document: Document, edit: _Edit) -> Fix:
    place = document.place(edit.location)
    line, column = (place.line, place.column) if place else (None, None)
    where = dotted(edit.location)
    return Fix(edit.code, str(path), line, column, where, edit.before, edit.after)
