"""The shipped suite notices what a driver does wrong: sandboxes with one fault each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self

import pytest

from opsdrill.hosts.command import quote
from opsdrill.hosts.conformance import CHECKS, examine_one
from opsdrill.hosts.driver import Driver, Finding, Fleet, Host
from opsdrill.hosts.session import Session, SessionRequest
from opsdrill.model.host import ChangedFile, Command, HostAnswer, HostFacts
from opsdrill.model.scenario import HostSpec

TWO = (HostSpec(name="web-01"), HostSpec(name="db-01"))
BY_ID = {check.id: check for check in CHECKS}


class FaultyHost:
    """A host with some of its ways changed."""

    def __init__(self, host: Host, fault: Fault) -> None:
        self._host = host
        self._fault = fault

    @property
    def facts(self) -> HostFacts:
        return self._host.facts

    async def run(self, command: Command) -> HostAnswer:
        asked = self._fault.asks(command)
        answer = await self._host.run(asked)
        told = {"run": command.run, "timeout": command.timeout, "user": command.user}
        return self._fault.answers(answer.model_copy(update=told))

    async def open(self, request: SessionRequest) -> Session:
        return await self._host.open(request)

    async def put(
        self, path: str, content: bytes, *, mode: int | None = 0o644, owner: str | None = "root"
    ) -> None:
        if self._fault.modes:
            await self._host.put(path, content, mode=mode, owner=owner)
        else:
            await self._host.put(path, content)

    async def get(self, path: str, *, limit: int = 1024 * 1024) -> bytes:
        if not self._fault.limits:
            return await self._host.get(path)
        content = await self._host.get(path, limit=limit)
        return content.replace(b"\r\n", b"\n") if self._fault.folds else content

    async def mark(self) -> None:
        await self._host.mark()

    async def changed(self) -> tuple[ChangedFile, ...] | None:
        return await self._host.changed() if self._fault.tells_changes else ()


class FaultyFleet:
    """The hosts of a run, some of their ways changed."""

    def __init__(self, fleet: Fleet, fault: Fault) -> None:
        self._fleet = fleet
        self._fault = fault
        self._hosts = {name: FaultyHost(host, fault) for name, host in fleet.hosts.items()}

    @property
    def hosts(self) -> Mapping[str, FaultyHost]:
        return self._hosts

    async def release(self) -> None:
        if self._fault.releases:
            await self._fleet.release()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._fleet.release()


class FaultyDriver:
    """The sandbox with a fault."""

    name = "faulty"
    throw_away = True

    def __init__(self, driver: Driver, fault: Fault) -> None:
        self._driver = driver
        self._fault = fault
        self.made: list[Fleet] = []

    async def preflight(self, hosts: Sequence[HostSpec] = ()) -> list[Finding]:
        return await self._driver.preflight(hosts)

    async def provision(self, run: str, hosts: Sequence[HostSpec]) -> FaultyFleet:
        self.made.append(await self._driver.provision(run, hosts))
        return FaultyFleet(self.made[-1], self._fault)

    async def reap(self) -> list[str]:
        return []

    async def close(self) -> None:
        for fleet in self.made:
            await fleet.release()


def _same(answer: HostAnswer) -> HostAnswer:
    return answer


class Fault:
    """What is wrong; everything else is right."""

    def __init__(
        self,
        *,
        text: Callable[[Command], str] = lambda command: command.run,
        answers: Callable[[HostAnswer], HostAnswer] = _same,
        seconds: float | None = None,
        modes: bool = True,
        limits: bool = True,
        folds: bool = False,
        tells_changes: bool = True,
        releases: bool = True,
    ) -> None:
        self._text = text
        self._seconds = seconds
        self.answers = answers
        self.modes = modes
        self.limits = limits
        self.folds = folds
        self.tells_changes = tells_changes
        self.releases = releases

    def asks(self, command: Command) -> Command:
        more = {} if self._seconds is None else {"timeout": self._seconds}
        return command.model_copy(update={"run": self._text(command), **more})


def before(text: str) -> Fault:
    """Something is done before each command."""
    return Fault(text=lambda command: text + command.run)


def within_a_program(command: Command) -> str:
    """The text as a word on a command line."""
    return f"sh -c {quote(command.run)}"


def by_timeout(command: Command) -> str:
    """The time limit kept by timeout(1), which ends its own process group."""
    return f"timeout -s KILL {command.timeout} sh -c {quote(command.run)}"


def status_124_is_a_time_out(answer: HostAnswer) -> HostAnswer:
    if answer.exit_code not in (124, 137):
        return answer
    return answer.model_copy(update={"exit_code": None, "timed_out": True, "reason": "late"})


def time_out_is_a_status(answer: HostAnswer) -> HostAnswer:
    if not answer.timed_out:
        return answer
    return answer.model_copy(update={"exit_code": 124, "timed_out": None})


def status_255_is_no_answer(answer: HostAnswer) -> HostAnswer:
    if answer.exit_code != 255:
        return answer
    return answer.model_copy(update={"exit_code": None, "unreachable": True})


def both_in_one(answer: HostAnswer) -> HostAnswer:
    return answer.model_copy(update={"stdout": answer.stdout + answer.stderr, "stderr": ""})


def stripped(answer: HostAnswer) -> HostAnswer:
    return answer.model_copy(update={"stdout": answer.stdout.strip()})


def size_untold(answer: HostAnswer) -> HostAnswer:
    return answer.model_copy(update={"stdout_bytes": None, "stderr_bytes": None})


FAULTS: dict[str, Fault] = {
    "shells.no-pipefail": before("set -o pipefail; "),
    "shells.environment-is-exact": before("export EXTRA=1; "),
    "shells.umask-is-022": before("umask 077; "),
    "shells.root-in-its-home": before("cd /tmp; "),
    "shells.standard-input-is-empty": before("exec </etc/passwd; "),
    "shells.no-other-descriptor": before("exec 5</dev/null; "),
    "shells.no-signal-is-ignored": before("trap '' PIPE; "),
    "shells.no-variable-of-ours": before("u=1; "),
    "shells.pgrep-does-not-find-its-shell": Fault(text=within_a_program),
    "shells.text-is-on-no-command-line": Fault(text=within_a_program),
    "shells.bash-or-else-sh": Fault(text=within_a_program),
    "shells.other-users": Fault(text=lambda command: f"HOME=/; {command.run}"),
    "texts.carriage-returns": Fault(text=lambda command: command.run.replace("\r", "")),
    "texts.line-breaks": Fault(text=lambda command: command.run.replace("\n", " ")),
    "texts.here-documents": Fault(text=lambda command: command.run.replace("\n", " ; ")),
    "texts.special-characters": Fault(text=lambda command: f'sh -c "{command.run}"'),
    "texts.unicode": Fault(text=lambda command: command.run.encode("ascii", "replace").decode()),
    "texts.dashes-first": Fault(text=lambda command: f"sh {command.run}"),
    "statuses.exit-status": before("trap 'exit 0' EXIT; "),
    "statuses.exit-255": Fault(answers=status_255_is_no_answer),
    "statuses.answer-says-what-was-asked": Fault(
        answers=lambda answer: answer.model_copy(update={"shell": None})
    ),
    "processes.time-limit-is-no-status": Fault(answers=time_out_is_a_status),
    "processes.time-limit-ends-setsid": Fault(
        text=by_timeout, answers=status_124_is_a_time_out, seconds=60
    ),
    "processes.time-limit-ends-double-forks": Fault(
        text=by_timeout, answers=status_124_is_a_time_out, seconds=60
    ),
    "processes.background-goes-on-open-output": Fault(
        text=lambda command: f"({command.run}\n); s=$?; pkill -f opsdrill-conformance; exit $s"
    ),
    "outputs.streams-apart": Fault(answers=both_in_one),
    "outputs.line-ends-are-kept": Fault(answers=stripped),
    "outputs.past-the-limit": Fault(answers=size_untold),
    "outputs.ten-megabytes-on-both": Fault(answers=size_untold),
    "files.mode-owner-and-parents": Fault(modes=False),
    "files.none-keeps-mode-and-owner": Fault(modes=False),
    "files.get-has-a-limit": Fault(limits=False),
    "files.content-is-the-hosts": Fault(folds=True),
    "changes.since-mark": Fault(tells_changes=False),
    "changes.strange-names": Fault(tells_changes=False),
    "fleets.released-host-is-silent": Fault(releases=False),
    "fleets.release-ends-commands": Fault(releases=False, seconds=1),
    "fleets.host-knows-its-name": before("hostname() { echo other; }; "),
}
"""What each check must notice."""


@pytest.mark.parametrize("name", FAULTS)
async def test_fault_is_noticed(drivers: Callable[[str], Driver], name: str) -> None:
    """A driver that does this one thing wrong does not pass, and it is said what was seen."""
    faulty = FaultyDriver(drivers("sandbox"), FAULTS[name])
    try:
        outcome = await examine_one(BY_ID[name], faulty, TWO)
    finally:
        await faulty.close()
    assert outcome.result == "failed", outcome
    assert outcome.seen
