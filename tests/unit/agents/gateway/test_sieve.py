"""Lines on their way to a shell, held against what is forbidden."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.agents.gateway.sieve import Sieve
from opsdrill.agents.gateway.typed_lines import LINE, Line, TypedLines


class Shell:
    """What comes of bytes that are typed."""

    def __init__(self, *, terminal: bool, forbidden: str = "reboot") -> None:
        self.entered: list[str] = []
        self.refused: list[str] = []
        self.got = b""
        self._forbidden = forbidden
        self.sieve = Sieve(
            TypedLines(terminal=terminal),
            terminal=terminal,
            refuses=self._refuses,
            enter=self._enter,
            refused=self._refused,
        )

    async def type(self, *pieces: bytes) -> Shell:
        for piece in pieces:
            self.got += await self.sieve.sift(piece)
        self.got += await self.sieve.rest()
        return self

    async def _refuses(self, command: str) -> str | None:
        return "forbidden" if self._forbidden in command else None

    def _enter(self, line: Line) -> None:
        self.entered.append(line.text)

    async def _refused(self, line: Line, why: str) -> None:
        self.refused.append(line.command)


async def test_a_forbidden_line_of_a_script_is_left_out() -> None:
    """[W4.2]"""
    shell = await Shell(terminal=False).type(b"echo a\nreb", b"oot now\necho b\n\necho c")
    assert shell.got == b"echo a\necho b\n\necho c"
    assert shell.entered == ["echo a", "echo b", "echo c"]
    assert shell.refused == ["reboot now"]


async def test_the_last_line_needs_no_end() -> None:
    """[W4.2]"""
    shell = await Shell(terminal=False).type(b"ls\nreboot")
    assert (shell.got, shell.refused) == (b"ls\n", ["reboot"])


@pytest.mark.parametrize(
    ("script", "passed", "refused"),
    [
        (b"re\\\nboot\nls\n", b"re\\\nls\n", "re\\\nboot"),
        (b"echo 'a\nreboot\nb'\n", b"echo 'a\nb'\n", "echo 'a\nreboot"),
        (b"true &&\nreboot\n", b"true &&\n", "true &&\nreboot"),
    ],
)
async def test_lines_of_one_command_are_looked_at_together(
    script: bytes, passed: bytes, refused: str
) -> None:
    """[W4.3]"""
    shell = await Shell(terminal=False).type(script)
    assert (shell.got, shell.refused) == (passed, [refused])


async def test_a_line_that_is_too_long_to_be_kept_is_refused() -> None:
    """[W4.3]"""
    long = b"x" * LINE
    shell = await Shell(terminal=False).type(long, long, b"\nls\n", long + b"\n")
    assert shell.got == b"ls\n"
    assert [len(command) for command in shell.refused] == [LINE, LINE]


async def test_at_a_terminal_the_line_is_deleted() -> None:
    """[W4.2] The keys went to the shell as they came; the one that runs the line does not."""
    shell = await Shell(terminal=True).type(b"ls\rre", b"boo", b"t\r", b"id\r")
    assert shell.got == b"ls\rreboot\x05\x15\rid\r"
    assert (shell.entered, shell.refused) == (["ls", "id"], ["reboot"])


async def test_at_a_terminal_what_is_not_whole_is_interrupted() -> None:
    """[W4.3]"""
    shell = await Shell(terminal=True).type(b"re\\\rboot\rid\r")
    assert shell.got == b"re\\\rboot\x03id\r"
    assert (shell.entered, shell.refused) == (["re\\", "id"], ["re\\\nboot"])


async def test_pasted_lines_are_one() -> None:
    shell = await Shell(terminal=True).type(b"\x1b[200~ls\nreboot\x1b[201~\r")
    assert shell.refused == ["ls\nreboot"] and shell.got.endswith(b"\x05\x15\r")


@given(st.lists(st.binary(max_size=20), max_size=20), st.booleans())
async def test_what_nothing_forbids_goes_on_as_it_came(pieces: list[bytes], terminal: bool) -> None:
    shell = await Shell(terminal=terminal, forbidden="\0never").type(*pieces)
    assert shell.got == b"".join(pieces)


@given(
    st.lists(st.sampled_from([b"re", b"boot", b"reboot", b"\n", b" ", b"x", b"'", b"\\"])),
    st.data(),
)
async def test_how_bytes_are_cut_into_pieces_changes_nothing(
    parts: list[bytes], data: st.DataObject
) -> None:
    whole = b"".join(parts)
    at = data.draw(st.integers(0, len(whole)))
    one = await Shell(terminal=False).type(whole)
    two = await Shell(terminal=False).type(whole[:at], whole[at:])
    assert (one.got, one.refused, one.entered) == (two.got, two.refused, two.entered)
    assert b"reboot" not in one.got
