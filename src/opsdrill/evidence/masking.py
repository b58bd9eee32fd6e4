"""Masking whole models: every text in them, whatever they are made of.

A text that can only be written in certain ways (the name of a host, a status, a file mode) cannot
become `[masked:NAME]`. It stays as it is, and is told to who asked.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, TypeAdapter, ValidationError

from opsdrill.evidence.mask import Mask
from opsdrill.model.event import ToolReturned
from opsdrill.model.job import ToolCall
from opsdrill.model.rules import PatternMatch
from opsdrill.model.scenario import Reply

M = TypeVar("M", bound=BaseModel)

_PATTERNS: frozenset[tuple[type[BaseModel], str]] = frozenset(
    {(PatternMatch, "pattern"), (Reply, "when")}
)
"""The fields that are regular expressions."""


_OUTPUTS: frozenset[tuple[type[BaseModel], str]] = frozenset(
    {(ToolReturned, "output"), (ToolCall, "output")}
)
"""The fields that may say of themselves what was left out of them."""


def masked(mask: Mask, model: M) -> M:
    """The model with every text in it masked; the very same object where there is no secret."""
    return Masking(mask).of(model)


class Masking:
    """Masks models, and remembers what it met.

    Attributes:
        names: the secrets that were masked.
        left: texts with a secret in them that cannot be written otherwise.
    """

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self.names: set[str] = set()
        self.left: set[str] = set()

    def of(self, model: M) -> M:
        """The model with every text in it masked."""
        return cast("M", self._model(model))

    def _model(self, model: BaseModel) -> BaseModel:
        kind = type(model)
        changed: dict[str, Any] = {}
        for name, old in model.__dict__.items():
            if isinstance(old, str):
                new: Any = self._text(old, (kind, name))
            else:
                new = self._value(old)
            if new is not old:
                fitting = self._fitting(kind, name, old, new)
                if fitting is not old:
                    changed[name] = fitting
        return model.model_copy(update=changed) if changed else model

    def _value(self, value: Any) -> Any:
        """A value of any kind, masked; itself where nothing was."""
        match value:
            case str():
                return self._text(value)
            case BaseModel():
                return self._model(value)
            case tuple() | list():
                new = [self._value(item) for item in value]
                if all(a is b for a, b in zip(new, value, strict=True)):
                    return value
                return type(value)(new)
            case dict():
                return self._dict(value, keys=True)
            case _:
                return value

    def _text(self, old: str, field: tuple[type[BaseModel], str] | None = None) -> str:
        pattern = field in _PATTERNS
        if pattern:
            new = self._mask.pattern(old)
        elif field in _OUTPUTS:
            new = self._mask.output(old)
        else:
            new = self._mask.text(old)
        if new is not old:
            self.names |= set(self._mask.names(old, pattern=pattern))
        return new

    def _dict(self, old: dict[Any, Any], *, keys: bool) -> dict[Any, Any]:
        new: dict[Any, Any] = {}
        for key, item in old.items():
            shown = self._value(key) if keys else key
            # Two keys that are the same secret, or look so: neither may push out the other.
            number = 2
            while shown in new:
                shown = f"{shown} ({number})"
                number += 1
            new[shown] = self._value(item)
        same = len(new) == len(old) and all(
            a is b and new[a] is old[b] for a, b in zip(new, old, strict=True)
        )
        return old if same else new

    def _fitting(self, kind: type[BaseModel], name: str, old: Any, new: Any) -> Any:
        """What the field can hold: the masked value, else as much of it as it can."""
        fits = _fits(kind, name)
        if fits(new):
            return new
        if isinstance(old, dict):
            inner = self._dict(old, keys=False)
            for key in old:
                self._tell(key)
            if inner is old or fits(inner):
                return inner
        elif isinstance(old, (tuple, list)):
            items = [
                b if fits(type(old)([b])) else self._tell(a) for a, b in zip(old, new, strict=True)
            ]
            if fits(type(old)(items)):
                return type(old)(items)
        return self._tell(old)

    def _tell(self, old: Any) -> Any:
        """Say which texts stay; returns `old`."""
        match old:
            case str():
                if self._mask.text(old) != old:
                    self.left.add(old)
            case dict():
                for key, item in old.items():
                    self._tell(key)
                    self._tell(item)
            case tuple() | list():
                for item in old:
                    self._tell(item)
        return old


@cache
def _fits(kind: type[BaseModel], name: str) -> Callable[[object], bool]:
    """Whether a field of a model may have a value."""
    field = kind.model_fields[name]
    whole: Any = field.annotation
    for part in field.metadata:
        whole = Annotated[whole, part]
    adapter: TypeAdapter[Any] = TypeAdapter(whole)

    def fits(value: object) -> bool:
        try:
            adapter.validate_python(value)
        except ValidationError:
            return False
        return True

    return fits
