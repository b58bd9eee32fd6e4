"""Where the parts of one sample of an Inspect log stand: in one file, or in chunks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from opsdrill.evidence.cut import OutputBudget
from opsdrill.evidence.transcripts.archive import Archive
from opsdrill.evidence.transcripts.ledger import KEPT
from opsdrill.evidence.transcripts.rows import listing, mapping, text, whole
from opsdrill.evidence.transcripts.source import LINE_LIMIT, Damaged, Source

_SMALL = (
    "id", "epoch", "input", "output", "limit", "error", "uuid", "started_at", "completed_at",
    "message_refs",
)  # fmt: skip
_LARGE = ("events", "messages", "attachments")


@dataclass(frozen=True, slots=True)
class Header:
    """What a log says of all its samples."""

    status: str | None = None
    model: str | None = None
    version: str | None = None

    @classmethod
    def of(cls, parts: Mapping[str, Source]) -> Header:
        """The header whose parts these are."""
        about = _small(parts.get("eval"))
        status = _small(parts.get("status"))
        return cls(
            status=status if isinstance(status, str) else None,
            model=text(about, "model"),
            version=text(about, "packages", "inspect_ai"),
        )


@dataclass(frozen=True, slots=True)
class SampleFile:
    """One sample as it lies in a log.

    Args:
        name: what it is called where it does not say.
        small: its values that are not long.
        holds: the names of its long parts.
        events: reads them, in order; may raise Damaged on the way.
        messages: reads the last state of the conversation; may raise Damaged on the way.
        attachments: finds long texts by what they are called: some whole, of others, which are
            output, what is kept of output; what is too much is left out.
        whole: it has its end.
    """

    name: str
    small: Mapping[str, object]
    holds: frozenset[str]
    events: Callable[[], Iterator[object]]
    messages: Callable[[], Iterator[object]]
    attachments: Callable[[Collection[str], Collection[str]], dict[str, str]]
    whole: bool = True

    @property
    def key(self) -> tuple[str, int]:
        """What the log's summaries call it."""
        return key_of(self.small)

    @classmethod
    def of(cls, source: Source, name: str = "") -> SampleFile:
        """The sample that is one object.

        Raises:
            Damaged: nothing of it can be read.
        """
        parts, missing = source.parts(*_SMALL, *_LARGE)
        small = {key: _small(parts.get(key)) for key in _SMALL}

        def attachments(wanted: Collection[str], outputs: Collection[str]) -> dict[str, str]:
            part = parts.get("attachments")
            return _kept(part.pairs(), wanted, outputs) if part and (wanted or outputs) else {}

        return cls(
            name=name_of(small) or name,
            small=small,
            holds=frozenset(parts) & frozenset(_LARGE),
            events=lambda: _items([parts["events"]] if "events" in parts else []),
            messages=lambda: _items([parts["messages"]] if "messages" in parts else []),
            attachments=attachments,
            whole=missing is None,
        )

    @classmethod
    def of_chunks(cls, archive: Archive, folder: str) -> SampleFile:
        """The sample whose head is `FOLDER/sample.json` and whose lists are files in it.

        Raises:
            Damaged: its head cannot be read.
        """
        parts, missing = archive.member(f"{folder}/sample.json").parts(*_SMALL)
        small = {key: _small(parts.get(key)) for key in _SMALL}
        chunks = {each: _chunks(archive, f"{folder}/{each}") for each in _LARGE}

        def items(sequence: str) -> Iterator[object]:
            return _items(archive.member(name) for name in chunks[sequence])

        def messages() -> Iterator[object]:
            ranges = [(whole(each, 0), whole(each, 1)) for each in listing(small["message_refs"])]
            for place, message in enumerate(items("messages")):
                if any(start is not None and end and start <= place < end for start, end in ranges):
                    yield message

        def attachments(wanted: Collection[str], outputs: Collection[str]) -> dict[str, str]:
            numbered = ((str(place), each) for place, each in enumerate(items("attachments")))
            return _kept(numbered, wanted, outputs) if wanted or outputs else {}

        return cls(
            name=name_of(small) or folder.removeprefix("samples/"),
            small=small,
            holds=frozenset(each for each in _LARGE if chunks[each]),
            events=lambda: items("events"),
            messages=messages,
            attachments=attachments,
            whole=missing is None,
        )


def key_of(sample: object) -> tuple[str, int]:
    """What tells an epoch of a sample from others in its log."""
    given = mapping(sample).get("id")
    id = given if isinstance(given, str) else str(given) if isinstance(given, int) else ""
    return id, whole(sample, "epoch") or 0


def name_of(sample: object) -> str:
    """The name of the file that would hold this epoch of a sample; empty where it has no id."""
    id, epoch = key_of(sample)
    return f"{id}_epoch_{epoch}" if id else ""


def _chunks(archive: Archive, folder: str) -> list[str]:
    """The files of a sequence in its order: each is called by the place of its first item."""
    found: list[tuple[int, str]] = []
    for name in archive.folder(folder):
        start = name.rpartition("/")[2].removesuffix(".json")
        if start.isascii() and start.isdigit() and len(start) < 19:
            found.append((int(start), name))
    return [name for _, name in sorted(found)]


def _items(sources: Iterator[Source] | list[Source]) -> Iterator[object]:
    for source in sources:
        yield from source.items("item")


def _small(part: Source | None) -> object:
    if part is None or (part.stretch and part.stretch.length > LINE_LIMIT):
        return None
    return part.value("")


def _kept(
    found: Iterator[tuple[str, object]], wanted: Collection[str], outputs: Collection[str]
) -> dict[str, str]:
    kept: dict[str, str] = {}
    left, output = KEPT, OutputBudget()
    try:
        for name, content in found:
            if not isinstance(content, str) or name in kept:
                continue
            if name in wanted:
                left -= len(content)
                if left < 0:
                    break
                kept[name] = content
            elif name in outputs:
                kept[name] = output.fit(content)
    except Damaged:
        pass  # whoever asks for a text that is missing tells of it
    return kept
