"""Reading a damaged transcript as far as it goes; what is missing is told to the ledger."""

from __future__ import annotations

from collections.abc import Iterator

from opsdrill.evidence.transcripts.ledger import Ledger
from opsdrill.evidence.transcripts.rows import listing, within
from opsdrill.evidence.transcripts.source import Damaged, Line, Source


def rows_of(source: Source, ledger: Ledger) -> Iterator[dict[str, object]]:
    """The objects on its lines, in order.

    A line that is no JSON may have held evidence. Only a last one that does not even look like it
    is some other program's word.
    """
    bad: Line | None = None
    try:
        for line in source.lines():
            if bad is not None:
                ledger.place = f"line {bad.number}"
                ledger.lose("a line in the middle cannot be read")
                bad = None
            ledger.place = f"line {line.number}"
            if line.long:
                ledger.lose("a line is too long to be read")
            elif isinstance(line.value, dict):
                yield line.value
            elif line.value is None and not line.null:
                bad = line
            elif any(isinstance(each, dict) for each in listing(line.value)):
                ledger.lose("a line holds a list where an object belongs")
            else:
                ledger.warn("a line holds no JSON object and was left out")
    except Damaged as damage:
        ledger.place = None
        ledger.lose(str(damage))
    ledger.place = None
    if bad is not None and bad.foreign:
        ledger.warn("the last line is no part of the transcript and was left out")
    elif bad is not None:
        ledger.lose("the last line breaks off")


def items_of(source: Source, path: str, ledger: Ledger) -> Iterator[dict[str, object]]:
    """The objects at a path of the single document that it is, in order."""
    try:
        if not source.has_list(path):
            ledger.lose("what should be a list of its messages is none")
        held = path.removesuffix("item").removesuffix(".")
        for number, item in enumerate(source.items(path), 1):
            ledger.place = f"item {number} of {held}" if held else f"item {number}"
            if isinstance(item, dict):
                yield item
            else:
                ledger.lose(f"something in {path.removesuffix('.item')} is no object")
    except Damaged as damage:
        ledger.place = None
        ledger.lose(str(damage))
    ledger.place = None


def objects_in(value: object, key: str, ledger: Ledger) -> list[dict[str, object]]:
    """The objects in the list under a key; anything else that stands there may be evidence."""
    found = within(value, key)
    if found is None or found == "":
        return []
    entries = found if isinstance(found, list) else [found]
    objects = [each for each in entries if isinstance(each, dict)] if entries is found else []
    if len(objects) < len(entries):
        ledger.lose(f"something in `{key}` is not what belongs there and was left out")
    return objects
