"""The field types that the models share, and their two roots.

`Written` is for what people write (scenarios): an explicit null for an optional key is the same
as leaving it out. `Recorded` is for what programs write (job records, results).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

T = TypeVar("T")

DNS_LABEL = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"


def _tuple(value: object) -> object:
    # JSON and YAML know lists only; the models keep tuples, which cannot change.
    return tuple(value) if isinstance(value, list) else value


def _instant(value: object) -> object:
    """RFC 3339 with an offset, microseconds kept; a naive time compares with nothing."""
    if isinstance(value, datetime):
        parsed = value
    elif isinstance(value, str):
        if len(value) < 11 or value[10] not in "Tt ":
            raise PydanticCustomError("instant", "is not a time like 2026-01-31T12:00:00Z")
        try:
            parsed = datetime.fromisoformat(value)
        except ValueError:
            raise PydanticCustomError(
                "instant", "is not a time like 2026-01-31T12:00:00Z"
            ) from None
    else:
        raise PydanticCustomError("instant", "must be a text like 2026-01-31T12:00:00Z")
    if parsed.tzinfo is None:
        raise PydanticCustomError(
            "instant", "is a time without an offset; add Z or one like +02:00"
        )
    return parsed.astimezone(UTC)


def _not_blank(value: str) -> str:
    if not value.strip():
        raise PydanticCustomError("blank", "must not be blank")
    return value


def _unix_lines(value: object) -> object:
    # An editor on Windows writes CRLF; a shell would take the CR as part of the last word.
    return value.replace("\r\n", "\n") if isinstance(value, str) else value


Items = Annotated[tuple[T, ...], BeforeValidator(_tuple)]
"""A JSON list, kept as a tuple."""

Instant = Annotated[
    datetime,
    BeforeValidator(_instant),
    PlainSerializer(
        lambda value: value.isoformat().replace("+00:00", "Z"), return_type=str, when_used="json"
    ),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""A moment in UTC, microseconds kept; written and read as RFC 3339."""

NotBlank = Annotated[
    str, AfterValidator(_not_blank), WithJsonSchema({"type": "string", "pattern": r"\S"})
]
ShellText = Annotated[NotBlank, BeforeValidator(_unix_lines)]
"""A shell command as written, with LF line ends."""

HostName = Annotated[str, StringConstraints(pattern=DNS_LABEL)]
"""A DNS label."""

Seconds = Annotated[
    float,
    BeforeValidator(lambda value: float(value) if type(value) is int else value),
    Field(gt=0, le=86400 * 7, allow_inf_nan=False),
]
"""A duration in seconds; whole numbers may be written without a point."""


class Recorded(BaseModel):
    """Frozen, strict (a boolean is not an integer), unknown keys refused."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", use_attribute_docstrings=True
    )


class Written(Recorded):
    """As `Recorded`, and an explicit null for an optional key counts as not written."""

    @model_validator(mode="before")
    @classmethod
    def _null_is_absent(cls, value: Any) -> Any:
        if not isinstance(value, dict) or None not in value.values():
            return value
        fields = cls.model_fields
        return {
            key: item
            for key, item in value.items()
            if not (
                item is None
                and isinstance(key, str)
                and (field := _field_for(fields, key)) is not None
                and not field.is_required()
            )
        }


def _field_for(fields: dict[str, Any], key: str) -> Any:
    for name, field in fields.items():
        if key == (field.alias or name):
            return field
    return None
