"""The `local` driver on machines that can be thrown away: each run sees its own as this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.integration.sshd import Machine, Rig

from opsdrill.hosts.command import BOOT
from opsdrill.hosts.driver import DriverContext, Finding, Fleet, Host
from opsdrill.hosts.drivers.local import LocalDriver
from opsdrill.model.scenario import HostSpec


def local_driver(machine: Machine, state: Path) -> LocalDriver:
    """The driver as it would be if OpsDrill ran on that machine."""
    enter = ("nsenter", "-t", str(machine.first), "-a", "-r", "-w", "/bin/sh", "-c", BOOT)
    return LocalDriver(DriverContext(state, {"confirm": "yes"}), enter)


class OwnMachineFleet:
    """One fleet of the driver on each machine, seen as one."""

    def __init__(self, fleets: Sequence[Fleet], machines: Sequence[Machine]) -> None:
        self._fleets = fleets
        self._machines = machines

    @property
    def hosts(self) -> Mapping[str, Host]:
        return {name: host for fleet in self._fleets for name, host in fleet.hosts.items()}

    async def release(self) -> None:
        await asyncio.gather(*(fleet.release() for fleet in self._fleets))
        for machine in self._machines:
            machine.end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.release()


class OwnMachineDriver:
    """The local driver, with machines made anew for every fleet."""

    name = "local"
    throw_away = False

    def __init__(self, rig: Rig, state: Path) -> None:
        self._rig = rig
        self._state = state

    async def preflight(self, hosts: Sequence[HostSpec] = ()) -> list[Finding]:
        machine = await asyncio.to_thread(self._rig.machine)
        try:
            return await local_driver(machine, self._state).preflight(hosts)
        finally:
            machine.end()

    async def provision(self, run: str, hosts: Sequence[HostSpec]) -> OwnMachineFleet:
        machines = await asyncio.to_thread(self._rig.machines, [spec.name for spec in hosts])
        fleets = [
            await local_driver(machine, self._state).provision(run, [spec])
            for machine, spec in zip(machines, hosts, strict=True)
        ]
        return OwnMachineFleet(fleets, machines)

    async def reap(self) -> list[str]:
        return []

    async def close(self) -> None:
        self._rig.close()
