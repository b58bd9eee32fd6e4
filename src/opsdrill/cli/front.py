"""What every command is told: the options that hold for all of them, and where to write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from opsdrill.cli.output import Output

if TYPE_CHECKING:
    from opsdrill.app.scenarios import Kept, Loaded
    from opsdrill.app.wiring import Place

PASSED, FAILED, INVALID, ERROR, INTERRUPTED = 0, 1, 2, 3, 130
"""The exit statuses, see docs/reference/cli.md."""


@dataclass
class Front:
    """The options for all commands. `place` and `out` are made when they are first asked for."""

    home: Path | None = None
    no_color: bool = False
    debug: bool = False
    _place: Place | None = field(default=None, repr=False)
    _out: Output | None = field(default=None, repr=False)

    @property
    def place(self) -> Place:
        """The data folder and the settings.

        Raises:
            InvalidInput: a settings file is broken.
        """
        if self._place is None:
            from opsdrill.app.wiring import find_place

            self._place = find_place(self.home, Path.cwd())
        return self._place

    @property
    def kept(self) -> Kept:
        """The scenarios of the store, which is opened when they are first asked for."""
        return _Kept(self)

    @property
    def out(self) -> Output:
        if self._out is None:
            color = self.place.settings.color
            chosen = {"always": True, "never": False}.get(color or "")
            self._out = Output(False if self.no_color else chosen)
        return self._out


class _Kept:
    """The library of the store is loaded only where there is one, and a key is looked for.

    A store that cannot be read keeps nobody from what is in files; that is told once.
    """

    def __init__(self, told: Front) -> None:
        self._told = told
        self._known: list[Loaded] | None = None

    def __iter__(self) -> Iterator[Loaded]:
        if self._known is None:
            self._known = self._read()
        return iter(self._known)

    def _read(self) -> list[Loaded]:
        if not self._told.place.has_store:
            return []
        from opsdrill.app.shelf import kept_here
        from opsdrill.errors import StoreError

        try:
            return kept_here(self._told.place)
        except StoreError as error:
            self._told.out.warning(f"scenarios in the store were not looked at: {error.message}")
            return []


def front(context: typer.Context) -> Front:
    """The options for all commands, as they were given before or after the command's name."""
    found = context.find_object(Front)
    assert found is not None
    return found
