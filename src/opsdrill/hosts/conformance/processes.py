"""Processes: what a command started, at its end, at its time limit, and when nobody waits."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from opsdrill.hosts.conformance.asking import (
    FOLDER,
    LONG,
    OTHER,
    expect,
    expect_equal,
    expect_none_sleeps,
    expect_printed,
    expect_sleeping,
    expect_status,
    expect_time_out,
    found,
    outcome,
    printed,
    ran,
    sleeping,
)
from opsdrill.hosts.conformance.check import Broken, on_host
from opsdrill.hosts.driver import Host
from opsdrill.model.host import Command

PORT = 48_417
SERVE = f"nohup python3 -m http.server --bind 0.0.0.0 --directory {FOLDER} {PORT}"
"""A server of the check's folder."""


def fetch(name: str) -> str:
    """Text that prints the page that `SERVE` has, waiting until it is up."""
    return (
        "for i in $(seq 100); do python3 -c 'from urllib.request import urlopen as u;"
        f' print(u("http://{name}:{PORT}/page", timeout=5).read().decode(), end="")\''
        " 2>/dev/null && exit; sleep 0.1; done; exit 1"
    )


@on_host()
async def ends_with_its_shell(host: Host) -> None:
    """A command is over when its shell is: what it left in the background, with the output still
    open, does not hold it up."""
    started = time.monotonic()
    answer = await ran(host, f"sleep {LONG} & echo started", seconds=60)
    expect_equal(answer.stdout, "started\n", "what it prints")
    expect(time.monotonic() - started < 30, "the answer came only when the process was over")
    await expect_sleeping(host, otherwise="the process in the background was ended")


async def _goes_on(host: Host, redirect: str) -> None:
    loop = f"while echo opsdrill-conformance >> {FOLDER}/beats && echo x; do sleep 0.05; done"
    await ran(host, f"nohup sh -c '{loop}' {redirect} &")
    await ran(host, "sleep 0.3")
    count = f"wc -l < {FOLDER}/beats"
    before = int(await printed(host, count))
    await ran(host, "sleep 0.3")
    expect(int(await printed(host, count)) > before, "it stopped when its command was over")


@on_host()
async def background_goes_on_open_output(host: Host) -> None:
    """A process in the background that still writes to its command's output goes on running."""
    await _goes_on(host, "")


@on_host()
async def background_goes_on_open_error(host: Host) -> None:
    """A process in the background with only standard error open goes on running."""
    await _goes_on(host, ">/dev/null")


@on_host()
async def background_goes_on_redirected(host: Host) -> None:
    """A process in the background with nothing left open goes on running."""
    await _goes_on(host, ">/dev/null 2>&1 </dev/null")


@on_host(programs=("python3",))
async def server_without_redirects_serves(host: Host) -> None:
    """A server that was started without any redirection serves later commands."""
    await ran(host, f"echo a page > {FOLDER}/page; {SERVE} &")
    for _ in range(3):
        await expect_printed(host, fetch("127.0.0.1"), "a page\n")


@on_host()
async def time_limit_is_no_status(host: Host) -> None:
    """Past its limit a command is a time-out with what it had printed, and has no status."""
    answer = await expect_time_out(host, f"echo before; echo x >&2; sleep {LONG}")
    expect_equal((answer.stdout, answer.stderr), ("before\n", "x\n"), "what it had printed")
    expect(bool(answer.reason), "no reason is given")


@on_host(scripted=True)
async def time_out_of_any_host(host: Host) -> None:
    """A time-out is an answer of its own, with a reason, and not the end of the host."""
    answer = await host.run(Command(run="sleep 9999", timeout=0.2))
    expect(answer.timed_out is True, outcome(answer))
    expect(bool(answer.reason), "no reason is given")
    answer = await host.run(Command(run="true"))
    expect_equal(answer.exit_code, 0, "the status of the next command")


@on_host()
async def time_limit_leaves_no_sleeper(host: Host) -> None:
    """A sleeping command is gone from the host once it timed out."""
    await expect_time_out(host, f"sleep {LONG}")
    await expect_none_sleeps(host, "after a time-out")


@on_host()
async def time_limit_ends_background(host: Host) -> None:
    """A time-out ends what the command had put in the background, `nohup` or not."""
    await expect_time_out(host, f"sleep {LONG} & sleep {LONG}")
    await expect_time_out(host, f"nohup sleep {LONG} >/dev/null 2>&1 & sleep {LONG}")
    await expect_none_sleeps(host, "after a time-out")


@on_host()
async def time_limit_ends_setsid(host: Host) -> None:
    """A time-out ends what made itself a session of its own."""
    await expect_time_out(host, f"setsid sleep {LONG} & sleep {LONG}")
    await expect_none_sleeps(host, "after a time-out")


