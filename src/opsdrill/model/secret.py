"""Secrets by reference: a name, and where its value is found when it is used.

Nothing here ever repeats what was written wrongly: it may be the secret itself.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from opsdrill.model.fields import Filled, Written

NAME = r"^[A-Za-z_][A-Za-z0-9_-]{0,99}$"
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]{0,199}$"

_BY_REFERENCE = "{env: NAME}, {file: PATH} or {command: [PROGRAM, ...]}"


def _secret_name(value: object) -> object:
    if not isinstance(value, str) or re.fullmatch(NAME, value) is None:
        raise PydanticCustomError(
            "secret_name",
            "must be the name of a secret (letters, digits, _ and -); its value never stands here",
        )
    return value


def _variable(value: object) -> object:
    if not isinstance(value, str) or re.fullmatch(VARIABLE, value) is None:
        raise PydanticCustomError("variable", "must be the name of an environment variable")
    return value


def _path(value: object) -> object:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise PydanticCustomError("secret_file", "must be the path of a file")
    return value


def _command(value: object) -> object:
    words: list[object] = [*value] if isinstance(value, (list, tuple)) else [value]
    texts: list[str] = [word for word in words if isinstance(word, str) and "\0" not in word]
    if not texts or len(texts) < len(words):
        raise PydanticCustomError(
            "secret_command", "must be a list of words, or a line for a shell"
        )
    if not texts[0].strip():
        raise PydanticCustomError("secret_command", "must begin with a program")
    return value


def _reference(value: object) -> object:
    if not isinstance(value, (dict, SecretSource)):
        raise PydanticCustomError(
            "secret",
            "must say where the secret is found: {ways}; its value never stands here",
            {"ways": _BY_REFERENCE},
        )
    return value


SecretName = Annotated[
    str, BeforeValidator(_secret_name), WithJsonSchema({"type": "string", "pattern": NAME})
]


class SecretSource(Written):
    """Where the value of one secret is found; exactly one of the three."""

    env: (
        Annotated[
            str, BeforeValidator(_variable), WithJsonSchema({"type": "string", "pattern": VARIABLE})
        ]
        | None
    ) = None
    """An environment variable of the process that uses it."""
    file: Annotated[str, BeforeValidator(_path)] | None = None
    """A file that nobody else can read."""
    command: (
        Annotated[Annotated[str, Field(min_length=1)] | Filled[str], BeforeValidator(_command)]
        | None
    ) = None
    """What prints it: words, run without a shell, or one text for `sh -c`."""

    @model_validator(mode="after")
    def _one_way(self) -> SecretSource:
        if sum(way is not None for way in (self.env, self.file, self.command)) != 1:
            message = "needs exactly one of `env`, `file` and `command`"
            raise PydanticCustomError("one_way", message)
        return self


SecretReference = Annotated[SecretSource, BeforeValidator(_reference)]
