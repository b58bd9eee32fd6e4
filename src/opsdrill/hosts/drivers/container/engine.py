"""docker or podman, by their own client programs."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from opsdrill.errors import DriverUnavailable
from opsdrill.hosts.child import Child
from opsdrill.hosts.shell_link import short

Kind = Literal["docker", "podman"]
KINDS: tuple[Kind, ...] = ("docker", "podman")
_ANSWER_SECONDS = 15.0
_LIMIT = 32 * 1024 * 1024
"""Bytes of an answer that are kept."""
_ADVICE = ("See '", "Run '")


@dataclass(frozen=True, slots=True)
class Reply:
    """What the client program said.

    Attributes:
        status: its exit status; None when it did not end in time or could not be started.
        out: its standard output.
        said: what its standard error complains of, or why there is none.
        cut: there was more output than was kept.
    """

    status: int | None
    out: str = ""
    said: str = ""
    cut: bool = False

    @property
    def good(self) -> bool:
        return self.status == 0 and not self.cut


class Engine:
    """A container engine that is there.

    Args:
        program: path of its client.
        kind: which one it is; they differ in few words.
        version: for people.
    """

    def __init__(self, program: str, kind: Kind, version: str) -> None:
        self.program = program
        self.kind = kind
        self.version = version

    async def ask(self, *arguments: str, seconds: float = 60.0) -> Reply:
        """Have the client do something.

        Cancelling the call ends the client, not what the engine may already be doing.
        """
        return await _ask((self.program, *arguments), seconds)


async def find_engine(wanted: str | None) -> Engine:
    """The engine that answers.

    Args:
        wanted: `docker`, `podman` or a path of one; None tries both.

    Raises:
        DriverUnavailable: none answers; says what was tried.
    """
    tried, silent = [], []
    for program in KINDS if wanted is None else (wanted,):
        path = program if "/" in program else shutil.which(program)
        if path is None:
            tried.append(f"there is no program {program}")
            continue
        found = await _meet(path)
        if isinstance(found, Engine):
            return found
        tried.append(f"{program} does not answer ({found})")
        silent.append(program)
    hint = _remedy(wanted, silent)
    raise DriverUnavailable(f"no container engine: {'; '.join(tried)}", hint=hint)


def _remedy(wanted: str | None, silent: Sequence[str]) -> str:
    """The command that gets an engine.

    Args:
        wanted: as of `find_engine`.
        silent: those that are there and do not answer.
    """
    if not silent:
        return f"apt-get install -y {'docker.io' if wanted == 'docker' else 'podman'}"
    # A docker answers once its daemon runs; anything else has to say itself what ails it.
    return "systemctl start docker" if silent[0] == "docker" else f"{silent[0]} info"


async def _meet(path: str) -> Engine | str:
    """The engine behind a client program, or why there is none."""
    named = await _ask((path, "--version"), _ANSWER_SECONDS)
    if not named.good:
        return named.said or "it does not tell its version"
    # Debian's podman-docker is a podman that is called docker.
    kind: Kind = "podman" if "podman" in named.out.lower() else "docker"
    shape = "{{.Server.Version}}" if kind == "docker" else "{{.Client.Version}}"
    answer = await _ask((path, "version", "--format", shape), _ANSWER_SECONDS)
    if answer.good and kind == "podman":
        # Its client alone says its version even where no container can be.
        answer = await _ask((path, "ps", "--quiet", "--last", "1"), _ANSWER_SECONDS)
    if not answer.good:
        return answer.said or "it does not say why"
    return Engine(path, kind, short(named.out))


async def _ask(argv: Sequence[str], seconds: float) -> Reply:
    answer = _Answer()
    try:
        client = Child(argv, answer)
    except (OSError, ValueError) as error:
        return Reply(None, said=short(f"{argv[0]} cannot be started: {error}"))
    try:
        async with asyncio.timeout(seconds):
            await client.over.wait()
    except TimeoutError:
        return Reply(None, said=f"it says nothing for {seconds:g} s")
    finally:
        # With all that it started, which would work on.
        client.close(family=True)
        await client.over.wait()
    return answer.reply()


class _Answer:
    """What a client says while it runs."""

    def __init__(self) -> None:
        self._said = {1: bytearray(), 2: bytearray()}
        self._cut = False
        self._status: int | None = None

    def heard(self, stream: int, data: bytes) -> None:
        kept = self._said[stream]
        kept += data[: _LIMIT - len(kept)]
        if stream == 1:
            self._cut = len(kept) == _LIMIT

    def exited(self, status: int | None) -> None:
        self._status = status

    def finished(self) -> None:
        """Whoever asked waits for it."""

    def reply(self) -> Reply:
        out, err = (self._said[stream].decode(errors="replace") for stream in (1, 2))
        said = "nobody knows how it ended" if self._status is None else _complaint(err)
        return Reply(self._status, out, said, self._cut)


def _complaint(said: str) -> str:
    """What went wrong, among all that a client says on standard error."""
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith(_ADVICE)]
    last = lines[-1] if lines else said
    return short(last.removeprefix("docker: ").removeprefix("Error: "))
