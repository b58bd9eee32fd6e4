"""The `fake` driver: hosts that answer from a script, for tests and demos. Nothing is really run.

The script is a JSON file, named by the lab's option `answers`, or a `FakeScript` made in code.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Literal, Self

from opsdrill.errors import HostError, HostUnreachable, ProvisionFailed, UsageError
from opsdrill.hosts.driver import DriverContext, Finding
from opsdrill.hosts.drivers.fake_script import (
    UNSCRIPTED,
    FakeScript,
    Scripted,
    absolute_path,
    load_fake_script,
)
from opsdrill.hosts.drivers.fake_session import FakeSession
from opsdrill.hosts.session import SessionRequest, wrong_request
from opsdrill.model.host import OUTPUT_LIMIT, ChangedFile, Command, HostAnswer, HostFacts
from opsdrill.model.scenario import HostSpec

DISK_LIMIT = 64 * 1024 * 1024
"""Bytes that the files of one host may have together."""
SHELL = "scripted"


@dataclass(frozen=True, slots=True)
class FakeFile:
    content: bytes
    mode: int = 0o644
    owner: str = "root"


class FakeHost:
    """One scripted host with files in memory.

    Attributes:
        asked: the commands it was asked to run, in order, for tests to look at.
        running: how many of them have no answer yet.
        files: its files by absolute path.
        silent: set it to make the host stop answering.
    """

    def __init__(self, name: str, script: FakeScript | None = None) -> None:
        self._script = script or FakeScript()
        self._name = name
        self._given: dict[int, int] = {}
        self._done: set[str] = set()
        self._gone = asyncio.Event()
        self._last_answered_at: datetime | None = None
        self.asked: list[Command] = []
        self.running = 0
        self.silent = name in self._script.silent
        self.files: dict[str, FakeFile] = {}
        for path, text in self._script.files.get(name, {}).items():
            self.files[path] = FakeFile(text.encode(errors="replace"))
        self._marked = dict(self.files)

    @property
    def facts(self) -> HostFacts:
        return HostFacts(name=self._name, driver="fake", shell=SHELL)

    async def run(self, command: Command) -> HostAnswer:
        """Give the scripted answer, after its delay; see `FakeAnswer` for which one that is."""
        self.asked.append(command)
        started = datetime.now(UTC)
        self.running += 1
        try:
            scripted = await self._outcome(command)
        finally:
            self.running -= 1
        if scripted.dies:
            self.silent = True
        if scripted.exit_code is not None:
            self._done.add(command.run)
        return self._answer(command, scripted, started)

    async def open(self, request: SessionRequest) -> FakeSession:
        """The scripted answer as a session, without a limit of time."""
        self._must_answer()
        if (wrong := wrong_request(request)) is not None:
            raise HostError(self._name, wrong)
        if request.command is None or request.terminal is not None or request.files:
            raise HostError(self._name, "a scripted host has commands, no terminal and no SFTP")
        command = Command(run=request.command, user=request.user, timeout=math.inf)
        return FakeSession(asyncio.ensure_future(self.run(command)))

    async def put(
        self, path: str, content: bytes, *, mode: int | None = 0o644, owner: str | None = "root"
    ) -> None:
        self._must_answer()
        path = self._checked(path)
        if any(other.startswith(f"{path}/") for other in self.files):
            raise HostError(self._name, f"cannot write {path}: it is a folder")
        if any(path.startswith(f"{other}/") for other in self.files):
            raise HostError(self._name, f"cannot write {path}: a part of it is no folder")
        others = sum(len(file.content) for name, file in self.files.items() if name != path)
        if others + len(content) > DISK_LIMIT:
            raise HostError(self._name, f"cannot write {path}: no space left")
        kept = self.files.get(path, FakeFile(b""))
        self.files[path] = FakeFile(
            bytes(content),
            kept.mode if mode is None else mode,
            kept.owner if owner is None else owner,
        )

    async def get(self, path: str, *, limit: int = 1024 * 1024) -> bytes:
        self._must_answer()
        path = self._checked(path)
        if path not in self.files:
            if any(other.startswith(f"{path}/") for other in self.files):
                raise HostError(self._name, f"cannot read {path}: it is a folder")
            raise FileNotFoundError(path)
        return self.files[path].content[:limit]

    async def mark(self) -> None:
        self._marked = dict(self.files)

    async def changed(self) -> tuple[ChangedFile, ...] | None:
        """The files changed since `mark`, or since the host was made."""
        found = []
        for path in sorted(self.files.keys() | self._marked.keys()):
            now, before = self.files.get(path), self._marked.get(path)
            if now is None:
                found.append(ChangedFile(path=path, change="removed"))
            elif now != before:
                change: Literal["added", "changed"] = "added" if before is None else "changed"
                found.append(ChangedFile(path=path, change=change, size=len(now.content)))
        return tuple(found)

    def end(self) -> None:
        """The host is given back: whoever waits for an answer is told, later callers as well."""
        self._gone.set()

    async def _outcome(self, command: Command) -> Scripted:
        scripted = self._scripted(command)
        try:
            # Waiting even for nothing lets a caller be cancelled at every command.
            async with asyncio.timeout(min(scripted.delay, command.timeout)):
                await self._gone.wait()
        except TimeoutError:
            if scripted.delay < command.timeout or scripted.unreachable:
                return scripted
            late = {"exit_code": None, "dropped": None, "timed_out": True}
            return scripted.model_copy(update=late)
        return Scripted(unreachable=True)

    def _scripted(self, command: Command) -> Scripted:
        if self.silent:
            return Scripted(unreachable=True)
        for index, answer in enumerate(self._script.answers):
            given = self._given.get(index, 0)
            if answer.fits(self._name, command, self._done) and given != answer.times:
                self._given[index] = given + 1
                return answer
        return self._script.otherwise or Scripted(
            exit_code=UNSCRIPTED, stderr=f"fake host {self._name}: no scripted answer\n"
        )

    def _answer(self, command: Command, scripted: Scripted, started: datetime) -> HostAnswer:
        stdout, stdout_bytes = _cut(scripted.stdout)
        stderr, stderr_bytes = _cut(scripted.stderr)
        ended = datetime.now(UTC)
        answer = HostAnswer(
            on=self._name,
            run=command.run,
            exit_code=scripted.exit_code,
            timed_out=scripted.timed_out,
            unreachable=scripted.unreachable,
            dropped=scripted.dropped,
            stdout=stdout,
            stderr=stderr,
            stdout_bytes=stdout_bytes,
            stderr_bytes=stderr_bytes,
            shell=SHELL,
            user=command.user,
            timeout=command.timeout,
            reason=self._why(command, scripted),
            last_answered_at=self._last_answered_at,
            started_at=started,
            ended_at=ended,
        )
        if scripted.unreachable is None:
            self._last_answered_at = ended
        return answer

    def _why(self, command: Command, scripted: Scripted) -> str | None:
        if scripted.timed_out:
            return f"no exit status within {command.timeout:g} s"
        if scripted.dropped:
            return "the connection ended before the command did"
        if scripted.unreachable:
            return "the host was given back" if self._gone.is_set() else "the host does not answer"
        return None

    def _must_answer(self) -> None:
        if self.silent or self._gone.is_set():
            raise HostUnreachable(self._name, "does not answer")

    def _checked(self, path: str) -> str:
        try:
            return absolute_path(path)
        except ValueError:
            raise HostError(self._name, f"{path!r} is no absolute path of a file") from None


def _cut(text: str) -> tuple[str, int | None]:
    """As much of an output as is kept, and its full size where that is less than all."""
    whole = text.encode(errors="replace")
    if len(whole) <= OUTPUT_LIMIT:
        return text, None
    return whole[:OUTPUT_LIMIT].decode(errors="replace"), len(whole)


class FakeFleet:
    """The fake hosts of one run. Leaving it as a context gives them back."""

    def __init__(self, hosts: Sequence[FakeHost]) -> None:
        self._hosts = {host.facts.name: host for host in hosts}
        self.released = False

    @property
    def hosts(self) -> Mapping[str, FakeHost]:
        return self._hosts

    async def release(self) -> None:
        self.released = True
        for host in self._hosts.values():
            host.end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.release()


class FakeDriver:
    """Gives fake hosts.

    Args:
        context: its option `answers` names the script file; there is no other option.
        script: a script made in code, in place of the file.

    Raises:
        UsageError: an option that does not exist, or a file that cannot be read.
        InvalidInput: the file is no script.
    """

    name = "fake"
    throw_away = True

    def __init__(self, context: DriverContext, script: FakeScript | None = None) -> None:
        strange = sorted(set(context.options) - {"answers"})
        if strange:
            raise UsageError(
                f"the fake driver has no option {strange[0]!r}", hint="it has: answers"
            )
        self._fleets: dict[str, FakeFleet] = {}
        self._source = "answers made in code" if script else "no answers"
        if script is None and "answers" in context.options:
            path = context.folder / context.options["answers"]
            script = load_fake_script(path)
            self._source = f"answers from {path}"
        self._script = script or FakeScript()

    @property
    def fleets(self) -> Mapping[str, FakeFleet]:
        """The fleets that were not given back yet, by run."""
        self._forget()
        return self._fleets

    async def preflight(self, hosts: Sequence[HostSpec] = ()) -> list[Finding]:  # noqa: ARG002
        return [Finding("scripted answers", True, self._source)]

    async def provision(self, run: str, hosts: Sequence[HostSpec]) -> FakeFleet:
        self._forget()
        for spec in hosts:
            if spec.name in self._script.unmade:
                raise ProvisionFailed(spec.name, "could not be made: the script says so")
        fleet = FakeFleet([FakeHost(spec.name, self._script) for spec in hosts])
        self._fleets[run] = fleet
        return fleet

    async def reap(self) -> list[str]:
        """Nothing: fake hosts end with their process."""
        return []

    async def close(self) -> None:
        for fleet in self._fleets.values():
            await fleet.release()
        self._forget()

    def _forget(self) -> None:
        self._fleets = {run: fleet for run, fleet in self._fleets.items() if not fleet.released}
