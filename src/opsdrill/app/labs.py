"""Which lab a run gets its hosts from: a driver's name, a lab file, or the default.

The default is the sandbox where it can work, else a container engine. It never falls back to this
very machine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from opsdrill.app.wiring import Place
from opsdrill.errors import (
    DriverUnavailable,
    InvalidInput,
    OpsDrillError,
    Problem,
    UnknownName,
    UsageError,
)
from opsdrill.hosts.driver import DRIVERS, Driver, Finding
from opsdrill.hosts.lab import machines
from opsdrill.hosts.secret import Secrets
from opsdrill.model.lab import Lab
from opsdrill.model.run import LabChoice, RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.runner.phases.preflight import check_findings
from opsdrill.scenarios.load import load_model

DEFAULTS = ("sandbox", "container")
"""What is tried, in this order, where nobody names a driver."""
FOLDER = "labs"
FILE = "lab.yaml"
_SUFFIXES = (".yaml", ".yml", ".json")

Notify = Callable[[str, str], None]
Maker = Callable[[LabChoice, frozenset[str]], Awaitable[Driver]]
"""Gives a lab's driver that can work here, told how to log in to some of its hosts."""


def choose(lab: str | None, place: Place) -> LabChoice:
    """The lab that `--lab` means; without it `./lab.yaml`, else the default.

    Raises:
        UnknownName: neither a driver nor a file nor a lab of the data folder.
        InvalidInput: the lab file is broken.
    """
    wanted = lab if lab is not None else place.settings.lab
    if wanted is None:
        here = place.folder / FILE
        if here.is_file():
            return _from_file(here, "lab")
        return by_default()
    if wanted in DRIVERS.names():
        return LabChoice(name=wanted, driver=wanted)
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


def by_default() -> LabChoice:
    """The lab where nobody names one: the first driver that can work."""
    return LabChoice(name=DEFAULTS[0], driver=DEFAULTS[0], by_default=True)


def names(place: Place) -> list[str]:
    """The labs that may be named from afar: those of the data folder, and what makes hosts."""
    return sorted({*DEFAULTS, *_kept(place)})


def named_only(name: str | None, place: Place) -> LabChoice:
    """The lab of a name that may come from afar: never a path, and a driver only by default.

    Without a name, that of the settings where it is such a name, else the default.

    Raises:
        UnknownName: there is no such lab; lists the choices.
        InvalidInput: its file is broken.
    """
    known = names(place)
    if name is None:
        name = place.settings.lab if place.settings.lab in known else None
        if name is None:
            return by_default()
    if name not in known:
        raise UnknownName("lab", name, known)
    if name in DEFAULTS:
        return LabChoice(name=name, driver=name)
    return _from_file(_kept(place)[name], name)


@dataclass(frozen=True, slots=True)
class NamedLab:
    """A lab that may be named from afar; `problem` says why it cannot be used, `choice` is then
    None."""

    name: str
    choice: LabChoice | None
    problem: str | None = None


def all_named(place: Place) -> list[NamedLab]:
    """Every lab that may be named from afar, the broken ones too."""
    found = []
    for name in names(place):
        try:
            found.append(NamedLab(name, named_only(name, place)))
        except OpsDrillError as error:
            found.append(NamedLab(name, None, error.message))
    return found


def _known(driver: str) -> str:
    if driver not in DRIVERS.names():
        raise UnknownName("driver", driver, DRIVERS.names())
    return driver


def _from_file(path: Path, name: str) -> LabChoice:
    lab = load_model(path, Lab, noun="lab")
    try:
        driver = _known(lab.driver or DEFAULTS[0])
    except UsageError as error:
        problem = Problem("driver", f"cannot be had: {error.message}", file=str(path))
        raise InvalidInput("the lab is refused", [problem], hint=error.hint) from None
    return LabChoice(
        name=name,
        driver=driver,
        options=lab.options_for(driver),
        folder=str(path.parent.resolve()),
        lab=lab,
        digest=lab.digest,
        by_default=lab.driver is None,
    )


@dataclass(frozen=True, slots=True)
class Settled:
    """The driver that gives the hosts of a batch, and the lab as it came to be."""

    driver: Driver
    lab: LabChoice

    def runs(self, specs: Iterable[RunSpec]) -> list[RunSpec]:
        """The same runs on that lab."""
        return [spec.model_copy(update={"lab": self.lab}) for spec in specs]


async def settle(
    place: Place,
    specs: Sequence[RunSpec],
    notify: Notify | None = None,
    secrets: Secrets | None = None,
    maker: Maker | None = None,
) -> Settled:
    """A driver that can work here for all runs of a batch; of a default, the first that can.

    Secrets of the hosts that the scenarios use must be there; `secrets` are those that were
    looked up already. A `maker` gives drivers that are there already, instead of new ones.

    Raises:
        DriverUnavailable: this machine or the lab cannot give such hosts.
        UsageError: the lab lacks a host, or an image; or a secret cannot be had.
    """
    scenarios = {spec.scenario.key: spec.scenario for spec in specs}
    names = frozenset(name for scenario in scenarios.values() for name in scenario.host_names)
    failed: dict[str, OpsDrillError] = {}

    async def new(lab: LabChoice, hosts: frozenset[str]) -> Driver:
        return await working(place, lab, hosts, notify, secrets)

    for lab in candidates(specs[0].lab):
        try:
            for scenario in scenarios.values():
                check_fit(lab, scenario)
            return Settled(await (maker or new)(lab, names), lab)
        except (DriverUnavailable, UsageError) as error:
            failed[lab.driver] = error
    raise _none_works(failed)


