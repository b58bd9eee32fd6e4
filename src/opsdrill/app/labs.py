"""Which lab a run gets its hosts from: a driver's name, a lab file, or the default.

The default is the sandbox where it can work. It never falls back to this very machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field

from opsdrill.app.wiring import Place
from opsdrill.errors import InvalidInput, Problem, UnknownName, UsageError
from opsdrill.hosts.driver import DRIVERS, Driver, Finding
from opsdrill.model.fields import NotBlank, Written
from opsdrill.model.run import LabChoice
from opsdrill.runner.phases.preflight import check_findings
from opsdrill.scenarios.load import load_model

DEFAULT = "sandbox"
FOLDER = "labs"
FILE = "lab.yaml"
_SUFFIXES = (".yaml", ".yml", ".json")
_LATER = ("container", "ssh", "local")
_LATER_KEYS = ("images", "hosts", "pools", "secrets")


class LabDefaults(Written):
    """What holds for every host of the lab."""

    user: Literal["root"] = "root"
    image: NotBlank | None = None


class LabFile(Written):
    """The file `lab.yaml`: a driver and what it is told."""

    driver: NotBlank
    defaults: LabDefaults = LabDefaults()
    options: Mapping[str, str | int | float] = Field(default_factory=dict)
    """For the driver itself, such as `size: 256M` of the sandbox."""
    images: object = None
    hosts: object = None
    pools: object = None
    secrets: object = None


def choose(lab: str | None, place: Place) -> LabChoice:
    """The lab that `--lab` means; without it `./lab.yaml`, else the sandbox.

    Raises:
        UnknownName: neither a driver nor a file nor a lab of the data folder.
        InvalidInput: the lab file is broken.
        UsageError: it asks for something that is not built yet.
    """
    wanted = lab if lab is not None else place.settings.lab
    if wanted is None:
        here = place.folder / FILE
        return _from_file(here, "lab") if here.is_file() else _driver(DEFAULT)
    if wanted in DRIVERS.names() or wanted in _LATER:
        return _driver(wanted)
    path = place.folder / Path(wanted).expanduser()
    if path.is_file():
        return _from_file(path, path.stem)
    if "/" in wanted or wanted.endswith(_SUFFIXES):
        raise UsageError(f"there is no lab file {path}", hint="give a driver's name or a lab file")
    kept = _kept(place).get(wanted)
    if kept is None:
        raise UnknownName("lab", wanted, [*DRIVERS.names(), *_kept(place)])
    return _from_file(kept, wanted)


def _kept(place: Place) -> dict[str, Path]:
    """The labs of the data folder by name: `NAME.yaml`, or `NAME/lab.yaml`."""
    files = sorted((place.home / FOLDER).glob("*"))
    return {path.stem: path for path in files if path.suffix in _SUFFIXES} | {
        path.name: path / FILE for path in files if (path / FILE).is_file()
    }


def _driver(name: str) -> LabChoice:
    if name not in DRIVERS.names() and name in _LATER:
        raise UsageError(
            f"the driver {name!r} is not part of this version",
            hint=f"drivers: {', '.join(DRIVERS.names())}",
        )
    if name not in DRIVERS.names():
        raise UnknownName("driver", name, DRIVERS.names())
    return LabChoice(name=name, driver=name)


def _from_file(path: Path, name: str) -> LabChoice:
    file = load_model(path, LabFile)
    later = [key for key in _LATER_KEYS if getattr(file, key) is not None]
    if file.defaults.image is not None:
        later.append("defaults.image")
    if later:
        problem = Problem(later[0], "is not part of this version", file=str(path))
        raise InvalidInput("lab", [problem], hint="what holds now: driver, options")
    return _driver(file.driver).model_copy(
        update={
            "name": name,
            "options": {key: str(value) for key, value in file.options.items()},
            "folder": str(path.parent.resolve()),
        }
    )


async def require(driver: Driver) -> None:
    """Stop with one clear sentence where the driver cannot work on this machine.

    Raises:
        DriverUnavailable: says what is missing and how to get it.
    """
    check_findings(driver.name, await driver.preflight())


def blocks(finding: Finding) -> bool:
    """The finding alone makes its driver unusable here."""
    return finding.blocks and not finding.good
