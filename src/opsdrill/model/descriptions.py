"""What stands below the fields of a model in its source, for the JSON Schemas of models."""

from __future__ import annotations

import ast
import inspect
from functools import cache
from itertools import pairwise
from textwrap import dedent

from pydantic import BaseModel


@cache
def described(model: type[BaseModel]) -> dict[str, str]:
    """The text below each field that has one, by the field's name.

    Pydantic can do this by itself, but then reads all sources at every start.
    """
    found: dict[str, str] = {}
    for part in reversed(model.__mro__):
        if part is not BaseModel and issubclass(part, BaseModel):
            found |= _texts(part)
    return {name: text for name, text in found.items() if name in model.model_fields}


def _texts(part: type) -> dict[str, str]:
    body = ast.parse(dedent(inspect.getsource(part))).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, text in pairwise(body.body):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(said))),
            ):
                found[name] = inspect.cleandoc(said)
    return found
