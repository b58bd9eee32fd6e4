"""Inspect AI logs: `.json` with all samples, and `.eval` archives with a file for each.

Each epoch of a sample is a job. The layout is that of inspect_ai, `log/_recorders/eval.py` and
`log/_recorders/chunked/format.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from opsdrill.evidence.importers.inspect.job import TITLE, summarised, unread
from opsdrill.evidence.importers.inspect.parts import Header, SampleFile
from opsdrill.evidence.importers.inspect.sample import read_sample
from opsdrill.evidence.transcripts.archive import Archive, unpacked
from opsdrill.evidence.transcripts.glimpse import Glimpse
from opsdrill.evidence.transcripts.imported import Imported, Placing
from opsdrill.evidence.transcripts.source import Damaged, Source

_START = "_journal/start.json"
_CHUNKED = "/sample.json"
_SUMMARIES = re.compile(r"summaries\.json|_journal/summaries/\d+\.json")


class InspectImporter:
    """Reads logs of Inspect AI."""

    title = TITLE

    def knows(self, glimpse: Glimpse) -> bool:
        """An archive with a header or a journal, or a document about the eval of a task."""
        if glimpse.members:
            return bool({"header.json", _START} & glimpse.members)
        return glimpse.has("version", "eval", "eval.task", "eval.model")

    def read(self, source: Source, placing: Placing) -> Iterator[Imported]:
        """Every epoch of every sample, in the log's order."""
        try:
            if not source.members:
                yield from _named(_in_document(source, placing))
                return
            with unpacked(source) as archive:
                yield from _named(_in_archive(source, archive, placing))
        except Damaged as damage:
            raise source.broken(str(damage)) from None


def _in_document(source: Source, placing: Placing) -> Iterator[Imported]:
    parts, missing = source.parts("status", "eval", "samples")
    if "samples" not in parts:
        raise source.broken("is an Inspect log without any sample")
    header = Header.of(parts)
    found = parts["samples"].objects()
    each = next(found, None)
    if each is None and missing is not None:
        raise source.broken("breaks off before its first sample")
    while each is not None:
        last, each = each, next(found, None)
        behind = missing if each is None else None
        yield read_sample(SampleFile.of(last), header, placing, missing=behind)


def _in_archive(source: Source, archive: Archive, placing: Placing) -> Iterator[Imported]:
    header = _header(archive)
    seen: set[tuple[str, int]] = set()
    refused: list[tuple[str, str]] = []
    names = list(_samples(archive))
    for name in names:
        try:
            file = _sample_file(archive, name)
        except Damaged as damage:
            refused.append((name, str(damage)))
            continue
        seen.add(file.key)
        missing = "the log breaks off" if source.breaks_off and name == names[-1] else None
        yield read_sample(file, header, placing, missing=missing)
    if refused and not seen:
        raise source.broken(f"holds no sample that can be read: {refused[0][1]}")
    for name, why in refused:
        yield unread(_stem(name), why, header, placing)
    yield from _summaries(archive, header, placing, seen if not refused else None)


def _samples(archive: Archive) -> Iterator[str]:
    """The names of the files that are samples, or the heads of samples in chunks."""
    chunked = {
        name.removesuffix(_CHUNKED)
        for name in archive.names
        if name.startswith("samples/") and name.endswith(_CHUNKED)
    }
    for name in archive.names:
        if name.startswith("samples/") and name.endswith(".json"):
            head = next((name[:at] for at in _slashes(name) if name[:at] in chunked), None)
            if head is None or name == head + _CHUNKED:
                yield name


def _slashes(name: str) -> Iterator[int]:
    return (at for at, letter in enumerate(name) if letter == "/")


def _sample_file(archive: Archive, name: str) -> SampleFile:
    if name.endswith(_CHUNKED):
        return SampleFile.of_chunks(archive, name.removesuffix(_CHUNKED))
    return SampleFile.of(archive.member(name), _stem(name))


def _stem(name: str) -> str:
    return name.removeprefix("samples/").removesuffix(_CHUNKED).removesuffix(".json")


def _header(archive: Archive) -> Header:
    for name in ("header.json", _START):
        if name in archive.names:
            try:
                return Header.of(archive.member(name).parts("status", "eval")[0])
            except Damaged:
                continue  # the other one says much the same
    return Header()


def _summaries(
    archive: Archive, header: Header, placing: Placing, seen: set[tuple[str, int]] | None
) -> Iterator[Imported]:
    """The samples of which there is no more than a summary; None seen: nobody knows which."""
    if seen is None:
        return
    for name in archive.names:
        if not _SUMMARIES.fullmatch(name):
            continue
        try:
            for row in archive.member(name).items("item"):
                imported = summarised(row, header, placing, seen)
                if imported is not None:
                    yield imported
        except Damaged:
            continue  # a summary is no evidence of what an agent did


def _named(found: Iterator[Imported]) -> Iterator[Imported]:
    """Each under a name of its own, or under none where it is the only one."""
    first = next(found, None)
    if first is None:
        return
    second = next(found, None)
    if second is None:
        yield replace(first, name="")
        return
    taken: dict[str, int] = {}
    for each in _chained(first, second, found):
        number = taken[each.name] = taken.get(each.name, 0) + 1
        yield each if number == 1 else replace(each, name=f"{each.name}#{number}")


def _chained(*parts: Imported | Iterator[Imported]) -> Iterator[Imported]:
    for part in parts:
        if isinstance(part, Imported):
            yield part
        else:
            yield from part
