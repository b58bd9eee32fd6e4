"""What holds for every format alike, over all golden transcripts: marks and line ends, secrets,
breaking off, and mistreated input. `docs/reference/transcripts.md`, "Damage"."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue
from tests.unit.evidence.importers.in_memory import (
    GOLDEN,
    assert_only_our_errors,
    lines,
    mistreated,
    read,
    state_of,
)

from opsdrill.app.transcripts import recorded_jobs
from opsdrill.errors import InvalidInput
from opsdrill.evidence.importers.importer import IMPORTERS
from opsdrill.evidence.mask import Mask
from opsdrill.evidence.transcripts.imported import Imported, Placing

SAMPLES = [
    path
    for path in sorted(GOLDEN.glob("*/*"))
    if path.is_file() and ".expected." not in path.name and path.suffix != ".eval"
]
"""All but archives, whose bytes say nothing by themselves."""
STEP = 41
"""Bytes between two places where a transcript is broken off."""

every_sample = pytest.mark.parametrize(
    "path", SAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}"
)


def test_every_format_has_a_sample() -> None:
    """A new importer comes with golden transcripts, and so under this contract."""
    assert {path.parent.name for path in SAMPLES} == set(IMPORTERS.names())


@every_sample
@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b"\r\n\t "], ids=["mark", "space"])
def test_marks_and_line_ends_are_no_part_of_it(path: Path, mark: bytes) -> None:
    """A byte order mark, CRLF and white space before it change nothing."""
    format, data = path.parent.name, path.read_bytes()
    marked = read(format, mark + data.replace(b"\n", b"\r\n"))
    assert [job.record for job in marked] == [job.record for job in read(format, data)]


def _texts(job: Imported) -> Iterator[str]:
    """Texts of every kind that a record holds."""
    yield job.record.ticket.body
    for task in job.record.tasks:
        yield from (task.description or "", task.summary or "")
        yield from (message.text for message in task.messages)
        for call in task.tool_calls:
            yield from (call.command or "", call.path or "", call.output or "")


@every_sample
def test_no_secret_is_left_in_it(path: Path) -> None:
    """Whatever of its texts is a secret: it is in no part of what is kept."""
    format = path.parent.name
    texts = {text for job in read(format, path.read_bytes()) for text in _texts(job)}
    secrets = sorted(text for text in texts if 8 <= len(text) <= 200 and text.isprintable())
    assert secrets
    mask = Mask([(f"S{number}", text) for number, text in enumerate(secrets)])
    for job in recorded_jobs(path, Placing(host="web-01"), mask):
        kept = json.dumps(job.record.model_dump(mode="json"), ensure_ascii=False)
        kept += json.dumps([job.name, job.agent, *job.warnings], ensure_ascii=False)
        for secret in secrets:
            assert secret not in kept
            assert json.dumps(secret, ensure_ascii=False)[1:-1] not in kept


def _commands(job: Imported) -> dict[str, list[str]]:
    return {
        task.id: [call.command for call in task.tool_calls if call.kind == "shell"]
        for task in job.record.tasks
    }


@every_sample
def test_a_beginning_of_it_is_known_as_one(path: Path) -> None:
    """Cut anywhere: no command is made up, they are the first ones, and those that are missing are
    known to be. Spans stand in the order in which they ended, so of them any may be first."""
    format, data = path.parent.name, path.read_bytes()
    every = {job.name: _commands(job) for job in read(format, data)}
    for end in range(0, len(data), STEP):
        try:
            cut = read(format, data[:end])
        except InvalidInput:
            continue
        for job in cut:
            found, whole = _commands(job), every.get(job.name, {})
            ran = Counter(chain(*found.values()))
            assert ran <= Counter(chain(*whole.values())), end
            for task, commands in found.items() if format != "otel" else ():
                assert commands == whole.get(task, [])[: len(commands)], (end, task)
            if found != whole:
                assert state_of(job, "executed_commands") == "partial", end


def _loaded(data: bytes) -> tuple[JsonValue, bool]:
    """A transcript's value, and whether it is a document and no lines."""
    try:
        return json.loads(data), True
    except ValueError:
        return [json.loads(line) for line in data.splitlines() if line.startswith(b"{")], False


@every_sample
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_nothing_in_it_is_trusted(path: Path, data: st.DataObject) -> None:
    """Whatever stands where, it is read or refused in plain words."""
    value, document = _loaded(path.read_bytes())
    changed = data.draw(mistreated(value))
    assert_only_our_errors(path.parent.name, json.dumps(changed).encode())
    if not document and isinstance(changed, list):
        assert_only_our_errors(path.parent.name, lines(*changed))


@every_sample
@settings(max_examples=20, deadline=None)
@given(junk=st.binary(max_size=200), at=st.floats(0, 1))
def test_any_bytes_in_the_middle_of_it(path: Path, junk: bytes, at: float) -> None:
    """Bytes of any kind, anywhere in it, are told and raise nothing else."""
    data = path.read_bytes()
    place = int(at * len(data))
    assert_only_our_errors(path.parent.name, data[:place] + junk + data[place:])
