"""Text of others made safe to show: what an agent, a host or a file says moves no cursor.

Everything that was not written by us goes through `shown` before it reaches a terminal.
"""

from __future__ import annotations

import json
import re

# Control characters (ESC among them, so no ANSI sequence survives), marks that turn the direction
# of text, invisible characters that hide text in text, separators that terminals break lines at,
# and halves of surrogate pairs.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f"
    "\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)
UNSAFE_IN_BLOCK = re.compile(_UNSAFE.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))
"""What is never shown as it is, of a text that may have line breaks and tabs."""
_SHORT = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    if character in _SHORT:
        return _SHORT[character]
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def shown(text: str, *, limit: int | None = None) -> str:
    """`text` on one line, with everything that a terminal would act on written as an escape.

    Args:
        text: anything, from anybody.
        limit: code points after which it is cut, with a note of how many were left out.
    """
    return _UNSAFE.sub(_escape, _cut(text, limit))


def shown_block(text: str, *, limit: int | None = None) -> str:
    """As `shown`, with line breaks and tabs kept; CRLF counts as a line break."""
    return UNSAFE_IN_BLOCK.sub(_escape, _cut(text, limit).replace("\r\n", "\n"))


def shown_end(text: str, *, lines: int, limit: int) -> str:
    """The end of a block, where programs say what went wrong, and how much stood before it."""
    whole = text.replace("\r\n", "\n").split("\n")
    kept = "\n".join(whole[-lines:])
    if len(kept) > limit:
        return f"... ({len(text) - limit} characters before)\n{shown_block(kept[-limit:])}"
    if len(whole) > lines:
        return f"... ({len(whole) - lines} lines before)\n{shown_block(kept)}"
    return shown_block(kept)


def shown_ends(text: str, *, limit: int) -> str:
    """The start and the end of a block, and how much was left out between them."""
    left = len(text) - limit
    if left <= 0:
        return shown_block(text)
    half = limit // 2
    start, end = shown_block(text[:half]), shown_block(text[-half:])
    return f"{start}\n... ({len(text) - 2 * half} characters left out)\n{end}"


def shown_json(document: str) -> str:
    """A JSON document for a terminal: the same document, with unsafe characters as escapes."""
    return UNSAFE_IN_BLOCK.sub(lambda match: json.dumps(match.group())[1:-1], document)


def _cut(text: str, limit: int | None) -> str:
    if limit is None or len(text) <= limit:
        return text
    return f"{text[:limit]} ... ({len(text) - limit} more characters)"


def indented(text: str, by: int = 4) -> str:
    """Every line of `text` moved to the right."""
    return "\n".join(" " * by + line for line in text.split("\n"))
