"""Steps on hosts: ask, and say in words what became of it. Used by every phase that has steps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from opsdrill.errors import HostError, HostUnreachable
from opsdrill.hosts.driver import Host
from opsdrill.model.host import Command, HostAnswer

T = TypeVar("T")

HOSTS_AT_ONCE = 16
TAIL_LINES = 3
TAIL_CHARACTERS = 300


async def ask(host: Host, command: Command, answers: list[HostAnswer], what: str) -> HostAnswer:
    """Run a command on a host and note the answer.

    Args:
        what: what the command belongs to, for the message (`setup step 2`).

    Returns:
        An exit status or a time-out.

    Raises:
        HostUnreachable: the host does not answer.
        HostError: the connection was lost half way, so nobody knows what became of the command.
    """
    answer = await host.run(command)
    answers.append(answer)
    if answer.unreachable:
        why = f" ({answer.reason})" if answer.reason else ""
        raise HostUnreachable(answer.on, f"does not answer in {what}{why}")
    if answer.dropped:
        raise HostError(answer.on, f"lost the connection in {what}; what became of it is not known")
    return answer


async def on_each(names: Iterable[str], call: Callable[[str], Awaitable[T]]) -> list[T]:
    """Do something on several hosts at the same time, 16 at most.

    Returns:
        What `call` gave for each name, in the order of the names.

    Raises:
        Exception: the first that a `call` raised; the others are cancelled then.
    """
    slots = asyncio.Semaphore(HOSTS_AT_ONCE)

    async def one(name: str) -> T:
        async with slots:
            return await call(name)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(name)) for name in names]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return [task.result() for task in tasks]


def outcome(answer: HostAnswer) -> str:
    """`ended with exit status 2`, or what stands in its place."""
    if answer.timed_out:
        limit = f" within {answer.timeout:g} s" if answer.timeout is not None else " in time"
        return f"gave no exit status{limit}"
    if answer.exit_code is None:
        return "gave no answer"
    return f"ended with exit status {answer.exit_code}"


def tail(answer: HostAnswer) -> str:
    """The end of what the command printed, on one line; errors before ordinary output."""
    text = answer.stderr.strip() or answer.stdout.strip()
    lines = [line.strip() for line in text[-4 * TAIL_CHARACTERS :].splitlines() if line.strip()]
    shown = " | ".join(lines[-TAIL_LINES:])[-TAIL_CHARACTERS:]
    return f": {shown}" if shown else ""
