"""Where everything is: the data folder, the settings, and the drivers made from them.

Front ends make one `Place` and hand it to the use cases. Its store is in `opsdrill.app.stores`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from opsdrill.app import settings as settings_file
from opsdrill.app.settings import Settings
from opsdrill.hosts.driver import DRIVERS, Driver, DriverContext
from opsdrill.model.lab import LabHost
from opsdrill.model.run import LabChoice
from opsdrill.store.folder import DATABASE, data_folder


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command works.

    Args:
        home: the data folder.
        folder: the working folder, which relative paths start from.
        settings: what the settings files and the environment say.
    """

    home: Path
    folder: Path
    settings: Settings = field(default_factory=Settings)

    @property
    def has_store(self) -> bool:
        """Whether anything was ever kept here."""
        return bool(self.settings.database_url) or (self.home / DATABASE).is_file()

    def was_used(self, driver: str) -> bool:
        """Whether a driver ever worked for this data folder."""
        return self._state(driver).is_dir()

    def driver(
        self,
        lab: LabChoice,
        machines: Mapping[str, LabHost] | None = None,
        *,
        notify: Callable[[str, str], None] | None = None,
    ) -> Driver:
        """A new driver for a lab.

        Args:
            lab: the lab.
            machines: how to log in to its hosts.
            notify: told a run's id and a line about what that run waits for.

        Raises:
            UnknownName: nobody registered it.
            UsageError: it refuses its options.
        """
        maker = DRIVERS.get(lab.driver)
        folder = Path(lab.folder) if lab.folder else self.folder
        state = self._state(lab.driver)
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        context = DriverContext(
            state,
            lab.options,
            folder,
            notify,
            hosts=machines or {},
            images=lab.lab.images_for(lab.driver) if lab.lab else {},
            image=lab.lab.defaults.image if lab.lab else None,
        )
        return maker(context)

    def _state(self, driver: str) -> Path:
        return self.home / "drivers" / driver


def find_place(home: Path | None, folder: Path) -> Place:
    """The place for a command: a flag beats the environment, which beats the settings files.

    Args:
        home: what `--home` says.
        folder: the working folder.

    Raises:
        InvalidInput: a settings file is broken.
    """
    near = settings_file.read(folder, None)
    chosen = home or (Path(near.home) if near.home else None)
    found = data_folder(folder / chosen.expanduser() if chosen else None)
    return Place(found, folder, settings_file.read(folder, found / settings_file.FILE))


@asynccontextmanager
async def opened(driver: Driver) -> AsyncIterator[Driver]:
    """A driver that is closed in the end."""
    try:
        yield driver
    finally:
        await driver.close()
