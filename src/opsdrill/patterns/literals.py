"""Many plain texts looked for at once, in one pass over the bytes, however many there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple

import re2

HEAD = 5
"""Bytes of each text that the engine looks for; the rest is compared where these are found."""
MEMORY = 64 * 1024**2
"""Bytes that the engine may take with all it remembers while it searches."""
OVERLAPS = 16
"""So many texts in a row are looked at one byte further each; then whole texts are passed over."""


class Place(NamedTuple):
    """Where texts were found: the first byte, the one behind the last, and the name of the text
    that begins there."""

    start: int
    end: int
    name: str


class Literals:
    """Texts as bytes, to be found in other bytes; each has a name.

    The engine only sees how each text begins: so it needs little memory for long texts, and time
    grows with the data alone. Several threads may search at once.
    """

    def __init__(self, texts: Mapping[bytes, str]) -> None:
        self._names = {text: name for text, name in texts.items() if text}
        by_head: dict[bytes, dict[int, set[bytes]]] = defaultdict(lambda: defaultdict(set))
        for text in self._names:
            by_head[text[:HEAD]][len(text)].add(text)
        self._by_head = {
            head: tuple(sorted(sizes.items(), reverse=True)) for head, sizes in by_head.items()
        }
        self._head_sizes = sorted({len(head) for head in self._by_head}, reverse=True)
        self._begun = {
            text[:size]: name
            for text, name in self._names.items()
            for size in range(1, min(len(text), HEAD))
        }
        self.longest = max(map(len, self._names), default=0)
        """Bytes of the longest text."""

    def places(self, data: bytes) -> list[Place]:
        """The parts of `data` that these texts cover, in order and apart from each other.

        Where one text holds another, or two overlap, the part covers both and has the name of
        the first, of the longest of those.
        """
        found: list[Place] = []
        if not self._names:
            return found
        position, size, overlaps = 0, len(data), 0
        while (start := self._finder.find(data, position, size)) >= 0:
            text = self._longest_at(data, start)
            if text is None:
                position = start + 1
                continue
            end = start + len(text)
            if found and start < (last := found[-1]).end:
                overlaps += 1
                found[-1] = last._replace(end=max(end, last.end))
            else:
                overlaps = overlaps if found and start == found[-1].end else 0
                found.append(Place(start, end, self._names[text]))
            # From the next byte on, for a text that begins inside this one and ends behind it.
            position = start + 1 if overlaps < OVERLAPS else end
        return found

    @cached_property
    def _finder(self) -> _Finder:
        return _Finder(self._by_head)

    def reversed(self) -> Literals:
        """The same texts from their ends to their beginnings."""
        return Literals({text[::-1]: name for text, name in self._names.items()})

    def _longest_at(self, data: bytes, start: int) -> bytes | None:
        """The longest text that begins here; None where none does."""
        best: bytes | None = None
        for head in self._head_sizes:
            for size, texts in self._by_head.get(data[start : start + head], ()):
                if (text := data[start : start + size]) in texts:
                    best = text if best is None or len(text) > len(best) else best
                    break
        return best

    def begun(self, data: bytes, least: int) -> Place | None:
        """The first place where a text begins at the end of `data` that `data` ends before.

        Args:
            least: bytes of it that must be there, 1 at least.
        """
        size = len(data)
        for start in range(max(0, size - self.longest + 1), size - least + 1):
            head = data[start : start + HEAD]
            if len(head) < HEAD:
                if (name := self._begun.get(head)) is not None:
                    return Place(start, size, name)
                continue
            for longer, texts in self._by_head.get(head, ()):
                if longer > size - start:
                    for text in texts:
                        if text.startswith(data[start:]):
                            return Place(start, size, self._names[text])
        return None


class _Finder:
    """Finds the first of some short texts."""

    def __init__(self, heads: Iterable[bytes]) -> None:
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.never_capture = True
        options.log_errors = False
        options.max_mem = MEMORY
        program = re2.compile(b"|".join(re2.escape(head) for head in sorted(heads)), options)
        # The public `search` makes a match object for each; this is what it calls.
        self._match = program._regexp.Match
        self._anywhere = re2._Anchor.UNANCHORED

    def find(self, data: bytes, begin: int, end: int) -> int:
        """Where the first begins that lies between `begin` and `end`; -1 where none does."""
        start: int = self._match(self._anywhere, data, begin, end)[0][0]
        return start
