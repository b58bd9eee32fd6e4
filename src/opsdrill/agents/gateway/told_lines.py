"""What an interactive bash itself tells of its lines, between markers in its output.

The markers are made by variables that the shell is started with (`PROMPT_COMMAND`, then `PS0`), so
that the user's own start-up files are read as ever. They hold a random word, are taken out of the
output, and are not handed down to programs. Whoever reads the shell's own variables can find the
word: where it shows in the output, what is told counts for nothing any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_MARKER = 256 * 1024
"""Bytes of a marker at most."""
_LEAD = b"\x1b]7770;"
_ESCAPES = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    "v": "\v",
}  # fmt: skip
_QUOTED = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)

_CHANGES = re.compile(
    r"(?i:hist)|PS0|PROMPT_COMMAND|7770|environ|"
    r"\b(?:fc|bind|trap|enable|eval|source|alias|set|shopt|declare|typeset|exec)\b|"
    r"(?:\A|[\s;&|({!])\.\s|"
    # The name of a variable, or that of a command, that is made only when it runs.
    r"\b(?:read|printf|export|unset|readonly|local|mapfile|readarray|getopts)\b[^;&|\n]*[$`*?{]|"
    r"(?:\A|[\n;&|({!]|\b(?:do|then|else|if|while|until|time|command|builtin)\s)\s*"
    r"(?:\w+=\S*\s+)*[^\s;&|=]*[$`*?\[{]"
)
"""What changes the history or the variables of a shell, or may: there is no list of all ways."""
_LOOKED_AT = 8192


def changes_what_is_told(command: str) -> bool:
    """After this command a bash may tell something else than what it runs."""
    if len(command) > _LOOKED_AT:
        return True
    return _CHANGES.search(re.sub(r"""['"\\]""", "", command)) is not None


def hook(word: str) -> dict[str, str]:
    """The environment of a bash that tells of its lines.

    At each prompt it tells the exit status of the command before, and the last line of its history,
    with its number there; before each command the same line as it is then.

    Args:
        word: letters and digits that nobody can guess.
    """
    last = '"$(HISTTIMEFORMAT= builtin history 1)"'
    told = f"$(builtin printf '\\033]7770;{word};C;%q\\007' {last})"
    quoted = told.replace("'", "'\\''")
    return {
        "PROMPT_COMMAND": (
            f"builtin printf '\\033]7770;{word};P;%s;%q\\007' \"$?\" {last};"
            f"case $PS0 in *{word}*);;*)PS0='{quoted}'$PS0;export -n PROMPT_COMMAND PS0;;esac"
        )
    }


@dataclass(frozen=True, slots=True)
class Prompt:
    """The shell waits for a line.

    Attributes:
        status: of the command before.
        number: of the last line in the shell's history; 0: there is none.
    """

    status: int | None
    number: int = 0


@dataclass(frozen=True, slots=True)
class Entered:
    """A command is about to run: the last line in the shell's history, and its number there."""

    number: int
    text: str


class Markers:
    """Takes the markers out of a shell's output.

    Args:
        word: as of `hook`.

    Attributes:
        shown: the word was seen outside of a marker.
    """

    def __init__(self, word: str) -> None:
        self._word = word.encode()
        self._start = _LEAD + self._word + b";"
        self._held = b""
        self.shown = False

    def feed(self, data: bytes) -> Iterator[bytes | Prompt | Entered]:
        """Output and markers in their order; what may be the beginning of a marker is held."""
        rest = self._held + data
        self._held = b""
        while rest:
            at = rest.find(self._start)
            if at < 0:
                keep = _overlap(rest, self._start)
                if out := rest[: len(rest) - keep]:
                    yield self._seen(out)
                self._held = rest[len(rest) - keep :]
                return
            if at:
                yield self._seen(rest[:at])
            end = rest.find(b"\a", at)
            if end < 0:
                if len(rest) - at <= _MARKER:
                    self._held = rest[at:]
                else:
                    self.shown = True
                    yield rest[at:]
                return
            marker = _marker(rest[at + len(self._start) : end])
            if marker is not None:
                yield marker
            else:
                self.shown = True
            rest = rest[end + 1 :]

    def flush(self) -> bytes:
        """What was held, at the end."""
        held, self._held = self._held, b""
        return held

    def _seen(self, out: bytes) -> bytes:
        self.shown = self.shown or self._word in out
        return out


def _marker(content: bytes) -> Prompt | Entered | None:
    text = content.decode(errors="replace")
    if (prompt := re.fullmatch(r"P;([0-9]{1,3});(.*)", text, re.DOTALL)) is not None:
        return Prompt(int(prompt[1]), _last(prompt[2]).number)
    return _last(text[2:]) if text.startswith("C;") else None


def _last(quoted: str) -> Entered:
    """The last line of a history, as `history 1` gives it."""
    found = re.fullmatch(r"\s*(\d{1,9})\*?\s\s?(.*)", unquoted(quoted), re.DOTALL)
    return Entered(int(found[1]), found[2]) if found else Entered(0, "")


def unquoted(text: str) -> str:
    """What `printf %q` of bash was given."""
    if text.startswith("$'"):
        octets = _QUOTED.sub(_plain, text[2:-1])
        # Bytes that the shell's language did not know stand as numbers.
        return octets.encode(errors="surrogateescape").decode(errors="replace")
    if text == "''":
        return ""
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def _plain(found: re.Match[str]) -> str:
    if found[1] or found[2]:
        byte = int(found[1], 8) & 0xFF if found[1] else int(found[2], 16)
        return bytes([byte]).decode(errors="surrogateescape")
    return _ESCAPES.get(found[3], found[3])


def _overlap(data: bytes, start: bytes) -> int:
    """Bytes at the end of `data` that `start` may begin with."""
    return next(
        (size for size in range(min(len(start) - 1, len(data)), 0, -1)
         if data.endswith(start[:size])), 0
    )  # fmt: skip
