"""What an importer is, and how the one for a file is found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from opsdrill.errors import InvalidInput, Problem
from opsdrill.evidence.transcripts.glimpse import Glimpse
from opsdrill.evidence.transcripts.imported import Imported, Placing
from opsdrill.evidence.transcripts.source import Source
from opsdrill.registry import Registry


class Importer(Protocol):
    """Reads one format. Instances keep no state."""

    title: str
    """The format's name for people."""

    def knows(self, glimpse: Glimpse) -> bool:
        """Whether the file is of this format. At most one importer knows a file."""

    def read(self, source: Source, placing: Placing) -> Iterator[Imported]:
        """Every job of the file, in its order.

        What can be read is read: damage is told as a warning and in the coverage. Memory does not
        grow with the file but for what a job record holds.

        Raises:
            InvalidInput: nothing of it can be read.
            UsageError: `placing` lacks the host.
        """


IMPORTERS: Registry[type[Importer]] = Registry("importer", "opsdrill.importers")


def importer_for(source: Source) -> tuple[str, Importer]:
    """The name of the format that a file is of, and its importer.

    Raises:
        InvalidInput: no importer knows it.
    """
    glimpse = source.glimpse
    for name in IMPORTERS.names():
        importer = IMPORTERS.get(name)()
        if importer.knows(glimpse):
            return name, importer
    titles = sorted(IMPORTERS.get(name).title for name in IMPORTERS.names())
    raise InvalidInput(
        "transcript",
        [Problem("", f"is of no format that is known here ({glimpse.shape})", file=source.name)],
        hint=f"known: job record (opsdrill.job/1), {', '.join(titles)}",
    )
