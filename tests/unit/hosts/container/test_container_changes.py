"""What changed on a container: the engine's list and the host's description of its files."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opsdrill.hosts.command import BOOT, ask_line
from opsdrill.hosts.drivers.container.changes import (
    Entry,
    Files,
    compare,
    parse_diff,
    parse_entries,
    stat_text,
)

FILE, FOLDER = 0o100644, 0o040755


def entry(mode: int = FILE, size: int = 1, owner: str = "0:0", rest: str = "a") -> Entry:
    return Entry(mode, size, owner, rest)


def changes(before: Files, after: Files) -> list[tuple[str, str, int | None]]:
    return [(change.path, change.change, change.size) for change in compare(before, after)]


def files(listed: str, **entries: Entry) -> Files:
    return Files(frozenset(listed.split()), entries)


CASES = {
    "nothing": (files("a", a=entry()), files("a", a=entry()), []),
    "added": (files(""), files("a", a=entry(size=7)), [("a", "added", 7)]),
    "removed": (files("", a=entry()), files("a"), [("a", "removed", None)]),
    "changed since setup": (
        files("a", a=entry()),
        files("a", a=entry(rest="b", size=2)),
        [("a", "changed", 2)],
    ),
    "listed for the first time, though the host says it is the same": (
        files("", a=entry()),
        files("a", a=entry()),
        [("a", "changed", 1)],
    ),
    "not listed, though the host says otherwise": (
        files("", a=entry()),
        files("", a=entry(rest="b")),
        [],
    ),
    "a folder in which something came": (
        files("", a=entry(FOLDER)),
        files("a", a=entry(FOLDER, rest="b")),
        [],
    ),
    "a folder with another mode": (
        files("", a=entry(FOLDER)),
        files("a", a=entry(0o040700)),
        [("a", "changed", None)],
    ),
    "a folder that became a file": (
        files("", a=entry(FOLDER)),
        files("a", a=entry()),
        [("a", "changed", 1)],
    ),
    "gone at both times": (files("a"), files("a"), []),
    "made again as in the image": (
        files("a", a=entry()),
        files("", a=entry(rest="b")),
        [("a", "changed", 1)],
    ),
}


@pytest.mark.parametrize("case", sorted(CASES))
def test_compare(case: str) -> None:
    """Files changed since `mark`: neither the image's nor setup's, and folders only for their own
    sake."""
    before, after, expected = CASES[case]
    assert changes(before, after) == expected


def test_diff_of_podman() -> None:
    """podman lists paths exactly, whatever is in them; a kind may be missing."""
    answer = json.dumps({"added": ["/a\nC /b"], "changed": None})
    assert parse_diff("podman", answer) == {"/a\nC /b"}


def test_diff_of_docker() -> None:
    """docker lists lines; a line break in a name does not lose the rest."""
    assert parse_diff("docker", "C /etc\nA /etc/a b\nD /x\nA /srv/two\nlines\n") == {
        "/etc",
        "/etc/a b",
        "/x",
        "/srv/two\nlines",
    }


@pytest.mark.parametrize("answer", ["", "[]", "{", "null"])
def test_diff_that_is_none(answer: str) -> None:
    """What is no list is said to be none, and not an empty one."""
    with pytest.raises(ValueError, match=r".*"):
        parse_diff("podman", answer)


@given(st.text())
@settings(deadline=None)
def test_any_description_is_read(printed: str) -> None:
    """A host may say anything about its files."""
    parse_entries(printed, "between")
    parse_entries(f"between{printed}between", "between")


@pytest.mark.parametrize("shell", [("bash",), ("busybox", "sh")])
def test_description_by_a_shell(shell: tuple[str, ...], tmp_path: Path) -> None:
    """find(1) and stat(1) of GNU and of busybox describe files of any name."""
    names = ("plain", "with space", "two\nlines", "a|b", "$(x)", "-n")
    for name in names:
        (tmp_path / name).write_text("four")
    text = stat_text("between").replace("find / ", f"find {tmp_path} ")
    done = subprocess.run(
        [*shell, "-c", BOOT], input=ask_line("n0", text).encode(), check=True, capture_output=True
    )
    printed = done.stdout.decode().removeprefix("n0\n").removesuffix("n0\n")
    found = parse_entries(printed, "between")
    assert found[str(tmp_path)].folder
    assert {path: seen.size for path, seen in found.items() if not seen.folder} == {
        str(tmp_path / name): 4 for name in names
    }
