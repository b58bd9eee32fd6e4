"""Golden transcripts: one short file of each kind, and the job record that it is.

`importers/FORMAT/NAME.json` (or another ending) is read for the host web-01. `NAME.expected.json`
is the whole job record, or the list of them where the file holds several; a value that is the
default may be left out. The transcripts are written by hand; the records were made by the importers
and then reviewed line by line against them. Nothing here renews them: a record that changes is made
anew and reviewed again.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opsdrill.evidence.importers.importer import IMPORTERS, importer_for
from opsdrill.evidence.transcripts.imported import Imported, Placing
from opsdrill.evidence.transcripts.source import Source
from opsdrill.model.job import JobRecord

FOLDER = Path(__file__).parent / "importers"
EXPECTED = ".expected.json"
ALL = {
    str(path.relative_to(FOLDER)): path
    for path in sorted(FOLDER.glob("*/*"))
    if path.is_file() and not path.name.endswith(EXPECTED)
}


def _expected(path: Path) -> list[JobRecord]:
    content = json.loads(path.with_name(path.stem + EXPECTED).read_bytes())
    return [
        JobRecord.model_validate(each)
        for each in (content if isinstance(content, list) else [content])
    ]


def _read(path: Path) -> list[Imported]:
    importer = IMPORTERS.get(path.parent.name)()
    return list(importer.read(Source.of(path), Placing(host="web-01")))


@pytest.mark.parametrize("name", ALL)
def test_the_record_is_the_expected_one(name: str) -> None:
    """A golden transcript becomes exactly the job record beside it."""
    found = [imported.record.model_dump(mode="json") for imported in _read(ALL[name])]
    assert found == [record.model_dump(mode="json") for record in _expected(ALL[name])]


@pytest.mark.parametrize("name", ALL)
def test_exactly_one_importer_knows_the_file(name: str, tmp_path: Path) -> None:
    """A format is found by content: under any file name one importer knows it, and no other."""
    unnamed = tmp_path / "transcript"
    unnamed.write_bytes(ALL[name].read_bytes())
    source = Source.of(unnamed)
    assert [
        known for known in IMPORTERS.names() if IMPORTERS.get(known)().knows(source.glimpse)
    ] == [ALL[name].parent.name]
    assert importer_for(source)[0] == ALL[name].parent.name


def test_every_golden_record_has_its_transcript() -> None:
    """No record waits for a transcript that is gone."""
    records = {path.name.removesuffix(EXPECTED) for path in FOLDER.glob(f"*/*{EXPECTED}")}
    assert records == {path.stem for path in ALL.values()}
