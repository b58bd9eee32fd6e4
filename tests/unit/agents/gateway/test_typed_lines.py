"""Typed bytes become lines as a terminal makes them."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.agents.gateway.told_lines import (
    Entered,
    Markers,
    Prompt,
    changes_what_is_told,
    unquoted,
)
from opsdrill.agents.gateway.typed_lines import LINE, Line, TypedLines

WORD = "0123abcd"
LEAD = b"\x1b]7770;" + WORD.encode() + b";"


def typed(data: bytes, *, terminal: bool = True) -> list[tuple[str, bool]]:
    lines = TypedLines(terminal=terminal)
    return [(line.text, line.certain) for line in lines.feed(data)]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"ls\r", [("ls", True)]),
        (b"ls\n", [("ls", True)]),
        (b"\r \r", []),
        (b"lss\x7f\r", [("ls", True)]),
        ("é\x7fa\r".encode(), [("a", True)]),
        (b"\x7f\x7fa\x08b\r", [("b", True)]),
        (b"rm -rf /\x03ls\r", [("ls", True)]),
        (b"rm -rf /\x15ls\r", [("ls", True)]),
        (b"ls word\x17x\r", [("ls x", True)]),
        (b"ls /a/b\x17x\r", [("ls x", False)]),
        (b"ls\x1b[Dx\r", [("lsx", False)]),
        (b"\x1bOAx\ry\r", [("x", False), ("y", True)]),
        (b"\x1b[A\r", [("", False)]),
        (b"l\t\r", [("l", False)]),
        (b"\x04ls\r", [("ls", True)]),
        (b"\x1b[200~a\rb\x1b[201~\r", [("a\nb", False)]),
        (b"\x1b[200~a\x03b\r", [("b", True)]),
        (b"!!\r", [("!!", False)]),
        (b"^a^b\r", [("^a^b", False)]),
        (b"echo 'a\rb'\rc\r", [("echo 'a", False), ("b'", False), ("c", True)]),
        (b"echo a \\\rb\rc\r", [("echo a \\", False), ("b", False), ("c", True)]),
        (b"a |\rb\r", [("a |", False), ("b", False)]),
        (b"cat <<X\r", [("cat <<X", False)]),
        (b"# it's\r", [("# it's", True)]),
        (b"ls # it's\r", [("ls # it's", True)]),
        (b"ls#it's\r", [("ls#it's", False)]),
        (b"a \\' \"'\" '\"'\r", [("a \\' \"'\" '\"'", True)]),
        (b"a\\\\\r", [("a\\\\", False)]),
    ],
)
def test_keys(data: bytes, expected: list[tuple[str, bool]]) -> None:
    """[W3.2] Backspace, ^U, ^W, ^C are known; arrows, tab, paste, history make a line uncertain."""
    assert typed(data) == expected


def test_no_text_takes_long() -> None:
    """An open quote with thousands of lines behind it, and of comments and quotes in one."""
    for data in (b"'" + b"\n" * 60_000, (b"# ' " * 16_000 + b"\n") * 20, b'"\\' * 30_000 + b"\n"):
        assert typed(data, terminal=False)


def test_without_a_terminal_bytes_are_bytes() -> None:
    assert typed(b"a\x7f\x15!b\nc", terminal=False) == [("a\x7f\x15!b", True)]
    lines = TypedLines(terminal=False)
    assert not list(lines.feed(b"a"))
    assert lines.rest() == Line("a", certain=True)
    assert lines.rest() is None


def test_a_line_is_bounded() -> None:
    lines = TypedLines(terminal=True)
    for _ in range(20):
        assert not list(lines.feed(b"x" * 10_000))
    (line,) = lines.feed(b"\r")
    assert len(line.text) == LINE and not line.certain


@given(st.binary(), st.integers(1, 7), st.booleans())
def test_pieces_make_no_difference(data: bytes, size: int, terminal: bool) -> None:
    lines = TypedLines(terminal=terminal)
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    found = [(line.text, line.certain) for piece in pieces for line in lines.feed(piece)]
    assert found == typed(data, terminal=terminal)


def test_markers_are_taken_out() -> None:
    markers = Markers(WORD)
    data = b"a" + LEAD + b"P;7;\\ 4\\ \\ ls\a" + b"b" + LEAD + b"C;\\ \\ 12\\ \\ ls\\ -l\a" + b"c"
    assert list(markers.feed(data)) == [b"a", Prompt(7, 4), b"b", Entered(12, "ls -l"), b"c"]
    assert not markers.shown


@given(st.integers(1, 9))
def test_a_marker_in_pieces(size: int) -> None:
    markers = Markers(WORD)
    data = b"x\x1b" + LEAD + b"P;0;\\ 4\\ \\ ls\a" + b"y\x1b]7770;" + b"z" + LEAD + b"C;''\a"
    out, told = b"", []
    for at in range(0, len(data), size):
        for piece in markers.feed(data[at : at + size]):
            if isinstance(piece, bytes):
                out += piece
            else:
                told.append(piece)
    assert out + markers.flush() == b"x\x1by\x1b]7770;z"
    assert told == [Prompt(0, 4), Entered(0, "")]


def test_a_word_that_shows_is_noticed() -> None:
    for shown in (WORD.encode(), LEAD + b"X\a", LEAD + b"P;no\a"):
        markers = Markers(WORD)
        list(markers.feed(shown))
        assert markers.shown


@pytest.mark.parametrize(
    "command",
    [
        "history -s ls", "his''tory -c", "h\\istory -c", "HISTCONTROL=ignorespace", "fc -s", "PS0=",
        "bind -x x", "trap x DEBUG", "set +o history", ". /tmp/x", "true; . x", "source x",
        "alias ls='x'", "$x -s ls", "true && ${x}ory -s ls", "x=1 $x", "`x`", "read P${x}",
        "printf -v P${x} y", "cat /proc/$$/environ", "h?story", "a" * 9000, "if $x; then y; fi",
    ],
)  # fmt: skip
def test_what_may_change_what_a_shell_tells(command: str) -> None:
    """[W3.2]"""
    assert changes_what_is_told(command)


@pytest.mark.parametrize(
    "command",
    [
        "ls -l",
        "echo $HOME",
        "grep 'a.b' /etc/x",
        "cd .. && ls *.conf",
        "systemctl restart x",
        "./x",
    ],
)
def test_what_changes_nothing_that_a_shell_tells(command: str) -> None:
    assert not changes_what_is_told(command)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize("text", ["", "a b", "a\nb", 'it\'s "$x" \\ !', "é \x1b\a\t", "~$(x)`y`;"])
def test_what_bash_quotes_is_read(text: str) -> None:
    quoted = subprocess.run(
        ["bash", "-c", 'printf %q "$1"', "x", text], check=True, capture_output=True
    ).stdout
    assert unquoted(quoted.decode()) == text
