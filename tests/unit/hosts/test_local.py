"""The local driver: this machine, by name and when confirmed; and processes as a way to a host."""

from __future__ import annotations

import asyncio
import getpass
import os
import pwd
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from opsdrill.errors import DriverUnavailable, UsageError
from opsdrill.hosts.command import BOOT, ask_line, next_nonce
from opsdrill.hosts.driver import DriverContext, Host
from opsdrill.hosts.drivers.local import LocalDriver
from opsdrill.hosts.process_link import ProcessLink
from opsdrill.hosts.shell_link import NoAnswer
from opsdrill.model.host import Command
from opsdrill.model.scenario import HostSpec

ONE = (HostSpec(name="here"),)
SELF = getpass.getuser()


def driver(tmp_path: Path, **options: str) -> LocalDriver:
    return LocalDriver(DriverContext(tmp_path, options))


@pytest_asyncio.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with await driver(tmp_path, confirm="yes").provision("run", ONE) as fleet:
        yield fleet.hosts["here"]


async def test_nothing_without_confirmation(tmp_path: Path) -> None:
    """Only when asked for by name and confirmed; the message says how."""
    for options in ({}, {"confirm": "no"}):
        with pytest.raises(DriverUnavailable, match="not confirmed") as caught:
            await driver(tmp_path, **options).provision("run", ONE)
        assert "confirm: yes" in (caught.value.hint or "")
    found = await driver(tmp_path).preflight(ONE)
    assert [finding.what for finding in found if finding.blocks] == ["this machine may be drilled"]


async def test_one_host_only(tmp_path: Path) -> None:
    """This machine is one host."""
    two = (*ONE, HostSpec(name="there"))
    with pytest.raises(DriverUnavailable, match="here, there"):
        await driver(tmp_path, confirm="yes").provision("run", two)
    found = await driver(tmp_path, confirm="yes").preflight(two)
    assert [finding.what for finding in found if finding.blocks] == ["one host"]


@pytest.mark.parametrize("options", [{"size": "1"}, {"confirm": "perhaps"}, {"sudo": "x"}])
def test_bad_options(tmp_path: Path, options: dict[str, str]) -> None:
    """An option that does not exist, or is neither yes nor no."""
    with pytest.raises(UsageError, match=min(options)):
        driver(tmp_path, **options)


async def test_commands_run_here(host: Host, tmp_path: Path) -> None:
    """Commands run on this very machine, with the same status and output as everywhere."""
    run = f"echo out; echo err >&2; pwd > {tmp_path}/where; exit 255"
    answer = await host.run(Command(run=run, user=SELF))
    assert (answer.exit_code, answer.stdout, answer.stderr) == (255, "out\n", "err\n")
    home = pwd.getpwuid(os.getuid()).pw_dir
    expected = home if Path(home).is_dir() else "/"
    assert (tmp_path / "where").read_text().strip() == expected


async def test_time_limit_ends_everything_here(host: Host, tmp_path: Path) -> None:
    """Past its limit a command is killed with `setsid` and double forks; others are spared."""
    grows = tmp_path / "grows"
    loop = f"while :; do echo x >> {grows}; sleep 0.02; done"
    run = f"(setsid sh -c '{loop}' &); {loop}"
    answer = await host.run(Command(run=run, user=SELF, timeout=0.5))
    assert answer.timed_out
    size = grows.stat().st_size
    assert size > 0
    await asyncio.sleep(0.3)
    assert grows.stat().st_size == size


async def test_facts_say_what_is_not_bounded(host: Host) -> None:
    """Nothing is bounded here, and the record says so."""
    assert host.facts.driver == "local"
    assert "not bounded" in host.facts.limits["disk, memory, processes"]
    await host.mark()
    assert await host.changed() is None


async def test_link_that_is_closed() -> None:
    """A way that was closed starts nothing; it will not be open again."""
    link = ProcessLink(("/bin/sh", "-c", BOOT))
    await link.close()
    with pytest.raises(NoAnswer, match="given back") as caught:
        await link.talk("n0", b"")
    assert not caught.value.passing


async def test_program_that_is_not_there() -> None:
    """What cannot be started is no answer, with the reason."""
    with pytest.raises(NoAnswer, match="/nosuch cannot be started: No such file"):
        await ProcessLink(("/nosuch",)).talk("n0", b"")


async def test_process_that_never_was_at_work() -> None:
    """A process that ends before the line begins had no shell; its last words are told."""
    link = ProcessLink(("/bin/sh", "-c", "echo first >&2; echo no such host >&2; exit 127"))
    with pytest.raises(NoAnswer, match=r"no shell can be started \(no such host\)"):
        await link.talk("n0", b"line")
    await link.close()


async def test_process_that_says_nothing() -> None:
    """A process that hangs is ended, and that is said."""
    link = ProcessLink(("/bin/sh", "-c", "sleep 99"))
    with pytest.raises(NoAnswer, match=r"says nothing for 0.2 s"):
        await link.talk("n0", b"line", seconds=0.2)
    await link.close()


async def test_many_lines_wait_for_room() -> None:
    """Many lines at once all have their answer."""
    link = ProcessLink(("/bin/sh", "-c", BOOT))

    async def said(number: int) -> str:
        nonce = next_nonce()
        line = ask_line(nonce, f"sleep 0.05;echo {number}").encode()
        return (await link.talk(nonce, line)).out.text

    assert await asyncio.gather(*(said(number) for number in range(50))) == [
        f"{number}\n" for number in range(50)
    ]
    await link.close()


async def test_line_that_waits_can_be_cancelled() -> None:
    """Who stops waiting for room takes none."""
    link = ProcessLink(("/bin/sh", "-c", BOOT))
    nonces = [next_nonce() for _ in range(40)]
    talks = [
        asyncio.ensure_future(link.talk(nonce, ask_line(nonce, "sleep 5").encode()))
        for nonce in nonces
    ]
    await asyncio.sleep(0.3)
    for talk in talks:
        talk.cancel()
    await asyncio.gather(*talks, return_exceptions=True)
    nonce = next_nonce()
    assert (await link.talk(nonce, ask_line(nonce, "echo on").encode())).out.text == "on\n"
    await link.close()
