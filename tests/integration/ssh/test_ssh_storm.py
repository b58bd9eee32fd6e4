"""A storm: commands of all kinds on several machines while callers leave and connections break.

Whatever happens, every call ends; no output is another command's; no command runs twice; and when
the storm is over, every machine answers as before, with nothing left running.
"""

from __future__ import annotations

import asyncio
import random
import re
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import pytest
from tests.integration.sshd import Machine, Rig, driver_for

from opsdrill.errors import HostError
from opsdrill.hosts.driver import Host
from opsdrill.model.host import Command, HostAnswer
from opsdrill.model.scenario import HostSpec

MACHINES, WORKERS, STEPS = 3, 6, 30
BOUND = 120.0
"""Seconds in which any call ends, whatever breaks; far more than any should take."""
TOKEN = re.compile(r"<\d+>")
RAN = "/srv/ran"


@dataclass
class Storm:
    """What is done on one machine, and what is known of it.

    Attributes:
        told: tokens of commands that have a status.
        seen: how often each outcome came.
    """

    host: Host
    machine: Machine
    chance: random.Random
    told: set[str] = field(default_factory=set)
    seen: Counter[str] = field(default_factory=Counter)
    number: int = 0

    async def work(self, steps: int) -> None:
        kinds: list[Callable[[], Awaitable[None]]] = [
            *[self.plain] * 8,
            self.left,
            self.late,
            self.background,
            self.launcher_killed,
            self.group_killed,
            self.another_user,
            self.file,
            self.large,
        ]
        for _ in range(steps):
            await self.chance.choice(kinds)()

    async def break_connections(self) -> None:
        """Now and then, in one of several ways."""
        while True:
            await asyncio.sleep(self.chance.uniform(0.2, 1.5))
            way = self.chance.choice(["server", "session", "shells", "cable"])
            self.seen[f"broken: {way}"] += 1
            if way == "server":
                self.machine.signal_sshd(signal.SIGKILL)
            elif way == "session":
                await self.inside("pkill -9 -f '[s]shd: root@notty' || :")
            elif way == "shells":
                await self.inside("pkill -9 -f '[I]FS= read -r l&&eval' || :")
            else:
                self.machine.network("down")
                await asyncio.sleep(0.3)
                self.machine.network("up")

    async def inside(self, script: str) -> None:
        # As long as the cable is out nobody could say over SSH what to kill.
        await asyncio.to_thread(self.machine.enter, script)

    async def asked(self, text: str, **more: object) -> tuple[str, HostAnswer]:
        """Have a token noted on the machine, and then a text run."""
        self.number += 1
        token = f"<{self.number}>"
        run = f"echo '{token}' >> {RAN}; {text.replace('TOKEN', token)}"
        command = Command(run=run, **{"timeout": 30, **more})  # type: ignore[arg-type]
        async with asyncio.timeout(BOUND):
            answer = await self.host.run(command)
        assert set(TOKEN.findall(answer.stdout + answer.stderr)) <= {token}, answer
        if answer.exit_code is not None:
            self.told.add(token)
        outcome = "status" if answer.exit_code is not None else str(answer.reason)[:40]
        self.seen[outcome] += 1
        return token, answer

    async def plain(self) -> None:
        status = self.chance.randrange(256)
        token, answer = await self.asked(f"echo 'TOKEN'; echo 'TOKEN' >&2; exit {status}")
        if answer.exit_code is not None:
            got = (answer.exit_code, answer.stdout, answer.stderr)
            assert got == (status, f"{token}\n", f"{token}\n"), answer

    async def left(self) -> None:
        call = asyncio.ensure_future(self.asked("echo 'TOKEN'; setsid sleep 7531 & sleep 7531"))
        await asyncio.sleep(self.chance.choice([0, 0.001, 0.01, 0.05, 0.2]))
        call.cancel()
        if self.chance.random() < 0.3:
            await asyncio.sleep(0.01)
            call.cancel()
        async with asyncio.timeout(BOUND):
            await asyncio.wait([call])
        assert call.cancelled() or call.exception() is None, call

    async def late(self) -> None:
        _, answer = await self.asked("echo 'TOKEN'; setsid sleep 7531 & sleep 7531", timeout=0.2)
        assert answer.exit_code is None or answer.exit_code > 128, answer

    async def background(self) -> None:
        await self.asked("(sleep 0.3; echo 'TOKEN'; sleep 0.2; echo 'TOKEN') & echo 'TOKEN'")

    async def launcher_killed(self) -> None:
        _, answer = await self.asked("kill -9 $PPID; sleep 7531")
        assert answer.exit_code is None, answer

    async def group_killed(self) -> None:
        _, answer = await self.asked("sleep 7531 & kill -9 0; sleep 7531")
        assert answer.exit_code in (137, None), answer

    async def another_user(self) -> None:
        token, answer = await self.asked("echo 'TOKEN'; id -un", user="plain")
        if answer.exit_code is not None:
            assert answer.stdout == f"{token}\nplain\n", answer

    async def large(self) -> None:
        size = self.chance.randrange(30_000, 70_000)
        _, answer = await self.asked(f"head -c {size} /dev/zero | tr '\\0' x")
        if answer.exit_code == 0:
            assert answer.stdout == "x" * size

    async def file(self) -> None:
        path = f"/srv/file-{self.chance.randrange(4)}"
        with suppress(HostError, FileNotFoundError):
            async with asyncio.timeout(BOUND):
                await self.host.put(path, b"a" * 3000)
                assert await self.host.get(path) == b"a" * 3000


async def calm(storm: Storm) -> None:
    """After it: many at once all answer, nothing was run twice, nothing runs on."""
    storm.machine.network("up")

    async def one(number: int) -> None:
        answer = await storm.host.run(Command(run=f"sleep 0.05; echo {number}", timeout=30))
        assert (answer.exit_code, answer.stdout) == (0, f"{number}\n"), answer

    async with asyncio.timeout(BOUND):
        await one(-1)
        await asyncio.gather(*(one(number) for number in range(25)))
        ran = Counter((await storm.host.get(RAN)).decode().split())
    assert [token for token, times in ran.items() if times > 1] == []
    assert storm.told <= ran.keys()
    assert not storm.machine.processes("sleep 7531"), storm.seen


@pytest.mark.parametrize("seed", [1, 2])
async def test_storm(rig: Rig, seed: int) -> None:
    """Nothing hangs, nothing is mixed up, nothing runs twice, nothing is left."""
    await weather(rig, seed, WORKERS, STEPS)


async def weather(rig: Rig, seed: int, workers: int, steps: int) -> list[Storm]:
    names = [f"m-{number}" for number in range(MACHINES)]
    machines = rig.machines(names)
    for machine in machines:
        # Every user notes its tokens there.
        machine.enter(f": > {RAN}; chmod 666 {RAN}")
    driver = driver_for(**{machine.name: machine.lab() for machine in machines})
    async with await driver.provision("run", [HostSpec(name=name) for name in names]) as fleet:
        storms = [
            Storm(fleet.hosts[machine.name], machine, random.Random(f"{seed} {number}"))
            for number, machine in enumerate(machines)
        ]
        breaking = [asyncio.ensure_future(storm.break_connections()) for storm in storms]
        try:
            await asyncio.gather(*(s.work(steps) for s in storms for _ in range(workers)))
        finally:
            for task in breaking:
                assert not task.done() or task.exception() is None
                task.cancel()
            await asyncio.gather(*breaking, return_exceptions=True)
        for storm in storms:
            await calm(storm)
    return storms
