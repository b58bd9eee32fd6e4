"""Codex: the rollout files that it keeps, JSON lines of `{timestamp, type, payload}`.

Before September 2025 a rollout was a head and bare items without times. What `codex exec --json`
prints is read by `stream`.
"""

from __future__ import annotations

from collections.abc import Iterator

from opsdrill.evidence.importers.codex.rollout import BARE, RolloutReader, heard_in
from opsdrill.evidence.importers.codex.stream import StreamReader, is_stream
from opsdrill.evidence.transcripts.glimpse import Glimpse
from opsdrill.evidence.transcripts.imported import Imported, Placing
from opsdrill.evidence.transcripts.reading import rows_of
from opsdrill.evidence.transcripts.rows import text
from opsdrill.evidence.transcripts.source import Source
from opsdrill.evidence.transcripts.transcript import Transcript

_KINDS = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})


class CodexImporter:
    """Rollouts of Codex, and the events of `codex exec --json`."""

    title = "Codex"

    def knows(self, glimpse: Glimpse) -> bool:
        """A line is of a kind that only rollouts have, and has a payload; or an older head."""
        wrapped = any(
            text(each, "type") in _KINDS and isinstance(each.get("payload"), dict)
            for each in glimpse.rows
        )
        return wrapped or _is_bare(glimpse) or is_stream(glimpse)

    def read(self, source: Source, placing: Placing) -> Iterator[Imported]:
        """The one job of a rollout."""
        told = Transcript("codex", self.title, placing)
        if is_stream(source.glimpse):
            stream = StreamReader(told)
            for each in rows_of(source, told.ledger):
                stream.line(each)
            yield told.imported()
            return
        reader = RolloutReader(told, heard_in(source))
        rows = 0
        for each in rows_of(source, reader.told.ledger):
            rows += 1
            reader.line(each)
        if not rows:
            raise source.broken("holds no line of a Codex rollout")
        yield reader.end()


def _is_bare(glimpse: Glimpse) -> bool:
    """Its head names a session, and items or states stand on the lines as they are."""
    head = glimpse.rows[0] if glimpse.rows else {}
    return (
        {"id", "timestamp"} <= set(head)
        and bool({"instructions", "git"} & set(head))
        and not {"type", "payload"} & set(head)
        and any(text(row, "type") in BARE or "record_type" in row for row in glimpse.rows[1:])
    )
