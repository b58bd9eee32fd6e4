"""Typed bytes as lines: what a terminal's line discipline, or a shell's line editor, makes of them.

Only what both make the same of is certain. Keys that move, recall or complete are known to the
program alone; a line with one of them says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

LINE = 64 * 1024
"""Bytes of a line that are kept at most."""

_COMMAND = 8192
"""Characters of a command of one or more lines at most; a longer one is not certain."""
# Without a way back, so that no text takes long.
_CLOSED = re.compile(
    r"""(?>(?:(?<=\s)|(?<![\s\S]))\#[^\n]*|[^'"\\]|\\[\s\S]|'[^']*'|"(?:[^"\\]|\\[\s\S])*+")*+"""
)

_ESCAPE = 0x1B
_BACKSPACES = (0x08, 0x7F)
_INTERRUPTS = (0x03, 0x1C)
_IDLE = (0x00, 0x0C, 0x11, 0x13)
_PASTE, _PASTE_END = b"[200~", b"[201~"
_LONG = b"[O"
_SEQUENCE = 64


@dataclass(frozen=True, slots=True)
class Line:
    """One line.

    Attributes:
        text: what was typed, as far as it can be told.
        certain: this is what the program got, and it is a command of its own.
        unfinished: a shell reads the next line as more of this one.
        begun: the lines before it that it is more of, with their ends.
    """

    text: str
    certain: bool
    unfinished: bool = False
    begun: str = ""

    @property
    def command(self) -> str:
        """All that the shell reads as one so far."""
        return f"{self.begun}{self.text}"


class TypedLines:
    """The lines of one session.

    Args:
        terminal: the program has a terminal, so that keys edit the line.
    """

    def __init__(self, *, terminal: bool) -> None:
        self._terminal = terminal
        self._line = bytearray()
        self._certain = True
        self._escape: bytearray | None = None
        self._pasting = False
        self._begun = ""

    def feed(self, data: bytes) -> Iterator[Line]:
        """The lines that were ended by these bytes; blank ones that are certain are none."""
        for byte in data:
            ended = self._key(byte) if self._terminal else byte == 0x0A or self._plain(byte)
            if ended and (line := self._take()) is not None:
                yield line

    def rest(self) -> Line | None:
        """What was typed behind the last line; a program without a terminal reads it too."""
        return None if self._terminal else self._take()

    def withdraw(self, line: Line) -> None:
        """The last line does not reach the program; at a terminal its command is interrupted."""
        self._begun = "" if self._terminal else line.begun

    def _key(self, byte: int) -> bool:
        """Take one byte from a keyboard; True where it ends a line."""
        if self._escape is not None:
            return self._sequence(byte)
        if byte == _ESCAPE:
            self._escape = bytearray()
        elif byte in (0x0D, 0x0A):
            if not self._pasting:
                return True
            self._plain(0x0A)
        elif byte >= 0x20 and byte != 0x7F:
            self._plain(byte)
        else:
            self._control(byte)
        return False

    def _control(self, byte: int) -> None:
        if byte in _BACKSPACES:
            _drop_character(self._line)
        elif byte == 0x15:
            self._line.clear()
        elif byte == 0x17:
            self._drop_word()
        elif byte in _INTERRUPTS:
            self._line.clear()
            self._certain, self._pasting, self._begun = True, False, ""
        elif byte == 0x04 and not self._line and self._certain:
            pass  # the end of input, for a program that reads it
        elif byte not in _IDLE:
            self._certain = False

    def _sequence(self, byte: int) -> bool:
        assert self._escape is not None
        self._escape.append(byte)
        first, size = self._escape[0], len(self._escape)
        if first in _LONG and size == 1:
            return False
        if first == _LONG[0] and not 0x40 <= byte <= 0x7E and size < _SEQUENCE:
            return False
        self._pasting = self._escape == _PASTE or (self._pasting and self._escape != _PASTE_END)
        self._escape = None
        self._certain = False
        return False

    def _drop_word(self) -> None:
        """A terminal ends a word at punctuation, a line editor at a blank."""
        text = self._line.rstrip(b" \t")
        word = re.search(rb"[^ \t]*\Z", text)
        assert word is not None
        if not re.fullmatch(rb"[A-Za-z0-9_]*", word[0]):
            self._certain = False
        self._line = text[: word.start()]

    def _plain(self, byte: int) -> bool:
        if len(self._line) < LINE:
            self._line.append(byte)
        else:
            self._certain = False
        return False

    def _take(self) -> Line | None:
        text = self._line.decode(errors="replace")
        certain, self._certain = self._certain, True
        self._line.clear()
        if not text.strip() and certain and not self._begun:
            return None
        begun = self._begun
        command = f"{begun}{text}"
        unfinished = len(command) <= _COMMAND and is_unfinished(command)
        alone = certain and not begun and not unfinished and len(text) <= _COMMAND
        self._begun = f"{command}\n" if unfinished else ""
        certain = alone and not _is_changed(text, history=self._terminal)
        return Line(text, certain, unfinished, begun)


def is_unfinished(command: str) -> bool:
    """A shell goes on reading: a quote is open, or the end says that there is more."""
    if re.search(r"(\\|\||&&)[ \t]*\Z", command):
        return True
    return _CLOSED.fullmatch(command) is None


def _is_changed(text: str, *, history: bool) -> bool:
    """What a shell runs may be another text, or more of them than this line.

    Args:
        history: the shell may put lines of its history in the place of `!` and of a first `^`.
    """
    return "\0" in text or "<<" in text or (history and ("!" in text or text.startswith("^")))


def _drop_character(line: bytearray) -> None:
    """Drop the last character, of UTF-8."""
    while line and line.pop() & 0xC0 == 0x80:
        pass
