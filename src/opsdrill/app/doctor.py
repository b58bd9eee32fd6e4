"""What this machine can do, what is missing and how to get it; and cleaning up after kills."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from typing import Literal

from opsdrill.app import advice, documents, labs
from opsdrill.app.recovery import recover
from opsdrill.app.stores import opened_store
from opsdrill.app.wiring import Place, opened
from opsdrill.errors import OpsDrillError
from opsdrill.hosts.driver import DRIVERS, Finding

SCRIPTED = ("fake",)
"""Drivers that need nothing of this machine, so that they say nothing about it."""

State = Literal["works", "needs a lab", "cannot work here"]
"""What a driver can do. One that needs a lab has what it takes of this machine, as far as can be
told without the lab."""


@dataclass(frozen=True, slots=True)
class DriverReport:
    """What one driver found out by trying."""

    name: str
    findings: tuple[Finding, ...]

    @property
    def usable(self) -> bool:
        return self.state == "works"

    @property
    def state(self) -> State:
        stops = [finding for finding in self.findings if labs.blocks(finding)]
        if not stops:
            return "works"
        return "needs a lab" if all(map(advice.unsaid, stops)) else "cannot work here"


@dataclass(frozen=True, slots=True)
class Report:
    """What all drivers found, and what was cleaned."""

    drivers: tuple[DriverReport, ...]
    cleaned: tuple[str, ...] = ()

    @property
    def usable(self) -> bool:
        """At least one driver can give hosts here."""
        return any(driver.usable for driver in self.drivers)


def examine(place: Place, *, clean: bool = False) -> Report:
    """Ask every driver what works here; with `clean` remove what killed processes left.

    Each is asked by way of the lab here, where that is for it.

    Raises:
        InvalidInput: the lab file here is broken.
    """
    return asyncio.run(_examine(place, clean))


async def _examine(place: Place, clean: bool) -> Report:
    cleaned: list[str] = []
    if clean:
        with opened_store(place) as store:
            cleaned = await recover(place, store)
    names = [name for name in DRIVERS.names() if name not in SCRIPTED]
    return Report(tuple([await _report(place, name) for name in names]), tuple(cleaned))


async def _report(place: Place, name: str) -> DriverReport:
    lab = labs.choose_for(name, place)
    try:
        driver = await labs.driver_for(place, lab, None)
    except OpsDrillError as error:
        return DriverReport(name, (Finding("driver", False, str(error), error.hint, blocks=True),))
    async with opened(driver):
        return DriverReport(name, advice.advised(place, lab, await driver.preflight()))


def document(report: Report) -> bytes:
    """The report for programs."""
    rows = [
        {
            "name": driver.name,
            "usable": driver.usable,
            "state": driver.state.replace(" ", "-"),
            "findings": [asdict(finding) for finding in driver.findings],
        }
        for driver in report.drivers
    ]
    return documents.document(
        "doctor", "drivers", rows, usable=report.usable, cleaned=list(report.cleaned)
    )
