"""Does a driver keep what every driver must? The shipped suite, tried on the hosts of a lab."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count

from opsdrill.app import advice, documents, labs
from opsdrill.app.doctor import SCRIPTED
from opsdrill.app.stores import opened_store
from opsdrill.app.wiring import Place, opened
from opsdrill.errors import UsageError
from opsdrill.hosts.conformance import CHECKS, Outcome, examine
from opsdrill.hosts.driver import DRIVERS, Driver, Finding
from opsdrill.hosts.lease import claim_for
from opsdrill.model.run import LabChoice
from opsdrill.model.scenario import HostSpec
from opsdrill.runner.leases import LeaseKeeper
from opsdrill.runner.owner import is_gone, this_process
from opsdrill.runner.phases.preflight import check_findings
from opsdrill.runner.tools import new_run_id

MADE = ("web-01", "db-01")
"""What hosts are called that are made for the checks."""
ROOT = "root and other users"
"""What the driver of this very machine calls the finding whether commands run as root."""
LOCAL = "local"
"""The driver whose one host is this very machine, whatever the host is called."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ConformanceReport:
    """What became of each check, and on which hosts."""

    lab: LabChoice
    hosts: tuple[str, ...]
    outcomes: tuple[Outcome, ...]

    @property
    def kept(self) -> bool:
        """No check failed."""
        return not self.count("failed")

    def count(self, result: str) -> int:
        """How many checks ended like this."""
        return sum(outcome.result == result for outcome in self.outcomes)


def conformance(
    place: Place, lab: str | None, driver: str | None = None, *, confirmed: bool, tell: Tell
) -> ConformanceReport:
    """Try every check on a lab's driver.

    Args:
        place: where the lab is looked for.
        lab: what `--lab` says.
        driver: what `--driver` says.
        confirmed: hosts that last may be written to; nothing is left there.
        tell: told what is waited for, and how each check ended.

    Raises:
        UsageError: there is no such lab, nobody says which driver is meant, it lacks hosts, or its
            hosts last and nobody confirmed.
        InvalidInput: the lab file is broken.
        DriverUnavailable: the driver cannot work here.
        HostError: a host cannot be made, or does not answer.
    """
    choice = _chosen(place, lab, driver)
    names = _names(choice)
    if names and not DRIVERS.get(choice.driver).throw_away:
        if not confirmed:
            where = "this very machine" if choice.driver == LOCAL else ", ".join(names)
            raise UsageError(
                f"the checks run as root on {where} and write files there, which are removed"
                " afterwards",
                hint="give --yes if they may",
            )
        if choice.driver == LOCAL:
            options = {**choice.options, "confirm": "yes"}
            choice = choice.model_copy(update={"options": options})
    return asyncio.run(_conformance(place, choice, names, tell))


def _chosen(place: Place, lab: str | None, driver: str | None) -> LabChoice:
    choice = labs.named(lab, driver, place)
    if choice.by_default and choice.lab is None:
        raise UsageError(
            "there is no lab file here, and nobody says which driver is tried",
            hint=f"opsdrill hosts conformance --driver {choice.driver}",
        )
    if choice.driver in SCRIPTED and "answers" not in choice.options:
        line = "options: {answers: FILE}"
        raise UsageError(
            f"the hosts of the driver {choice.driver} answer from a file, and no lab names one",
            hint=advice.command(place, choice, line),
        )
    return choice


def _names(choice: LabChoice) -> tuple[str, ...]:
    if DRIVERS.get(choice.driver).throw_away:
        return MADE
    listed = tuple(choice.lab.hosts) if choice.lab else ()
    if choice.driver == LOCAL:
        return listed[:1] or ("localhost",)
    return listed[:2]


async def _conformance(
    place: Place, choice: LabChoice, names: tuple[str, ...], tell: Tell
) -> ConformanceReport:
    async with opened(await labs.driver_for(place, choice, names)) as driver:
        found = advice.advised(place, choice, await driver.preflight())
        check_findings(driver.name, found)
        _check_root(driver.name, found)
        if not names:
            raise UsageError(
                f"the lab {choice.name} names no hosts to try the driver {choice.driver} on",
                hint="give a lab file with `hosts:`, two of them for all checks",
            )
        async with _leased(place, choice, driver, names, tell):
            outcomes = await examine(
                driver, [HostSpec(name=name) for name in names], tell=_counted(tell)
            )
    return ConformanceReport(choice, names, tuple(outcomes))


def _check_root(driver: str, findings: Sequence[Finding]) -> None:
    for finding in findings:
        if finding.what == ROOT and not finding.good and driver == LOCAL:
            raise UsageError(
                f"the checks run as root, and the driver {driver} runs commands {finding.detail}",
                hint=finding.remedy,
            )


def _counted(tell: Tell) -> Callable[[Outcome], None]:
    numbers = count(1)
    return lambda outcome: tell(
        f"{next(numbers)} of {len(CHECKS)}: {outcome.check.id}: {outcome.result}"
    )


@asynccontextmanager
async def _leased(
    place: Place, choice: LabChoice, driver: Driver, names: tuple[str, ...], tell: Tell
) -> AsyncIterator[None]:
    """Hosts that last are nobody else's meanwhile."""
    if driver.throw_away:
        yield
        return
    with opened_store(place) as store:
        keeper = LeaseKeeper(store.leases(this_process(), is_gone))
        claim = claim_for(new_run_id(), 1, driver.name, names, choice.lab)
        try:
            async with keeper.hold(claim, tell):
                yield
        finally:
            await keeper.close()


def document(report: ConformanceReport) -> bytes:
    """The report for programs."""
    rows = [
        {
            "id": outcome.check.id,
            "sentence": outcome.check.sentence,
            "result": outcome.result.replace(" ", "-"),
            "seen": outcome.seen or None,
        }
        for outcome in report.outcomes
    ]
    return documents.document(
        "conformance",
        "checks",
        rows,
        lab=report.lab.name,
        driver=report.lab.driver,
        hosts=list(report.hosts),
        passed=report.count("passed"),
        failed=report.count("failed"),
        not_applicable=report.count("not applicable"),
    )
