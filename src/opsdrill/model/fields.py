"""The field types that the models share, and their two roots.

`Written` is for what people write (scenarios): an explicit null for an optional key is the same
as leaving it out. `Recorded` is for what programs write (job records, results).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any, NoReturn, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    JsonValue,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError, ValidationError

from opsdrill.model.descriptions import described

T = TypeVar("T")

DNS_LABEL = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
KEY = r"^[a-z0-9][a-z0-9-]*$"
USER = r"^[a-z_][a-z0-9_-]{0,31}\$?$"
OWNER = r"^[a-z_][a-z0-9_-]*(:[a-z_][a-z0-9_-]*)?$"
MODE = r"^0?[0-7]{3,4}$"
PROGRAM = r"^[A-Za-z0-9_.+][A-Za-z0-9_.+-]*$"

SHAPES = {
    DNS_LABEL: "must be a host name of small letters, digits and hyphens (at most 63, "
    "no hyphen at either end)",
    KEY: "must be of small letters, digits and hyphens, not starting with a hyphen",
    USER: "must be the name of a user, like root or www-data",
    OWNER: "must be the name of a user, like root, or of a user and a group, like root:adm",
    MODE: 'must be an octal file mode in three or four digits, like "0644"',
    PROGRAM: "must be the name of a command, without a path",
}
"""What each of the patterns above asks for, in words."""


def _tuple(value: object) -> object:
    # JSON and YAML know lists only; the models keep tuples, which cannot change.
    return tuple(value) if isinstance(value, list) else value


_RFC_3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)?", re.ASCII
)


def _instant(value: object) -> object:
    """RFC 3339 with an offset, microseconds kept; a naive time compares with nothing."""
    parsed = value if isinstance(value, datetime) else _parsed(value)
    if parsed.tzinfo is None:
        raise PydanticCustomError(
            "instant", "is a time without an offset; add Z or one like +02:00"
        )
    try:
        return parsed.astimezone(UTC)
    except OverflowError:
        raise PydanticCustomError(
            "instant", "is a time outside of the years 1 to 9999 in UTC"
        ) from None


def _parsed(value: object) -> datetime:
    if not isinstance(value, str):
        raise PydanticCustomError("instant", "must be a text like 2026-01-31T12:00:00Z")
    # Python's reader also takes weeks, times without seconds and other forms of ISO 8601.
    form = _RFC_3339.fullmatch(value)
    try:
        if form is not None:
            return datetime.fromisoformat(value.upper())
    except ValueError:
        pass  # a 13th month, an offset of a hundred hours
    raise PydanticCustomError("instant", "is not a time like 2026-01-31T12:00:00Z")


def _not_blank(value: str) -> str:
    if not value.strip():
        raise PydanticCustomError("blank", "must not be blank")
    return value


def _no_nul(value: str) -> str:
    if "\0" in value:
        raise PydanticCustomError("nul", "holds a NUL character, which no shell can be given")
    return value


def _unix_lines(value: object) -> object:
    # An editor on Windows writes CRLF; a shell would take the CR as part of the last word.
    return value.replace("\r\n", "\n") if isinstance(value, str) else value


Items = Annotated[tuple[T, ...], BeforeValidator(_tuple)]
"""A JSON list, kept as a tuple."""


@dataclass(frozen=True, slots=True)
class Keyword:
    """Adds a keyword to a JSON Schema that pydantic leaves out behind a validator of ours."""

    name: str
    value: JsonValue

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**handler(core), self.name: self.value}


# The bounds stand outside of `_tuple`: inside, pydantic also calls a list too short whose items
# were refused.
Filled = Annotated[
    tuple[T, ...], BeforeValidator(_tuple), Field(min_length=1), Keyword("minItems", 1)
]
"""A JSON list that is not empty, kept as a tuple."""

HOSTS_LIMIT = 64

Hosts = Annotated[
    tuple[T, ...],
    BeforeValidator(_tuple),
    Field(max_length=HOSTS_LIMIT),
    Keyword("maxItems", HOSTS_LIMIT),
]
"""A JSON list with one entry for each host, kept as a tuple."""

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
AskedText = Annotated[str, BeforeValidator(_unix_lines)]
"""A shell command as it was asked of a host, with LF line ends."""
ShellText = Annotated[NotBlank, AfterValidator(_no_nul), BeforeValidator(_unix_lines)]
"""A shell command as people write it: not blank, with LF line ends."""

HostName = Annotated[str, StringConstraints(pattern=DNS_LABEL)]
"""A DNS label."""

SECONDS_LIMIT = 86400 * 7


def _seconds(value: object) -> object:
    # Past the limit the digits do not matter, and Python refuses to turn very many into a float.
    return float(max(-1, min(value, SECONDS_LIMIT + 1))) if type(value) is int else value


Seconds = Annotated[
    float, Field(gt=0, le=SECONDS_LIMIT, allow_inf_nan=False), BeforeValidator(_seconds)
]
"""A duration in seconds; whole numbers may be written without a point."""


@dataclass(frozen=True, slots=True)
class ShortForm:
    """Marks a type that may also be written in other ways: JSON Schemas of those."""

    schemas: tuple[dict[str, JsonValue], ...]

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [*self.schemas, handler(core)]}


def refused(
    place: tuple[str | int, ...], value: object, message: str, **context: str
) -> InitErrorDetails:
    """One error for `refuse`: where, the wrong value, and a template filled from `context`."""
    return InitErrorDetails(
        type=PydanticCustomError("refused", message, context or None),
        loc=place,
        input=value,
    )


def refuse(title: str, errors: list[InitErrorDetails]) -> NoReturn:
    """Stop validation with several errors at once, each at its own place below this one."""
    raise ValidationError.from_exception_data(title, errors)


# The models themselves are frozen; this is how pydantic keeps what belongs to one.
_set_values = object.__setattr__
_set_fields = BaseModel.__dict__["__pydantic_fields_set__"].__set__
_set_extra = BaseModel.__dict__["__pydantic_extra__"].__set__
_set_private = BaseModel.__dict__["__pydantic_private__"].__set__


class Recorded(BaseModel):
    """Frozen, strict (a boolean is not an integer), unknown keys refused."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler(core)
        properties = handler.resolve_ref_schema(schema).get("properties", {})
        for name, text in described(cls).items():
            written = cls.model_fields[name].alias or name
            if written in properties:
                properties[written].setdefault("description", text)
        return schema

    @classmethod
    def made(cls, **values: object) -> Self:
        """A value of our own making, which need not be checked.

        Args:
            values: every field, in the order of the model.
        """
        new = cls.__new__(cls)
        _set_values(new, "__dict__", values)
        _set_fields(new, _fields_of(cls))
        _set_extra(new, None)
        _set_private(new, None)
        return new


@cache
def _fields_of(model: type[BaseModel]) -> set[str]:
    """The names of all fields; nothing changes a set of a frozen value."""
    return set(model.model_fields)


class Written(Recorded):
    """As `Recorded`, and an explicit null for an optional key counts as not written."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = super().__get_pydantic_json_schema__(core, handler)
        body = handler.resolve_ref_schema(schema)
        required = body.get("required", [])
        for key, value in body.get("properties", {}).items():
            if key not in required and {"type": "null"} not in value.get("anyOf", []):
                body["properties"][key] = _or_null(value)
        return schema

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


def _or_null(schema: JsonSchemaValue) -> JsonSchemaValue:
    """The same schema for an optional key, where a null stands for nothing written."""
    about: JsonSchemaValue = {
        key: schema[key] for key in ("title", "description", "default") if key in schema
    }
    bare = {key: value for key, value in schema.items() if key not in about}
    return {**about, "anyOf": [bare, {"type": "null"}]}


def _field_for(fields: dict[str, Any], key: str) -> Any:
    for name, field in fields.items():
        if key == (field.alias or name):
            return field
    return None
