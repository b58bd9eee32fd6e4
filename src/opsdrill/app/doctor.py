"""What this machine can do, what is missing and how to get it; and cleaning up after kills."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass

from opsdrill.app import documents, labs
from opsdrill.app.recovery import recover
from opsdrill.app.wiring import Place, opened
from opsdrill.errors import OpsDrillError
from opsdrill.hosts.driver import DRIVERS, Finding
from opsdrill.model.run import LabChoice

SCRIPTED = ("fake",)
"""Drivers that need nothing of this machine, so that they say nothing about it."""


@dataclass(frozen=True, slots=True)
class DriverReport:
    """What one driver found out by trying."""

    name: str
    findings: tuple[Finding, ...]

    @property
    def usable(self) -> bool:
        return not any(labs.blocks(finding) for finding in self.findings)


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
    """Ask every driver what works here; with `clean` remove what killed processes left."""
    return asyncio.run(_examine(place, clean))


async def _examine(place: Place, clean: bool) -> Report:
    cleaned: list[str] = []
    if clean:
        with place.store() as store:
            cleaned = await recover(place, store)
    names = [name for name in DRIVERS.names() if name not in SCRIPTED]
    return Report(tuple([await _report(place, name) for name in names]), tuple(cleaned))


async def _report(place: Place, name: str) -> DriverReport:
    try:
        driver = place.driver(LabChoice(name=name, driver=name))
    except OpsDrillError as error:
        return DriverReport(name, (Finding("driver", False, str(error), error.hint, blocks=True),))
    async with opened(driver):
        return DriverReport(name, tuple(await driver.preflight()))


def document(report: Report) -> bytes:
    """The report for programs."""
    rows = [
        {
            "name": driver.name,
            "usable": driver.usable,
            "findings": [asdict(finding) for finding in driver.findings],
        }
        for driver in report.drivers
    ]
    return documents.document(
        "doctor", "drivers", rows, usable=report.usable, cleaned=list(report.cleaned)
    )
