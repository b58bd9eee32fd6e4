"""Models as JSON bytes, and how the bytes lie in a row: as they are, packed, or as a file."""

from __future__ import annotations

import json
import sys
import zlib
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from opsdrill.errors import StoreDamaged, StoreError
from opsdrill.model.host import ChangedFile, HostAnswer, HostFacts
from opsdrill.model.job import JobRecord
from opsdrill.model.outputs import Outputs
from opsdrill.model.result import Grade, Result
from opsdrill.model.run import RunSpec

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

T = TypeVar("T")

Form = Literal["json", "zlib", "zstd", "file"]

_REPLACED = "\ufffd".encode()

PACK_FROM = 512
"""Bytes from which packing is tried."""
ZSTD_FROM = 8 * 1024
"""Bytes from which zstd is the faster one to unpack; it takes longer to begin."""
_CHECKED = {int(zstd.CompressionParameter.checksum_flag): 1}
INLINE_LIMIT = 16 * 1024
"""Bytes that a row holds at most; a longer body is a file, so that rows stay small."""

SPEC: TypeAdapter[RunSpec] = TypeAdapter(RunSpec)
RESULT: TypeAdapter[Result] = TypeAdapter(Result)
GRADE: TypeAdapter[Grade] = TypeAdapter(Grade)
RECORD: TypeAdapter[JobRecord] = TypeAdapter(JobRecord)
OUTPUTS: TypeAdapter[Outputs] = TypeAdapter(Outputs)
ANSWERS: TypeAdapter[tuple[HostAnswer, ...]] = TypeAdapter(tuple[HostAnswer, ...])
FACTS: TypeAdapter[HostFacts] = TypeAdapter(HostFacts)
CHANGED: TypeAdapter[tuple[ChangedFile, ...]] = TypeAdapter(tuple[ChangedFile, ...])


@dataclass(frozen=True, slots=True)
class Body:
    """JSON as a row holds it; for the form `file`, `data` is the SHA-256 of the JSON (32 bytes)."""

    form: Form
    data: bytes


def dump(adapter: TypeAdapter[T], value: T) -> bytes:
    """`value` as JSON; any text can be written, lone surrogates as escapes.

    Raises:
        StoreError: it cannot be JSON at all (an integer of thousands of digits).
    """
    try:
        content = adapter.dump_json(value, by_alias=True)
        if _REPLACED not in content:
            return content
    except (PydanticSerializationError, ValueError):
        pass
    # Pydantic writes no lone surrogates, and replaces them in the keys of an object.
    try:
        tree = adapter.dump_python(value, by_alias=True)
        return json.dumps(tree, default=_instant, separators=(",", ":")).encode("ascii")
    except (PydanticSerializationError, ValueError, TypeError, RecursionError) as error:
        raise StoreError(f"this cannot be kept as JSON: {error}") from error


def _instant(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"a {type(value).__name__} is no JSON value")


def load(adapter: TypeAdapter[T], content: bytes, what: str) -> T:
    """The value that `dump` wrote.

    Raises:
        StoreError: the content is damaged; `what` says whose.
    """
    try:
        return adapter.validate_json(content)
    except ValidationError:
        pass
    try:
        # Python's parser takes lone surrogates, which pydantic's does not.
        return adapter.validate_python(json.loads(content))
    except (ValueError, RecursionError) as error:
        raise StoreDamaged(f"{what} cannot be read back") from error


def pack(content: bytes) -> Body | None:
    """`content` as a row can hold it; None when it is too long and belongs in a file."""
    if len(content) < PACK_FROM:
        return Body("json", content)
    if len(content) < ZSTD_FROM:
        return Body("zlib", zlib.compress(content, 1))
    packed = zstd.compress(content, options=_CHECKED)
    return None if len(packed) > INLINE_LIMIT else Body("zstd", packed)


def size(body: Body) -> int:
    """Bytes of the JSON of a body that is no file; of a short one as it is packed."""
    if body.form != "zstd":
        return len(body.data)
    try:
        return zstd.get_frame_info(body.data).decompressed_size or len(body.data)
    except zstd.ZstdError:
        return len(body.data)  # damage is told by whoever reads it


def unpack(body: Body, what: str) -> bytes:
    """The JSON of a body that is no file.

    Raises:
        StoreError: the content is damaged; `what` says whose.
    """
    if body.form == "json":
        return body.data
    try:
        return zstd.decompress(body.data) if body.form == "zstd" else zlib.decompress(body.data)
    except (zlib.error, zstd.ZstdError) as error:
        raise StoreDamaged(f"{what} cannot be read back") from error
