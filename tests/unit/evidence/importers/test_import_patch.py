"""Patches: which files they change, and how."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from opsdrill.evidence.transcripts.patch import files_of


def test_each_file_has_its_kind_and_its_part() -> None:
    """New files are written, others updated; a moved one is updated here and written there."""
    patch = (
        "*** Begin Patch\n*** Add File: /n.txt\n+new\n*** Update File: /a b.txt\n"
        "*** Move to: /c.txt\n@@\n-x\n+y\n*** Delete File: /d.txt\n*** End Patch\n"
    )
    assert files_of(patch) == [
        ("write_file", {"path": "/n.txt", "change": "add file", "patch": "+new"}),
        ("update_file", {"path": "/a b.txt", "change": "update file", "patch": "@@\n-x\n+y"}),
        ("write_file", {"path": "/c.txt", "change": "move to", "patch": "@@\n-x\n+y"}),
        ("update_file", {"path": "/d.txt", "change": "delete file", "patch": ""}),
    ]


def test_what_a_new_file_holds_is_no_head() -> None:
    """A line of a file that looks like a head has a plus before it."""
    patch = "*** Begin Patch\n*** Add File: /n\n+*** Delete File: /etc/passwd\n*** End Patch"
    assert [arguments["path"] for _, arguments in files_of(patch)] == ["/n"]


def test_line_ends_of_windows() -> None:
    """A path does not end with a carriage return."""
    assert files_of("*** Begin Patch\r\n*** Add File: /n\r\n+x\r\n")[0][1]["path"] == "/n"


@given(st.text())
def test_any_text(text: str) -> None:
    """A text that is no patch changes no file."""
    assert "*** " in text or files_of(text) == []
