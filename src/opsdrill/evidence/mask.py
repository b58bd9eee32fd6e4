r"""The mask: puts `[masked:NAME]` in the place of every secret, before anything is kept.

Secrets are values that the lab or the settings name, in every way of writing them that
`forms` knows, and what has the shape of a well-known token (`patterns.tokens`). Equal secrets look
alike. What was masked once stays as it is, so masking again changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from opsdrill.evidence.cut import LEFT_OUT
from opsdrill.evidence.forms import forms, in_a_pattern
from opsdrill.patterns.literals import Literals, Place
from opsdrill.patterns.tokens import SHAPES, all_tokens

SHORTEST = 4
"""Characters of the shortest secret: a shorter one stands in too many words by chance."""
CUT_LEAST = 4
"""Bytes of a secret at the end of a text that was cut there, from which on they are masked."""
_ROUNDS = 4  # what was masked may have kept a token beside it from being told apart

_OPENING = b"[masked:"
_MASKED = re.compile(rb"\[masked:([A-Za-z0-9_-]{1,100})\]")
_Found = Callable[[bytes], Sequence[Place]]


class Mask:
    """Masks texts and bytes. Several threads may use one.

    Args:
        secrets: names and values; of two names for one value the first is shown.
        warnings: what is to be said besides.

    Attributes:
        warnings: a sentence for each secret that cannot be masked; never its value.
        known: the names of what can be masked, tokens among them.
    """

    def __init__(
        self, secrets: Iterable[tuple[str, str]] = (), *, warnings: Iterable[str] = ()
    ) -> None:
        given = list(secrets)
        self._shown = frozenset(shape.name for shape in SHAPES) | {name for name, _ in given}
        every = "\0".join(f"[masked:{name}]" for name in sorted(self._shown))
        unfit = [why for name, value in given if (why := _unfit(name, value, every))]
        self.warnings = tuple(dict.fromkeys((*warnings, *unfit)))
        fit = [(name, value) for name, value in given if _unfit(name, value, every) is None]
        self.known = frozenset(name for name, _ in fit) | {shape.name for shape in SHAPES}
        self._secrets = _literals(fit, forms)
        self._patterned = _literals(fit, lambda value: forms(value) | in_a_pattern(value))
        self._reversed = self._secrets.reversed()
        self._tokens = all_tokens()
        self._kept: frozenset[str] = frozenset()

    def keeping(self, texts: Iterable[str]) -> Mask:
        """The same mask, which leaves alone what is just one of these texts."""
        other = Mask.__new__(Mask)
        other.__dict__.update(self.__dict__)
        other._kept = self._kept | frozenset(texts)
        return other

    @property
    def longest(self) -> int:
        """Bytes of the longest way of writing one of the named secrets."""
        return self._secrets.longest

    def text(self, text: str, *, cut: bool = False, resumed: bool = False) -> str:
        """The text with every secret masked.

        Args:
            cut: something was left out at its end, so that a secret may be there in part.
            resumed: something was left out before its beginning.
        """
        if len(text) < SHORTEST or text in self._kept:
            return text
        data = text.encode("utf-8", "surrogatepass")
        masked = self.data(data, cut=cut, resumed=resumed)
        return text if masked is data else masked.decode("utf-8", "surrogatepass")

    def output(self, text: str) -> str:
        """As `text`, for output that says of itself what was left out (see `cut`)."""
        marks = list(LEFT_OUT.finditer(text))
        if not marks:
            return self.text(text)
        parts, end, resumed = [], 0, False
        for mark in marks:
            parts += [self.text(text[end : mark.start()], cut=True, resumed=resumed), mark[0]]
            end, resumed = mark.end(), "characters" in mark[0]
            if resumed and text[end : end + 1] == "\n":
                parts.append("\n")
                end += 1
        return "".join((*parts, self.text(text[end:], resumed=resumed)))

    def data(self, data: bytes, *, cut: bool = False, resumed: bool = False) -> bytes:
        """As `text`, for bytes of any kind; the very same object where nothing is masked."""
        masked = self._replace(data, self._secrets.places, _plainly)
        masked = self._without_tokens(masked, _plainly)
        if cut:
            begun = self._secrets.begun(masked, CUT_LEAST) or self._tokens.begun(masked)
            if begun is not None and not masked.endswith(b"]"):
                masked = masked[: begun.start] + _plainly(begun.name)
        if resumed and (ended := self._reversed.begun(masked[: self.longest][::-1], CUT_LEAST)):
            size = min(len(masked), self.longest) - ended.start
            masked = _plainly(ended.name) + masked[size:]
        return masked

    def pattern(self, pattern: str) -> str:
        r"""A regular expression with every secret in it as it now stands in evidence.

        `password=hunter2` becomes `password=\[masked:DB_PASSWORD\]`.
        """
        data = pattern.encode("utf-8", "surrogatepass")
        masked = self._replace(data, self._patterned.places, _as_pattern)
        masked = self._without_tokens(masked, _as_pattern)
        return pattern if masked is data else masked.decode("utf-8", "surrogatepass")

    def names(self, text: str, *, pattern: bool = False) -> tuple[str, ...]:
        """The names of the secrets in a text, each once, in their order."""
        masked = self.pattern(text) if pattern else self.text(text)
        if masked == text:
            return ()
        now = masked.replace("\\[", "[").replace("\\]", "]") if pattern else masked
        was, found = (
            [each[1].decode() for each in self._done(each.encode("utf-8", "surrogatepass"))]
            for each in (text, now)
        )
        return tuple(dict.fromkeys([name for name in found if name not in was] or found))

    def places(self, data: bytes) -> list[Place]:
        """The parts of `data` that are masked, named secrets before tokens."""
        return [*self._secrets.places(data), *self._tokens.places(data)]

    def _done(self, data: bytes) -> Iterator[re.Match[bytes]]:
        """What is masked already; its name is the group."""
        found = _MASKED.finditer(data)
        return (each for each in found if each[1].decode("ascii") in self._shown)

    def _without_tokens(self, data: bytes, shown: Callable[[str], bytes]) -> bytes:
        for _ in range(_ROUNDS):
            masked = self._replace(data, self._tokens.places, shown)
            if masked is data:
                break
            data = masked
        return data

    def _replace(self, data: bytes, find: _Found, shown: Callable[[str], bytes]) -> bytes:
        """Put something else in the place of what is found outside of what is masked already."""
        if _OPENING not in data:
            return _replaced(data, find(data), shown)
        parts: list[bytes] = []
        end, changed = 0, False
        for masked in self._done(data):
            part = data[end : masked.start()]
            parts += [_replaced(part, find(part), shown), masked[0]]
            changed = changed or parts[-2] is not part
            end = masked.end()
        part = data[end:]
        parts.append(_replaced(part, find(part), shown))
        return b"".join(parts) if changed or parts[-1] is not part else data


def _replaced(data: bytes, places: Sequence[Place], shown: Callable[[str], bytes]) -> bytes:
    if not places:
        return data
    parts, end = [], 0
    for place in places:
        parts += [data[end : place.start], shown(place.name)]
        end = place.end
    return b"".join((*parts, data[end:]))


def _plainly(name: str) -> bytes:
    return b"[masked:%s]" % name.encode()


def _as_pattern(name: str) -> bytes:
    return rb"\[masked:%s\]" % name.encode()


def _unfit(name: str, value: str, every: str) -> str | None:
    """Why a value cannot be masked.

    Args:
        every: all that masks are made of.
    """
    if len(value) < SHORTEST:
        few = f"has fewer than {SHORTEST} characters, so it"
    elif value in every:
        few = "is a word that what is masked is shown by, so it"
    else:
        return None
    return f"the secret {name!r} {few} is not masked in what is kept; choose another"


def _literals(
    secrets: Iterable[tuple[str, str]], written: Callable[[str], frozenset[str]]
) -> Literals:
    texts: dict[bytes, str] = {}
    for name, value in secrets:
        # Plain values first: one secret may be what another looks like in base64.
        texts.setdefault(value.encode("utf-8", "surrogatepass"), name)
    for name, value in secrets:
        for form in sorted(written(value)):
            if len(form) >= SHORTEST:
                texts.setdefault(form.encode("utf-8", "surrogatepass"), name)
    return Literals(texts)
