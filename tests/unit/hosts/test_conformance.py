"""The shipped suite itself: its checks have sentences, and what becomes of each is told."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from opsdrill.errors import HostError, ProvisionFailed
from opsdrill.hosts.conformance import CHECKS, Outcome, examine, examine_one
from opsdrill.hosts.conformance.check import Broken, NotApplicable, on_driver, on_host, on_two_hosts
from opsdrill.hosts.driver import Driver, DriverContext, Host
from opsdrill.hosts.drivers.fake import FakeDriver
from opsdrill.hosts.drivers.fake_script import FakeScript
from opsdrill.model.scenario import HostSpec

TWO = (HostSpec(name="web-01"), HostSpec(name="db-01"))


class LastingDriver(FakeDriver):
    """Hosts that do not vanish with the run."""

    throw_away = False


@pytest.fixture
def driver(tmp_path: Path) -> FakeDriver:
    return FakeDriver(DriverContext(tmp_path))


@on_host(scripted=True)
async def passes(host: Host) -> None:
    """It holds."""


@on_host(scripted=True)
async def breaks(host: Host) -> None:
    """It does not hold."""
    raise Broken("the sky is green")


@on_host(scripted=True)
async def raises(host: Host) -> None:
    """The driver raises what nobody expects."""
    raise KeyError("oops")


@on_host(scripted=True)
async def cannot_tell(host: Host) -> None:
    """It finds out that it cannot be tried."""
    raise NotApplicable("it rains")


@on_host(scripted=True, seconds=0.05)
async def hangs(host: Host) -> None:
    """It never ends."""
    await asyncio.Event().wait()


@on_host("throw-away", scripted=True)
async def wrecks(host: Host) -> None:
    """It breaks its host."""


@on_two_hosts(scripted=True)
async def takes_two(first: Host, second: Host) -> None:
    """It takes two hosts that are not the same."""
    assert first is not second


@on_host()
async def runs_commands(host: Host) -> None:
    """It really runs something."""


def test_the_suite_has_a_sentence_for_every_check_and_no_id_twice() -> None:
    assert len(CHECKS) >= 45
    assert len({check.id for check in CHECKS}) == len(CHECKS)
    for check in CHECKS:
        assert check.sentence.endswith("."), check.id
        assert check.sentence[0].isupper() or check.sentence[0] == "`", check.id


@pytest.mark.parametrize(
    ("check", "result", "seen"),
    [
        (passes, "passed", ""),
        (breaks, "failed", "the sky is green"),
        (raises, "failed", "KeyError: 'oops'"),
        (cannot_tell, "not applicable", "it rains"),
        (hangs, "failed", "it was not over within 0.05 s"),
        (takes_two, "passed", ""),
        (runs_commands, "not applicable", "its hosts answer from a script"),
        (wrecks, "passed", ""),
    ],
    ids=lambda value: getattr(value, "id", None),
)
async def test_outcome_of_a_check(
    driver: FakeDriver, check: object, result: str, seen: str
) -> None:
    """Passed, failed with what was seen, or not applicable with the reason; nothing is raised."""
    assert await examine(driver, TWO, checks=[check]) == [Outcome(check, result, seen)]  # type: ignore[arg-type,list-item]
    assert driver.fleets == {}


async def test_hosts_that_last_are_not_broken(tmp_path: Path) -> None:
    """What breaks a host is only tried where hosts vanish, or somebody says that they may."""
    driver = LastingDriver(DriverContext(tmp_path))
    assert (await examine_one(wrecks, driver, TWO)).seen == "it would break a host that lasts"
    assert (await examine_one(wrecks, driver, TWO, breakable=True)).result == "passed"


async def test_with_one_host_what_takes_two_does_not_apply(driver: FakeDriver) -> None:
    outcomes = await examine(driver, TWO[:1], checks=[passes, takes_two])
    assert [outcome.result for outcome in outcomes] == ["passed", "not applicable"]


async def test_hosts_are_kept_while_they_are_whole(driver: FakeDriver) -> None:
    """A failed check and one that breaks its host get no later one its hosts."""
    seen: list[Host] = []

    @on_host(scripted=True)
    async def looks(host: Host) -> None:
        """It takes note of its host."""
        seen.append(host)

    await examine(driver, TWO, checks=[looks, looks, breaks, looks, wrecks, looks])
    assert [seen[0] is host for host in seen] == [True, True, False, False]
    assert seen[2] is not seen[3]


async def test_where_no_host_can_be_made_there_is_nothing_to_examine(tmp_path: Path) -> None:
    driver = FakeDriver(DriverContext(tmp_path), FakeScript(unmade=("db-01",)))
    with pytest.raises(ProvisionFailed):
        await examine(driver, TWO, checks=[passes])
    assert (await examine_one(takes_two, driver, TWO)).result == "failed"


async def test_a_host_that_does_not_answer_at_first_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not a hundred failed checks."""
    monkeypatch.setattr("opsdrill.hosts.drivers.fake.SHELL", "sh")
    driver = FakeDriver(DriverContext(tmp_path), FakeScript(silent=("web-01",)))
    with pytest.raises(HostError, match=r"web-01.*no answer"):
        await examine(driver, TWO, checks=[passes])
    assert driver.fleets == {}


async def test_stopping_gives_the_hosts_back(driver: FakeDriver) -> None:
    """Whoever stops waiting for an examination leaves nothing behind."""
    call = asyncio.ensure_future(examine(driver, TWO, checks=[hangs] * 1000))
    while not driver.fleets:
        await asyncio.sleep(0.001)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert driver.fleets == {}


async def test_each_outcome_is_told_at_once(driver: FakeDriver) -> None:
    told: list[Outcome] = []

    @on_driver()
    async def looks(driver: Driver, specs: object) -> None:
        """The outcome before was told already."""
        assert [outcome.check for outcome in told] == [breaks]

    outcomes = await examine(driver, TWO, checks=[breaks, looks], tell=told.append)
    assert told == outcomes
    assert outcomes[1].result == "passed"
