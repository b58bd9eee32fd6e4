"""Texts that callers send, as data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from opsdrill.errors import InvalidInput
from opsdrill.scenarios.document import Document, decoded
from opsdrill.scenarios.json import parse_json
from opsdrill.scenarios.load import parse_model

M = TypeVar("M", bound=BaseModel)


def decoded_text(content: bytes) -> str:
    """UTF-8 as text. Raises InvalidInput with line and column of what is none."""
    return decoded(content, None)


def plain_json(text: str) -> object:
    """A JSON document as plain data. Raises InvalidInput with line and column."""
    return parse_json(text).data


def sent_model(path: Path, model: type[M]) -> M:
    """What a program sent as a JSON document, as a model.

    Raises:
        InvalidInput: it breaks the format; all problems with their paths.
    """
    document = parse_json(decoded(path.read_bytes(), None), written=False)
    return parse_model(document.data, model, document=document, noun="request")


def given_model(data: object, model: type[M]) -> M:
    """Plain data as a model. Raises InvalidInput with the path of every wrong value."""
    return parse_model(data, model, document=Document(data), noun="request")


def below(error: InvalidInput, part: str) -> InvalidInput:
    """The same refusal of a document that stands at a part of another one."""
    problems = []
    for problem in error.problems:
        between = "." if problem.path and not problem.path.startswith("[") else ""
        path = f"{part}{between}{problem.path}"
        problems.append(replace(problem, path=path).at(None, None, None))
    return InvalidInput("the request is refused", problems, hint=error.hint)