@on_host()
async def time_limit_ends_double_forks(host: Host) -> None:
    """A time-out ends what forked twice and whose parents are gone."""
    await expect_time_out(host, f"(setsid sh -c '(sleep {LONG} &) ; exit' &) ; sleep {LONG}")
    await expect_none_sleeps(host, "after a time-out")


@on_host()
async def time_limit_ends_the_unwilling(host: Host) -> None:
    """A time-out ends what ignores signals, and what was stopped."""
    await expect_time_out(host, f"trap '' TERM INT HUP; sleep {LONG}; sleep {LONG}")
    await expect_time_out(host, f"sleep {LONG} & kill -STOP $!; sleep {LONG}")
    await expect_none_sleeps(host, "after a time-out")


@on_host()
async def time_limit_ends_many(host: Host) -> None:
    """A time-out ends what goes on starting others while it is being ended."""
    forks = f"for i in 1 2 3; do (while :; do sleep {LONG} & sleep 0.05; done) & done"
    await expect_time_out(host, f"{forks}; sleep {LONG}")
    await ran(host, "sleep 0.2")
    await expect_none_sleeps(host, "after a time-out")


@on_host()
async def time_limit_of_endless_output(host: Host) -> None:
    """A command that never stops printing is ended at its limit as well."""
    answer = await expect_time_out(host, "while :; do echo yes; done", seconds=1.0)
    expect(answer.stdout.startswith("yes\nyes\n"), f"it printed {answer.stdout[:20]!r}")


@on_host()
async def time_limit_spares_others(host: Host) -> None:
    """A time-out ends only what its own command started, not that of others before or beside it."""
    await ran(host, f"sleep {OTHER} >/dev/null 2>&1 &")
    beside = asyncio.ensure_future(ran(host, "sleep 1.5; exit 5"))
    try:
        await expect_time_out(host, f"sleep {LONG}", seconds=0.3)
        expect_equal((await beside).exit_code, 5, "the status of the command beside it")
    finally:
        beside.cancel()
        with suppress(asyncio.CancelledError, Broken):
            await beside
    await expect_sleeping(host, OTHER, otherwise="a process of an earlier command was ended too")


@on_host()
async def blocked_on_a_pipe(host: Host) -> None:
    """A command that waits for a named pipe ends at its limit, and no process of it piles up."""
    pipe = f"{FOLDER}/pipe-of-opsdrill"
    await expect_status(host, f"mkfifo {pipe}", 0)
    for _ in range(3):
        await expect_time_out(host, f"cat {pipe}; sleep {LONG}", seconds=0.3)
        await expect_time_out(host, f"sh -c 'cat; : pipe-of-opsdrill' < {pipe}", seconds=0.3)
    await expect_printed(host, found("pipe-of-opsdrill"), "")


@on_host()
async def cancelling_kills(host: Host) -> None:
    """Whoever stops waiting for a command has it killed, with all that it started."""
    call = asyncio.ensure_future(host.run(Command(run=f"setsid sleep {LONG} & sleep {LONG}")))
    try:
        while not await sleeping(host):
            expect(not call.done(), "it ended before it was cancelled")
            await asyncio.sleep(0.02)
    finally:
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call
    expect(call.cancelled(), "the call was cancelled and ended with an answer")
    await expect_none_sleeps(host, "after cancelling")


@on_host(scripted=True)
async def cancelling_is_quick(host: Host) -> None:
    """A cancelled call ends soon, and the host goes on answering."""
    call = asyncio.ensure_future(host.run(Command(run="sleep 9999")))
    await asyncio.sleep(0.2)
    call.cancel()
    done, _ = await asyncio.wait([call], timeout=20)
    expect(bool(done), "the call went on for 20 s")
    expect(call.cancelled(), "the call was cancelled and ended with an answer")
    answer = await host.run(Command(run="true"))
    expect_equal(answer.exit_code, 0, "the status of the next command")


@on_host()
async def side_by_side(host: Host) -> None:
    """Commands of one host run at the same time and can meet."""
    pipe = f"{FOLDER}/p"
    one = ran(host, f"mkfifo {pipe} 2>/dev/null; echo hello > {pipe}")
    two = ran(host, f"mkfifo {pipe} 2>/dev/null; cat {pipe}")
    wrote, read = await asyncio.gather(one, two)
    expect_equal((wrote.exit_code, read.exit_code), (0, 0), "the two statuses")
    expect_equal(read.stdout, "hello\n", "what was read")


@on_host()
async def many_at_once(host: Host) -> None:
    """Many commands at once keep their statuses and outputs apart."""
    answers = await asyncio.gather(
        *(ran(host, f"echo {number}; echo e{number} >&2; exit {number}") for number in range(30))
    )
    seen = [(answer.exit_code, answer.stdout, answer.stderr) for answer in answers]
    expected = [(number, f"{number}\n", f"e{number}\n") for number in range(30)]
    expect_equal(seen, expected, "what thirty commands tell")
