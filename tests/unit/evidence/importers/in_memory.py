"""Transcripts that tests write, mistreat and read without a file."""

from __future__ import annotations

import copy
import io
import json
from contextlib import suppress
from pathlib import Path

from hypothesis import strategies as st
from pydantic import JsonValue

from opsdrill.errors import InvalidInput, OpsDrillError
from opsdrill.evidence.importers.importer import IMPORTERS
from opsdrill.evidence.transcripts.imported import Imported, Placing
from opsdrill.evidence.transcripts.source import Source
from opsdrill.model.job import JobRecord, Task, ToolCall

GOLDEN = Path(__file__).parents[3] / "golden" / "importers"

Row = dict[str, JsonValue]


def source_of(data: bytes) -> Source:
    """A transcript's bytes as importers take them."""
    return Source("transcript", lambda: io.BytesIO(data))


def lines(*rows: JsonValue) -> bytes:
    """JSON lines."""
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def knows(format: str, data: bytes) -> bool:
    """Whether the importer takes it for its own."""
    return IMPORTERS.get(format)().knows(source_of(data).glimpse)


def read(format: str, data: bytes) -> list[Imported]:
    """Every job; the importer must know it. The records can be stored."""
    if not knows(format, data):
        raise InvalidInput("transcript", [])
    found = list(IMPORTERS.get(format)().read(source_of(data), Placing(host="web-01")))
    for imported in found:
        again = JobRecord.model_validate_json(imported.record.model_dump_json())
        assert again == imported.record
    return found


def job_of(format: str, data: bytes) -> Imported:
    """The only job."""
    [imported] = read(format, data)
    return imported


def task_of(imported: Imported, id: str = "main") -> Task:
    """One task by its id."""
    return next(task for task in imported.record.tasks if task.id == id)


def calls_of(imported: Imported) -> list[ToolCall]:
    """Every call of every task."""
    return [call for task in imported.record.tasks for call in task.tool_calls]


def commands_of(imported: Imported) -> list[str]:
    """Every shell command, whatever became of it."""
    return [call.command for call in calls_of(imported) if call.kind == "shell"]


def state_of(imported: Imported, target: str) -> str:
    """How much of a target is in the record."""
    return imported.record.coverage.of(target).state


def status_of(imported: Imported) -> str:
    """How the job ended."""
    assert imported.record.job is not None
    return imported.record.job.status


def assert_cut_is_seen(format: str, data: bytes, step: int) -> None:
    """Wherever a transcript breaks off, what is read is a beginning of it, and known as one."""
    every = _by_task(job_of(format, data))
    for end in range(0, len(data), step):
        try:
            cut = job_of(format, data[:end])
        except InvalidInput:
            continue
        found = _by_task(cut)
        for task, commands in found.items():
            assert commands == every[task][: len(commands)], (end, task)
        if found != every:
            assert state_of(cut, "executed_commands") == "partial", end


def _by_task(imported: Imported) -> dict[str, list[str]]:
    return {
        task.id: [call.command for call in task.tool_calls if call.kind == "shell"]
        for task in imported.record.tasks
    }


HOSTILE: list[JsonValue] = [
    None, True, 0, -1, 10**18, 1e308, "", " ", "\x00", "main", "2026-13-45T99:00:00Z", "é" * 3,
    "0001-01-01T00:00:00+14:00", [], {}, [[]], [None, 1, "x"], {"": None}, {"text": 1},
    json.loads("[" * 150 + "]" * 150),
]  # fmt: skip


def _places(value: JsonValue, at: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    found = [at]
    if isinstance(value, dict):
        for key, item in value.items():
            found += _places(item, (*at, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += _places(item, (*at, index))
    return found


@st.composite
def mistreated(draw: st.DrawFn, sample: JsonValue) -> JsonValue:
    """The sample with a few of its nodes dropped, doubled, renamed or of another type."""
    value: JsonValue = copy.deepcopy(sample)
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.sampled_from(_places(value)))
        if not place:
            continue
        *way, last = place
        node: JsonValue = value
        for step in way:
            node = node[step]  # type: ignore[index]
        what = draw(st.sampled_from(["drop", "double", "rename", "retype"]))
        if isinstance(node, list) and isinstance(last, int):
            if what == "drop":
                del node[last]
            elif what == "double":
                node.insert(draw(st.integers(0, len(node))), copy.deepcopy(node[last]))
            else:
                node[last] = copy.deepcopy(draw(st.sampled_from(HOSTILE)))
        elif isinstance(node, dict) and isinstance(last, str):
            if what == "drop":
                del node[last]
            elif what == "rename":
                node[last + "x"] = node.pop(last)
            else:
                node[last] = copy.deepcopy(draw(st.sampled_from(HOSTILE)))
    return value


def assert_only_our_errors(format: str, data: bytes) -> None:
    """Whatever stands in a transcript, it is read or refused in plain words."""
    with suppress(OpsDrillError):
        read(format, data)


def golden(format: str, name: str) -> bytes:
    """A golden transcript."""
    return (GOLDEN / format / name).read_bytes()


def rows_in(data: bytes) -> list[JsonValue]:
    """The JSON values on its lines; lines of others are left out."""
    found: list[JsonValue] = []
    for line in data.decode().splitlines():
        if line.startswith("{"):
            found.append(json.loads(line))
    return found
