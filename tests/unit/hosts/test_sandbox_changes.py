"""Two snapshots -> the files that changed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.hosts.drivers.sandbox.changes import Entry, Files, compare, parse

FILE = Entry("file", 1, 10, 5, 0o100644, 0, 0, False)
FOLDER = Entry("folder", 2, 10, 0, 0o40755, 0, 0, False)
GONE = Entry("gone", 3, 10, 0, 0o20000, 0, 0, True)


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (None, FILE, "added"),
        (None, FOLDER, "added"),
        (None, replace(FILE, lies_over=True), "changed"),
        (None, replace(FOLDER, lies_over=True), None),
        (None, GONE, "removed"),
        (FILE, None, "removed"),
        (FOLDER, None, "removed"),
        (GONE, None, None),
        (GONE, FILE, "added"),
        (FILE, GONE, "removed"),
        (GONE, replace(GONE, inode=9), None),
        (FILE, FILE, None),
        (FILE, replace(FILE, inode=9), "changed"),
        (FILE, replace(FILE, changed_ns=11), "changed"),
        (FILE, replace(FILE, size=6), "changed"),
        (FILE, replace(FILE, mode=0o100600), "changed"),
        (FOLDER, replace(FOLDER, changed_ns=11), None),
        (FOLDER, replace(FOLDER, mode=0o40700), "changed"),
        (FOLDER, replace(FOLDER, user=33), "changed"),
        (FOLDER, FILE, "changed"),
    ],
)
def test_each_pair(before: Entry | None, after: Entry | None, change: str | None) -> None:
    """A file counts for any change; a folder for coming, going, mode and owner."""
    old: Files = {} if before is None else {"/x": before}
    new: Files = {} if after is None else {"/x": after}
    assert [found.change for found in compare(old, new)] == ([change] if change else [])


def test_sorted_with_sizes() -> None:
    """Sorted by path; the size of a file that is there, none otherwise."""
    found = compare({"/c": FILE}, {"/b": FILE, "/a": FOLDER})
    assert [(change.path, change.size) for change in found] == [
        ("/a", None),
        ("/b", 5),
        ("/c", None),
    ]


ENTRIES = st.builds(
    Entry,
    st.sampled_from(["file", "folder", "gone"]),
    *[st.integers(0, 3)] * 6,
    st.booleans(),
)
SNAPSHOTS = st.dictionaries(st.text(max_size=5), ENTRIES, max_size=6)


@given(SNAPSHOTS)
def test_nothing_changed(files: dict[str, Entry]) -> None:
    """The same snapshot twice: no changes."""
    assert compare(files, files) == ()


@given(SNAPSHOTS)
def test_parse_reads_what_was_written(files: dict[str, Entry]) -> None:
    """A snapshot is read back entry by entry, whatever the names are."""
    lines = [
        json.dumps([path, *[getattr(entry, name) for name in Entry.__slots__]])
        for path, entry in files.items()
    ]
    assert parse("\n".join(lines).encode()) == files
