"""Texts of an Inspect sample that stand in its attachments."""

from __future__ import annotations

import re

from opsdrill.evidence.transcripts.ledger import Ledger
from opsdrill.evidence.transcripts.rows import spoken

_ATTACHED = re.compile(r"(?:attachment|tc)://([0-9a-f]{32}|[0-9]{1,12})")
_MOST = 1_000_000
"""Attachments of one sample that are asked for."""


class Texts:
    """Puts attached texts where they belong.

    Attributes:
        wanted: what the attachments are called that are needed whole.
        outputs: what those are called that only tell what tools gave back.
        found: the needed attachments.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.wanted: set[str] = set()
        self.outputs: set[str] = set()
        self.found: dict[str, str] = {}
        self._ledger = ledger

    def look(self, *values: object, output: bool = False) -> None:
        """These values will be needed; of output, about."""
        names = self.outputs if output else self.wanted
        rest = list(values)
        while rest:
            value = rest.pop()
            if isinstance(value, str):
                name = _ATTACHED.fullmatch(value)
                if name and len(names) < _MOST:
                    names.add(name[1])
            elif isinstance(value, dict):
                rest.extend(value.values())
            elif isinstance(value, list):
                rest.extend(value)

    def whole(self, value: object) -> object:
        """The value with every attached text in its place; null for one that is missing."""
        return self._put(value, evidence=True)

    def said(self, content: object) -> str:
        """The text of a message's content."""
        return spoken(self.whole(content))

    def output(self, value: object) -> object:
        """The same for what a tool gave back, of which nothing depends."""
        return self._put(value, evidence=False)

    def _put(self, value: object, *, evidence: bool) -> object:
        if isinstance(value, str):
            name = _ATTACHED.fullmatch(value)
            if name is None:
                return value
            if evidence and name[1] not in self.found:
                self._ledger.lose("a text stands in an attachment that is not in it")
            return self.found.get(name[1])
        if isinstance(value, dict):
            return {key: self._put(item, evidence=evidence) for key, item in value.items()}
        if isinstance(value, list):
            return [self._put(item, evidence=evidence) for item in value]
        return value
