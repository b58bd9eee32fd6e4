"""Sealed job records: from the JSON that a store keeps back to the record, fast and all the same."""

from __future__ import annotations

import json

from pydantic import TypeAdapter, ValidationError

from opsdrill.model.job import JobRecord

_RECORD: TypeAdapter[JobRecord] = TypeAdapter(JobRecord)


def read_record(content: bytes) -> JobRecord:
    """The job record that a store wrote as `content`.

    Raises:
        ValueError: it is none; for one that a store wrote that means damage.
    """
    try:
        return _RECORD.validate_json(content)
    except ValidationError:
        # Python's parser takes lone surrogates, which pydantic's does not.
        return _RECORD.validate_python(json.loads(content))
