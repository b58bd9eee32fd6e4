"""What is kept of a transcript, what is missing of it, and what is to be said about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from opsdrill.evidence.cut import OutputBudget

KEPT = 256 * 1024 * 1024
"""Characters of commands, arguments and messages that are kept of one job."""


class Ledger:
    """The bounds, gaps and warnings of one transcript.

    Args:
        everything: the targets that are partial when something unknown is missing.

    Attributes:
        lost: why a target is partial, by the target's name.
        place: where in the file the importer is, for the first warning of a kind; None: no place.
    """

    def __init__(self, everything: frozenset[str]) -> None:
        self.lost: dict[str, str] = {}
        self._everything = everything
        self._output = OutputBudget()
        self._left = KEPT
        self.place: str | None = None
        self._warnings: Counter[str] = Counter()
        self._first: dict[str, str | None] = {}

    def lose(self, why: str, *targets: str) -> None:
        """Something of these targets is missing; none named: of all."""
        for target in targets or self._everything:
            self.lost.setdefault(target, why)
        self.warn(why)

    def warn(self, text: str) -> None:
        """Tell the one who imports; the same words once, with their number and first place."""
        self._first.setdefault(text, self.place)
        self._warnings[text] += 1

    def warnings(self) -> Iterator[str]:
        """All that is to be told."""
        for text, count in self._warnings.items():
            place = self._first[text]
            if count > 1:
                place = f"{count} times, first on {place}" if place else f"{count} times"
            yield f"{text} ({place})" if place else text

    def room(self, value: object) -> bool:
        """Whether there is room for another text or for arguments; takes it."""
        self._left -= _size(value)
        if self._left < 0:
            self.lose(f"there is more than {KEPT // 1024**2} MiB of commands and messages")
            return False
        return True

    def fit(self, output: str) -> str:
        """The output of a call as it is kept; what is cut of it changes no coverage."""
        return self._output.fit(output)


def _size(value: object) -> int:
    """Characters of a value; it may be nested deeper than functions may call each other."""
    size, rest = 0, [value]
    while rest:
        each = rest.pop()
        size += len(each) if isinstance(each, str) else 8
        if isinstance(each, dict):
            size += sum(len(str(key)) for key in each)
            rest.extend(each.values())
        elif isinstance(each, list | tuple):
            rest.extend(each)
    return size
