"""An sshd on the loopback device, run by whoever runs the tests: what works without root."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.integration.sshd import SSHD, host_of, own_sshd

from opsdrill.model.host import Command
from opsdrill.model.lab import LabHost


@pytest.fixture
def own(tmp_path: Path) -> Iterator[LabHost]:
    if not Path(SSHD).exists():
        pytest.skip("takes the Debian package openssh-server")
    with own_sshd(tmp_path) as entry:
        yield entry


async def test_commands_as_oneself(own: LabHost, tmp_path: Path) -> None:
    """A login runs commands as itself, without root anywhere."""
    user = getpass.getuser()
    async with host_of(own) as host:
        answer = await host.run(Command(run="id -un; exit 255", user=user))
        assert (answer.exit_code, answer.stdout) == (255, f"{user}\n")
        answers = await asyncio.gather(
            *(host.run(Command(run=f"echo {number}", user=user)) for number in range(30))
        )
        assert [answer.stdout for answer in answers] == [f"{number}\n" for number in range(30)]
        await host.put(f"{tmp_path}/file", b"x", mode=0o600, owner=None)
        assert await host.get(f"{tmp_path}/file") == b"x"


async def test_time_limit_as_oneself(own: LabHost) -> None:
    """The mark holds without root: all that the command started is killed."""
    user = getpass.getuser()
    run = "(setsid sleep 8642 &) ; sleep 8642"
    async with host_of(own) as host:
        assert (await host.run(Command(run=run, user=user, timeout=0.5))).timed_out
        answer = await host.run(Command(run="pgrep -f 'sleep 8642'", user=user))
        assert answer.exit_code == 1
