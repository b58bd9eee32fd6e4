"""Sealed job records as a store keeps them, read fast for grading many.

A store wrote them from a `JobRecord` that had been checked, and its bytes are under a checksum. So
they are not checked against the whole format again: what grading reads is read into light values,
the small parts into the models themselves. Whatever looks unusual goes to the whole reader.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from pydantic import TypeAdapter, ValidationError

from opsdrill.model.job import (
    AgentMessage,
    Coverage,
    Job,
    JobRecord,
    Outcome,
    Stop,
    Task,
    ToolCall,
    ToolKind,
)
from opsdrill.model.ticket import Ticket

OBJECTS = {"shell": "command", "write_file": "path", "update_file": "path"}
"""Under which key of its arguments a call of this kind names what it is about."""
_object_key = OBJECTS.get
_NULL = b"null"
_Instant: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]


class SealedCall(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What grading reads of a `ToolCall`."""

    kind: ToolKind
    tool: str | None = None
    server: str | None = None
    arguments: Any = None
    outcome: Outcome
    started_at: _Instant | None = None


class SealedMessage(msgspec.Struct, frozen=True, gc=False):
    """What grading reads of an `AgentMessage`."""

    text: str


class SealedTask(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What grading reads of a `Task`."""

    id: str
    turn: int | None = None
    host: str
    description: str | None = None
    operational_rules: tuple[str, ...] | None = None
    stop_reason: str | None = None
    summary: str | None = None
    started_at: _Instant | None = None
    ended_at: _Instant | None = None
    tool_calls: tuple[SealedCall, ...] = ()
    messages: tuple[SealedMessage, ...] = ()


class _Outline(msgspec.Struct, gc=False, kw_only=True):
    """A record with the small parts as they stand in the JSON."""

    format: Literal["opsdrill.job/1"]
    job: msgspec.Raw
    no_job_reason: str | None = None
    ticket: msgspec.Raw
    tasks: tuple[SealedTask, ...] = ()
    coverage: msgspec.Raw
    stop: msgspec.Raw
    isolation: Literal["namespaces", "none"] | None = None


@dataclass(frozen=True, slots=True)
class SealedRecord:
    """What grading reads of a `JobRecord`, by the same names."""

    job: Job | None
    no_job_reason: str | None
    ticket: Ticket
    tasks: tuple[SealedTask, ...]
    coverage: Coverage
    stop: Stop | None
    isolation: Literal["namespaces", "none"] | None


AnyCall: TypeAlias = ToolCall | SealedCall
AnyMessage: TypeAlias = AgentMessage | SealedMessage
AnyTask: TypeAlias = Task | SealedTask
AnyRecord: TypeAlias = JobRecord | SealedRecord
"""A job record, however it was read: grading sees no difference."""

_RECORD: TypeAdapter[JobRecord] = TypeAdapter(JobRecord)
_JOB: TypeAdapter[Job | None] = TypeAdapter(Job | None)
_TICKET: TypeAdapter[Ticket] = TypeAdapter(Ticket)
_COVERAGE: TypeAdapter[Coverage] = TypeAdapter(Coverage)
_STOP: TypeAdapter[Stop | None] = TypeAdapter(Stop | None)
_OUTLINE = msgspec.json.Decoder(_Outline)


def read_record(content: bytes) -> AnyRecord:
    """The job record that a store wrote as `content`, for grading.

    It grades as the record that was kept. For bytes of any other origin there is no such promise;
    those are checked in full by whoever takes them in.

    Raises:
        ValueError: it is no job record; for one that a store wrote that means damage.
    """
    try:
        return _light(content)
    except (msgspec.DecodeError, ValidationError, _Unusual):
        return _whole(content)


def _whole(content: bytes) -> JobRecord:
    try:
        return _RECORD.validate_json(content)
    except ValidationError:
        # Python's parser takes lone surrogates, which the others do not.
        return _RECORD.validate_python(json.loads(content))


class _Unusual(Exception):
    """Something that only the whole reader judges."""


def _light(content: bytes) -> SealedRecord:
    found = _OUTLINE.decode(content)
    _look_at(found.tasks)
    return SealedRecord(
        _JOB.validate_json(bytes(found.job)),
        found.no_job_reason,
        _TICKET.validate_json(bytes(found.ticket)),
        found.tasks,
        _coverage(bytes(found.coverage)),
        None if found.stop == _NULL else _STOP.validate_json(bytes(found.stop)),
        found.isolation,
    )


def _look_at(tasks: Sequence[SealedTask]) -> None:
    """Commands and paths are where grading takes them from, and no two tasks are one."""
    try:
        named = [
            call.arguments[key]
            for task in tasks
            for call in task.tool_calls
            if (key := _object_key(call.kind)) is not None
        ]
    except (KeyError, TypeError):
        raise _Unusual from None
    if not set(map(type, named)) <= {str} or len({task.id for task in tasks}) < len(tasks):
        raise _Unusual


@lru_cache(maxsize=64)  # runs of one kind share it
def _coverage(content: bytes) -> Coverage:
    return _COVERAGE.validate_json(content)
