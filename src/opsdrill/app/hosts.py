"""The hosts of a lab: do they answer, what do they lack, and who holds them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from opsdrill.app import advice, documents, labs
from opsdrill.app.stores import opened_store
from opsdrill.app.wiring import Place, opened
from opsdrill.hosts.driver import Driver, Finding
from opsdrill.hosts.lease import Lease
from opsdrill.model.run import LabChoice
from opsdrill.model.scenario import HostSpec
from opsdrill.runner.owner import is_gone, this_process
from opsdrill.store.store import Store

CONNECTION = "connection"
"""What drivers call the finding whether a host answers."""


@dataclass(frozen=True, slots=True)
class HostReport:
    """What was found out about one host; `address` tells how it is reached."""

    name: str
    address: str
    findings: tuple[Finding, ...]

    @property
    def answers(self) -> bool:
        """It can be reached, and nothing keeps it from being used."""
        return not any(
            not finding.good and (finding.blocks or finding.what == CONNECTION)
            for finding in self.findings
        )


@dataclass(frozen=True, slots=True)
class LabReport:
    """What was found out about a lab: its driver as a whole, then host by host."""

    lab: LabChoice
    findings: tuple[Finding, ...]
    hosts: tuple[HostReport, ...]

    made: bool
    """Its hosts are made for each run, so that there are none to look at."""
    go_on: str | None = None
    """Where nobody named a lab: the command that begins one of machines that exist."""

    @property
    def usable(self) -> bool:
        """The driver can work here."""
        return not any(labs.blocks(finding) for finding in self.findings)


def check(place: Place, lab: str | None, driver: str | None = None) -> LabReport:
    """Log in to every host of a lab and look around; nothing is changed there.

    Where there is no lab, it is told what gives hosts by default.

    Args:
        place: where the lab is looked for.
        lab: what `--lab` says.
        driver: what `--driver` says.

    Raises:
        UsageError: there is no such lab, or a secret cannot be had.
        InvalidInput: the lab file is broken.
    """
    return asyncio.run(checked(place, labs.named(lab, driver, place)))


async def checked(place: Place, choice: LabChoice) -> LabReport:
    """As `check`, of a lab that was chosen already."""
    first, *others = labs.candidates(choice)
    found = await _looked_at(place, first)
    for lab in () if found.usable else others:
        other = await _looked_at(place, lab)
        if other.usable:
            found = other
    unnamed = choice.by_default and choice.lab is None
    return replace(found, go_on=advice.own_machines(place)) if unnamed else found


async def _looked_at(place: Place, choice: LabChoice) -> LabReport:
    async with opened(await labs.driver_for(place, choice, None)) as driver:
        found = advice.advised(place, choice, await driver.preflight())
        names = tuple(choice.lab.hosts) if choice.lab and not driver.throw_away else ()
        if not names or any(labs.blocks(finding) for finding in found):
            return LabReport(choice, found, (), driver.throw_away)
        return LabReport(choice, found, await _visited(driver, choice, names), made=False)


async def _visited(
    driver: Driver, choice: LabChoice, names: Sequence[str]
) -> tuple[HostReport, ...]:
    found = await driver.preflight([HostSpec(name=name) for name in names])
    return tuple(
        HostReport(
            name,
            _address(choice, name),
            tuple(finding for finding in found if finding.host == name),
        )
        for name in names
    )


def _address(choice: LabChoice, name: str) -> str:
    assert choice.lab is not None
    machine = choice.lab.machine(name)
    via = f" via {machine.via}" if machine.via else ""
    return f"{machine.user}@{machine.address}:{machine.port}{via}"


def document(report: LabReport) -> bytes:
    """The report for programs."""
    rows = [
        {
            "name": host.name,
            "address": host.address,
            "answers": host.answers,
            "findings": [asdict(finding) for finding in host.findings],
        }
        for host in report.hosts
    ]
    findings = [asdict(finding) for finding in report.findings]
    return documents.document(
        "hosts", "hosts", rows, lab=report.lab.name, driver=report.lab.driver, findings=findings
    )


def leases(place: Place) -> list[Lease]:
    """Who holds lasting hosts, and who waits for them, in the order asked."""
    with opened_store(place) as store:
        return leases_in(store)


def leases_in(store: Store) -> list[Lease]:
    """As `leases`, in a store that is open."""
    return store.leases(this_process(), is_gone).leases()


def leases_document(found: Sequence[Lease]) -> bytes:
    """The leases for programs."""
    rows = [
        {
            "run": lease.run,
            "attempt": lease.attempt,
            "hosts": list(lease.hosts.values()),
            "state": state(lease),
            "since": lease.since,
            "expires_at": lease.expires_at,
            "holder": lease.holder,
        }
        for lease in found
    ]
    return documents.document("leases", "leases", rows)


def state(lease: Lease) -> str:
    return "held" if lease.held else "waiting"
