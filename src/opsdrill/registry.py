"""One registry for everything that can be plugged in: names -> implementations.

Built-ins are entry points of this package, found the same way as anyone else's.
"""

from __future__ import annotations

from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar, cast

from opsdrill.errors import UnknownName

T = TypeVar("T")


class Registry(Generic[T]):
    """The implementations of one kind, loaded when they are asked for and not before.

    Args:
        kind: the noun shown when a name is missing, e.g. `"driver"`.
        group: the entry point group, e.g. `"opsdrill.drivers"`.
    """

    def __init__(self, kind: str, group: str) -> None:
        self.kind = kind
        self.group = group

    @cached_property
    def _entries(self) -> dict[str, EntryPoint]:
        return {entry.name: entry for entry in entry_points(group=self.group)}

    def names(self) -> list[str]:
        """All registered names, sorted."""
        return sorted(self._entries)

    def get(self, name: str) -> T:
        """The implementation called `name`.

        Raises:
            UnknownName: nobody registered it; the message lists the choices.
        """
        entry = self._entries.get(name)
        if entry is None:
            raise UnknownName(self.kind, name, self._entries)
        return cast("T", entry.load())
