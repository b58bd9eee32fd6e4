"""Words and documents of a shell command whose text says all: unquoted as the shell does it."""

from __future__ import annotations

import re

from tree_sitter import Node


class Unsure(Exception):
    """The text alone does not say what the shell makes of it."""


_ANSI = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})"
    r"|U([0-9A-Fa-f]{1,8})|(.?))",
    re.DOTALL,
)
_ANSI_NAMED = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}

_QUOTED = {
    "raw_string": re.compile(r"'[^']*+'"),
    "string": re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL),
    "ansi_c_string": re.compile(r"\$'(?:[^'\\]|\\.)*+'", re.DOTALL),
}
_DOCUMENT = {"<<", "<<-", "heredoc_start", "heredoc_body", "heredoc_end"}
"""What a here-document is made of, when it has no descriptor and nothing behind it."""


def unquoted(word: Node) -> str:
    """One word as the shell passes it on.

    Raises:
        Unsure: the shell would expand something in it.
    """
    text = _text(word)
    shape = _QUOTED.get(word.type)
    if shape is not None and not shape.fullmatch(text):
        raise Unsure  # the grammar sees its end elsewhere than the shell
    match word.type:
        case "word" | "number" | "variable_name":
            return _bare(text)
        case "raw_string":
            return text[1:-1]
        case "ansi_c_string":
            return _ANSI.sub(_ansi, text[2:-1])
        case "string":
            if any(child.type not in ('"', "string_content") for child in word.children):
                raise Unsure
            return _in_double_quotes(text[1:-1])
        case "concatenation":
            return text if text == "{}" else _joined(word)
        case _:
            raise Unsure


def document(redirect: Node) -> str:
    """The text that a here-document or here-string puts on standard input.

    Raises:
        Unsure: the shell would expand something in it, or it cannot be read whole.
    """
    if redirect.type == "herestring_redirect":
        words = redirect.named_children
        if len(words) != 1:
            raise Unsure
        return unquoted(words[0]) + "\n"
    parts = {child.type: child for child in redirect.children}
    if not {"heredoc_start", "heredoc_end"} <= set(parts) <= _DOCUMENT:
        raise Unsure
    # The node of the body leaves out white space at its start, so it is cut out by the lines.
    start, end = parts["heredoc_start"].end_byte, parts["heredoc_end"].start_byte
    rest, _, body = (redirect.text or b"")[: end - redirect.start_byte][
        start - redirect.start_byte :
    ].partition(b"\n")
    if rest.strip():
        raise Unsure
    text = body.decode(errors="replace")
    if redirect.children[0].type == "<<-":
        text = re.sub(r"^\t+", "", text, flags=re.MULTILINE)
    if re.search(r"[\"'\\]", _text(parts["heredoc_start"])):
        return text
    # A line that goes on in the next one may hide the end, or make one.
    if re.search(r"(?<!\\)(?:\\\\)*(?:[$`]|\\\n)", text):
        raise Unsure
    return re.sub(r"\\([$`\\])", r"\1", text)


def _text(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def _bare(text: str) -> str:
    plain = re.sub(r"\\.", "", text, flags=re.DOTALL)
    # A glob or a tilde: what they become stands on the machine, not in the text. The others would
    # end the word: then the grammar and the shell disagree.
    if re.search(r"[*?\[{$`]|(?:^|[=:])~|[\s;&|<>()'\"\\]|^#", plain):
        raise Unsure
    return re.sub(r"\\(.)", lambda m: "" if m[1] == "\n" else m[1], text, flags=re.DOTALL)


def _in_double_quotes(text: str) -> str:
    if re.search(r"(?<!\\)(?:\\\\)*[$`]", text):
        raise Unsure
    return re.sub(r"\\([$`\"\\\n])", lambda m: "" if m[1] == "\n" else m[1], text)


def _joined(word: Node) -> str:
    # Parts that do not touch would be words of their own.
    end = word.start_byte
    parts = []
    for child in word.children:
        if child.start_byte != end:
            raise Unsure
        end = child.end_byte
        parts.append(unquoted(child))
    if end != word.end_byte:
        raise Unsure
    return "".join(parts)


def _ansi(match: re.Match[str]) -> str:
    named, octal, hexa, short, long, other = match.groups()
    if named:
        return _ANSI_NAMED.get(named, named)
    if octal or hexa:
        code = int(octal, 8) & 0xFF if octal else int(hexa, 16)
        if not 0 < code < 0x80:  # a byte of a character, or the end of the text
            raise Unsure
        return chr(code)
    if short or long:
        code = int(short or long, 16)
        if not 0 < code < 0x110000 or 0xD800 <= code < 0xE000:
            raise Unsure
        return chr(code)
    if other == "c" or not other:
        raise Unsure
    return "\\" + other