def candidates(lab: LabChoice) -> list[LabChoice]:
    """The lab with each driver that may give its hosts, in the order in which they are tried."""
    if not lab.by_default:
        return [lab]
    found = []
    for driver in DEFAULTS:
        if driver in DRIVERS.names():
            options = lab.lab.options_for(driver) if lab.lab else {}
            name = lab.name if lab.lab else driver
            found.append(
                lab.model_copy(update={"name": name, "driver": driver, "options": options})
            )
    return found


def _none_works(failed: dict[str, OpsDrillError]) -> OpsDrillError:
    if len(failed) == 1:
        return next(iter(failed.values()))
    hints = [error.hint for error in failed.values() if error.hint]
    why = "; ".join(error.message for error in failed.values())
    return DriverUnavailable(why, hint=", or ".join(hints) or None)


def check_fit(choice: LabChoice, scenario: Scenario) -> None:
    """Make sure that the lab has the hosts and the images that a scenario asks for.

    Raises:
        UsageError: names the first that it lacks.
    """
    lab = choice.lab or Lab()
    lasting = not DRIVERS.get(choice.driver).throw_away
    for host in scenario.hosts:
        if lasting:
            # Whatever it is called, a host of `local` is this very machine.
            if lab.hosts and host.name not in lab.hosts and choice.driver != "local":
                raise UsageError(
                    f"the scenario {scenario.key} needs the host {host.name!r}, which the lab"
                    f" {choice.name} does not have",
                    hint=f"its hosts: {', '.join(lab.hosts)}",
                )
            continue
        image = host.image or lab.defaults.image
        if image is not None:
            _check_image(choice, lab, image, f"the host {host.name} of {scenario.key}")


def _check_image(choice: LabChoice, lab: Lab, image: str, what: str) -> None:
    if choice.driver == "fake":
        return
    if choice.driver == "sandbox":
        raise UsageError(
            f"{what} needs the image {image!r}, and images of the sandbox are not part of this"
            " version",
            hint="use a lab with `driver: container`, or leave the image out",
        )
    if not lab.images:
        return  # the driver's own name, such as debian:12
    if image not in lab.images:
        raise UsageError(
            f"{what} needs the image {image!r}, which the lab {choice.name} does not have",
            hint=f"its images: {', '.join(lab.images)}",
        )
    if image not in lab.images_for(choice.driver):
        raise UsageError(
            f"{what} needs the image {image!r}, and the lab {choice.name} does not say what the"
            f" driver {choice.driver} makes of it",
            hint=f"add `{choice.driver}:` to `images.{image}`",
        )


async def driver_for(
    place: Place,
    lab: LabChoice,
    hosts: Iterable[str] | None,
    notify: Notify | None = None,
    secrets: Secrets | None = None,
) -> Driver:
    """A new driver for a lab, told how to log in to some of its hosts, or to all (None).

    Raises:
        UnknownName: nobody registered it.
        UsageError: it refuses its options, or a secret cannot be had.
    """
    if lab.lab is None or not lab.lab.hosts:
        return place.driver(lab, notify=notify)
    folder = Path(lab.folder) if lab.folder else place.folder
    # Commands that print secrets may take their time, and signals must be heard meanwhile.
    found = await asyncio.to_thread(machines, lab.lab, folder, hosts, secrets)
    return place.driver(lab, found, notify=notify)


async def working(
    place: Place,
    lab: LabChoice,
    hosts: frozenset[str],
    notify: Notify | None = None,
    secrets: Secrets | None = None,
) -> Driver:
    """As `driver_for`, of a driver that can work here, which is tried where hosts are needed.

    Raises:
        DriverUnavailable: it cannot.
    """
    driver = await driver_for(place, lab, hosts, notify, secrets)
    if not hosts:
        return driver
    try:
        check_findings(driver.name, await driver.preflight())
    except BaseException:
        await driver.close()
        raise
    return driver


def blocks(finding: Finding) -> bool:
    """The finding alone makes its driver unusable here."""
    return finding.blocks and not finding.good


def named(lab: str | None, driver: str | None, place: Place) -> LabChoice:
    """The lab that `--lab` or `--driver` means; without both as `choose`.

    Raises:
        UsageError: both are given; otherwise as `choose`.
    """
    if lab is not None and driver is not None:
        raise UsageError("--lab and --driver both say where hosts come from", hint="give only one")
    return choose(lab, place) if driver is None else choose_for(driver, place)


def choose_for(driver: str, place: Place) -> LabChoice:
    """The lab for one driver: the one here, where it is for that driver, else the driver alone.

    Raises:
        UnknownName: there is no such driver.
        InvalidInput: the lab file here is broken.
    """
    here = choose(None, place)
    fitting = {lab.driver: lab for lab in candidates(here)} if here.lab else {}
    return fitting.get(driver) or LabChoice(name=driver, driver=_known(driver))
