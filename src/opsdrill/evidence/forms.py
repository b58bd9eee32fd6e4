"""The ways in which a secret's value comes to be written: quoted, escaped, encoded."""

from __future__ import annotations

import base64
import html
import json
import re
import shlex
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

LINE_LEAST = 16
"""Characters from which on each line of a value of several lines counts as secret itself."""
ENCODED_LEAST = 6
"""Characters of base64 from which on they are told from ordinary text."""

_SPECIAL = re.compile(r"[^A-Za-z0-9_./:@%+=,-]")
_IN_DOUBLE_QUOTES = re.compile(r'[\\"$`]')
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_]")


def forms(value: str) -> frozenset[str]:
    """Every way of writing a value that is looked for, the plain one among them.

    As it is, with line ends of either kind, and each long line of it; inside quotes of a shell,
    of JSON (also JSON inside JSON), of Python and of HTML; for a URL; in base64 wherever it may
    stand in what was encoded; in hexadecimal.
    """
    return frozenset(form for form in _forms(value) if form)


def _forms(value: str) -> Iterator[str]:
    texts = {value, value.strip(), value.replace("\n", "\r\n"), value.replace("\r\n", "\n")}
    lines = value.splitlines()
    if len(lines) > 1:
        texts |= {line.strip() for line in lines if len(line.strip()) >= LINE_LEAST}
    for text in texts:
        yield text
        yield from _quoted(text)
        yield from _in_a_url(text)
    yield from _encoded(value)


def _quoted(text: str) -> Iterator[str]:
    for ascii in (True, False):
        once = json.dumps(text, ensure_ascii=ascii)[1:-1]
        yield once
        yield once.replace("/", r"\/")
        yield json.dumps(once, ensure_ascii=ascii)[1:-1]
    yield repr(text)[1:-1]
    yield shlex.quote(text).removeprefix("'").removesuffix("'")
    yield text.replace("'", r"'\''")
    yield _SPECIAL.sub(lambda found: "\\" + found[0], text)
    yield _IN_DOUBLE_QUOTES.sub(lambda found: "\\" + found[0], text)
    yield html.escape(text)
    yield html.escape(text, quote=False)


def _in_a_url(text: str) -> Iterator[str]:
    data = text.encode("utf-8", "surrogatepass")
    for safe in ("", "/", "!*'()", "!$&'()*+,;=:@/"):
        for coded in (quote(data, safe=safe), quote_plus(data, safe=safe)):
            yield coded
            yield re.sub("%..", lambda found: found[0].lower(), coded)


def _encoded(value: str) -> Iterator[str]:
    data = value.encode("utf-8", "surrogatepass")
    for whole in (data, data + b"\n"):
        yield from _long(base64.b64encode(whole).decode())
        yield from _long(base64.urlsafe_b64encode(whole).decode())
        yield from _long(base64.b64encode(whole).decode().rstrip("="))
        yield from _long(base64.urlsafe_b64encode(whole).decode().rstrip("="))
    for ahead in range(3):
        # The characters that depend on nothing but the value, with `ahead` bytes before it.
        first = (8 * ahead + 5) // 6
        last = 8 * (ahead + len(data)) // 6
        padded = b"\0" * ahead + data
        yield from _long(base64.b64encode(padded).decode()[first:last])
        yield from _long(base64.urlsafe_b64encode(padded).decode()[first:last])
    yield from (data.hex(), data.hex().upper())


def _long(text: str) -> Iterator[str]:
    if len(text) >= ENCODED_LEAST:
        yield text


def in_a_pattern(value: str) -> frozenset[str]:
    """The ways in which a regular expression says a value: with backslashes where it wants."""
    return frozenset(
        {re.escape(value), _NOT_PLAIN.sub(lambda found: "\\" + found[0], value), *_common(value)}
    )


def _common(value: str) -> Iterator[str]:
    """Only what must be escaped is: `a-b#c` stays, `a.b` becomes `a\\.b`."""
    yield re.sub(r"[.^$*+?{}\[\]\\|()]", lambda found: "\\" + found[0], value)
    yield re.sub(r"[.^$*+?{}\[\]\\|()/-]", lambda found: "\\" + found[0], value)
