"""OD015: ` #` inside a text without quotes begins a comment, and the text ends before it.

Said only where what is left has a quote that is never closed: `run: echo "a # b"` is `echo "a`.
"""

from __future__ import annotations

from collections.abc import Iterator

from opsdrill.scenarios.document import Document
from opsdrill.scenarios.lint.check import Finding
from opsdrill.scenarios.lint.shell import unquoted

_TEXTS = ("run", "pattern", "when")


class CutByComment:
    code = "OD015"

    def __call__(self, document: Document) -> Iterator[Finding]:
        for location, left in document.cut_by_comment():
            bare = unquoted(left)
            if location[-1:] and location[-1] in _TEXTS and ('"' in bare or "'" in bare):
                yield Finding(
                    location,
                    "ends at ` #`, which begins a comment, inside an open quote",
                    "put the whole text in quotes, or write it as a | text",
                )
