"""Sandbox hosts behind a gateway, spoken to by the real OpenSSH client."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio

from opsdrill.agents.deny import DenyList
from opsdrill.agents.gateway import Gateway
from opsdrill.evidence.recorder import Recorder
from opsdrill.hosts.driver import DriverContext, Fleet, Host
from opsdrill.hosts.drivers.sandbox.driver import SandboxDriver
from opsdrill.model.event import JobCreated, JobEvent
from opsdrill.model.host import Command
from opsdrill.model.job import JobRecord, Task, ToolCall
from opsdrill.model.scenario import HostSpec
from opsdrill.model.ticket import Ticket

SECONDS = 60.0


@dataclass
class Sink:
    """Keeps the events in memory."""

    events: list[JobEvent] = field(default_factory=list)

    def append(self, seq: int, event: JobEvent) -> None:
        self.events.append(event)


@dataclass(frozen=True)
class Ran:
    """What a program of ours gave."""

    status: int
    out: bytes
    err: bytes


@dataclass
class Drill:
    """A gateway in front of hosts, and where its clients find their configuration."""

    hosts: dict[str, Host]
    gateway: Gateway
    recorder: Recorder
    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / "config"

    async def run(self, *words: str, data: bytes = b"", seconds: float = SECONDS) -> Ran:
        """Run a program; the configuration is given to those of OpenSSH."""
        if words[0] in ("ssh", "scp", "sftp"):
            words = (words[0], "-F", str(self.config), *words[1:])
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self.folder,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(data), seconds)
        except BaseException:
            if process.returncode is None:
                process.kill()
            await process.wait()
            raise
        assert process.returncode is not None
        return Ran(process.returncode, out, err)

    async def ssh(self, *words: str, data: bytes = b"", seconds: float = SECONDS) -> Ran:
        return await self.run("ssh", *words, data=data, seconds=seconds)

    async def on_host(self, run: str, host: str = "web-01") -> str:
        """Past the gateway."""
        answer = await self.hosts[host].run(Command(run=run))
        assert answer.exit_code == 0, answer
        return answer.stdout.strip()

    def record(self) -> JobRecord:
        return self.recorder.job_record()

    def task(self, host: str = "web-01") -> Task:
        return next(task for task in self.record().tasks if task.host == host)

    def calls(self, host: str = "web-01") -> list[ToolCall]:
        return list(self.task(host).tool_calls)

    async def only_call(self, host: str = "web-01") -> ToolCall:
        """The one call there was, as soon as it has returned."""
        calls = await self.returned(1, host)
        assert len(calls) == 1, calls
        return calls[0]

    async def returned(self, count: int, host: str = "web-01") -> list[ToolCall]:
        """The calls, once there are so many and all have ended."""
        for _ in range(500):
            tasks = [task for task in self.record().tasks if task.host == host]
            calls = list(tasks[0].tool_calls) if tasks else []
            if len(calls) >= count and all(call.ended_at for call in calls):
                return calls
            await asyncio.sleep(0.02)
        raise AssertionError(calls)


def need(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxDriver]:
    made = SandboxDriver(
        DriverContext(tmp_path_factory.mktemp("sandbox"), {"size": "512M", "processes": "512"})
    )
    yield made
    asyncio.run(made.close())


@pytest_asyncio.fixture
async def fleet(sandbox: SandboxDriver) -> AsyncIterator[Fleet]:
    names = ("web-01", "db-01")
    async with await sandbox.provision("gateway", [HostSpec(name=name) for name in names]) as made:
        yield made


def recorder() -> Recorder:
    made = Recorder(Sink(), Ticket(title="T", body="B"))
    made.record(JobCreated(job="job-1"))
    return made


@asynccontextmanager
async def opened(
    hosts: Mapping[str, Host],
    folder: Path,
    *,
    deny: Sequence[str] = (),
    command_seconds: float | None = None,
    known_input: bytes = b"",
) -> AsyncIterator[Drill]:
    """A gateway in front of hosts."""
    need("ssh")
    kept = recorder()
    with closing(DenyList(deny)) as denied:
        async with Gateway(
            hosts,
            kept,
            deny=denied if deny else None,
            command_seconds=command_seconds,
            known_input=known_input,
        ) as gateway:
            gateway.ssh_config(folder)
            yield Drill(dict(hosts), gateway, kept, folder)


@pytest_asyncio.fixture
async def drill(fleet: Fleet, tmp_path: Path) -> AsyncIterator[Drill]:
    async with opened(fleet.hosts, tmp_path) as made:
        yield made
