"""What checks ask of a host, and how they say what they saw."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable
from typing import TypeVar

from opsdrill.hosts.command import quote
from opsdrill.hosts.conformance.check import Broken, NotApplicable
from opsdrill.hosts.driver import Host
from opsdrill.model.host import Command, HostAnswer

FOLDER = "/srv/opsdrill-conformance"
"""An empty folder on each host that a check is given, removed afterwards. It lies where no other
user of a lasting host can put something in its place."""

LONG, OTHER = 864_197_531, 864_197_532
"""Seconds that nobody else has a process sleep, so that it can be told from all others."""

SCRIPTED = "scripted"
"""The shell that facts name for a host on which nothing is really run."""
ANSWERS_FROM_A_SCRIPT = "its hosts answer from a script"

_SHOWN = 300
"""Characters of what was seen that are repeated."""

_LOOKS, _LOOK_SECONDS = 100, 0.1

T = TypeVar("T")


def expect(holds: bool, seen: str) -> None:
    """Go on only if it holds.

    Raises:
        Broken: it does not; `seen` is what was seen.
    """
    if not holds:
        raise Broken(seen)


def expect_equal(seen: object, expected: object, what: str) -> None:
    """Go on only if both are equal. Raises as `expect`."""
    if seen != expected:
        raise Broken(f"{what} is {cut(repr(seen))}, not {cut(repr(expected))}")


async def ran(host: Host, run: str, *, user: str = "root", seconds: float = 30.0) -> HostAnswer:
    """The answer to a command, which must be an exit status."""
    answer = await host.run(Command(run=run, user=user, timeout=seconds))
    if answer.exit_code is None:
        raise Broken(f"{cut(run)}: {outcome(answer)}, where an exit status should be")
    return answer


async def printed(host: Host, run: str, *, user: str = "root", seconds: float = 30.0) -> str:
    """What a command prints, which must succeed."""
    answer = await ran(host, run, user=user, seconds=seconds)
    if answer.exit_code != 0:
        raise Broken(f"{cut(run)}: {outcome(answer)}; standard error: {cut(answer.stderr)!r}")
    return answer.stdout


async def expect_printed(host: Host, run: str, expected: str, *, user: str = "root") -> None:
    """Go on only if a command succeeds and prints just this."""
    expect_equal(await printed(host, run, user=user), expected, f"what {cut(run)} prints")


async def expect_status(host: Host, run: str, expected: int, *, user: str = "root") -> HostAnswer:
    """Go on only if a command ends with this status; its answer."""
    answer = await ran(host, run, user=user)
    expect_equal(answer.exit_code, expected, f"the status of {cut(run)}")
    return answer


async def expect_time_out(host: Host, run: str, *, seconds: float = 0.5) -> HostAnswer:
    """Go on only if a command is ended at its limit; its answer."""
    answer = await host.run(Command(run=run, timeout=seconds))
    expect(
        answer.timed_out is True and answer.exit_code is None,
        f"{cut(run)} with a limit of {seconds:g} s: {outcome(answer)}, not a time-out",
    )
    return answer


async def expect_error(
    call: Awaitable[object], kind: type[BaseException], what: str, *, names: str = ""
) -> None:
    """Go on only if a call raises such an error, whose message has `names` in it."""
    try:
        await call
    except kind as error:
        expect(names.lower() in str(error).lower(), f"{what}: {error} does not name {names!r}")
    except Exception as error:
        raise Broken(f"{what}: {type(error).__name__}: {error}, not {kind.__name__}") from error
    else:
        raise Broken(f"{what}: done without an error, where {kind.__name__} should be")


def found(*words: str) -> str:
    """Text that prints the numbers of processes with one of these words on their command line.

    Processes of another pid namespace, which the machine of that namespace has, are not meant.
    """
    patterns = " ".join(f"-e '[{word[0]}]{word[1:]}'" for word in words)
    return (
        f"n=$(readlink /proc/self/ns/pid); for f in $(grep -ls {patterns} /proc/[0-9]*/cmdline); do"
        ' f=${f%/*}; [ "$(readlink $f/ns/pid)" = "$n" ] && echo ${f#/proc/}; done; :'
    )


async def sleeping(host: Host, seconds: int = LONG) -> bool:
    """Whether a process there has this number on its command line."""
    return bool(await printed(host, found(str(seconds))))


async def expect_none_sleeps(host: Host, after: str) -> None:
    """Go on only if nothing of a sleeping command is left."""
    if await sleeping(host):
        raise Broken(f"{after}: processes of it are left on the host")


async def expect_sleeping(
    host: Host, seconds: int = LONG, *, there: bool = True, otherwise: str | None = None
) -> None:
    """Go on once a process there has this number on its command line, or none has any more.

    A shell goes on before what it started in the background is a program: one look would call a
    process gone that is not there yet.

    Args:
        host: where to look.
        seconds: the number that it sleeps.
        there: whether it is to be there.
        otherwise: what it means when that does not come about.

    Raises:
        Broken: it did not come about.
    """
    for _ in range(_LOOKS):
        if await sleeping(host, seconds) is there:
            return
        await asyncio.sleep(_LOOK_SECONDS)
    wrong = f"`sleep {seconds}` {'does not run' if there else 'is left on the host'}"
    raise Broken(f"{wrong}: {otherwise}" if otherwise else wrong)


async def other_user(host: Host) -> tuple[str, str]:
    """A user of the host who is not root, and its home.

    Raises:
        NotApplicable: it has none that is known to be harmless.
    """
    for name in ("www-data", "nobody", "daemon"):
        line = (await ran(host, f"grep '^{name}:' /etc/passwd")).stdout.strip().split(":")
        if len(line) == 7:
            return name, line[5]
    raise NotApplicable("the host has neither www-data nor nobody nor daemon")


def new_run() -> str:
    """A run's id that no other has."""
    return f"conformance-{secrets.token_hex(6)}"


def outcome(answer: HostAnswer) -> str:
    """What became of a command, in words."""
    if answer.exit_code is not None:
        return f"exit status {answer.exit_code}"
    kind = "a time-out" if answer.timed_out else "dropped" if answer.dropped else "no answer"
    return f"{kind} ({answer.reason})" if answer.reason else kind


def cut(text: str) -> str:
    """The beginning of a text that may be long."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


CLEAR = (
    f"for p in $({found('opsdrill-conformance', str(LONG), str(OTHER))}); do kill -9 $p; done"
    f" 2>/dev/null; rm -rf {quote(FOLDER)}"
)
"""Ends what checks left running, and removes what they wrote."""
READY = f"{CLEAR}; mkdir -p {quote(FOLDER)}"
