"""How a command ended: its exit status, or that there is none."""

from __future__ import annotations

from collections.abc import Mapping

from opsdrill.hosts.conformance.asking import (
    expect,
    expect_equal,
    expect_printed,
    expect_status,
    outcome,
    ran,
)
from opsdrill.hosts.conformance.check import on_host
from opsdrill.hosts.driver import Host
from opsdrill.model.host import Command


async def _each(host: Host, cases: Mapping[str, int]) -> None:
    for run, expected in cases.items():
        await expect_status(host, run, expected)


@on_host()
async def exit_status(host: Host) -> None:
    """The status is the one with which the command's shell ended."""
    cases = {
        "true": 0,
        "false": 1,
        "exit 3": 3,
        "( exit 5 )": 5,
        "exit 9; exit 1": 9,
        "exit 44": 44,
    }
    await _each(host, cases)


@on_host()
async def exit_255(host: Host) -> None:
    """A command that itself ends with 255 has that status; no connection was lost."""
    await _each(host, {"exit 255": 255, "sh -c 'exit 255'": 255, "exit 254": 254})


@on_host()
async def killed_by_a_signal(host: Host) -> None:
    """A shell that is killed by signal n ends with 128 + n, as its child does."""
    cases = {
        "kill -9 $$": 137,
        "kill -TERM $$": 143,
        "sh -c 'kill -9 $$'": 137,
        "sh -c 'kill -PIPE $$'": 141,
        "kill -9 0": 137,
        "kill 0; sleep 9": 143,
    }
    await _each(host, cases)


@on_host()
async def exec_takes_the_place(host: Host) -> None:
    """After `exec` the status is that of the program that took the shell's place."""
    await _each(host, {"exec sh -c 'exit 7'": 7, "exec true": 0})
    await expect_printed(host, "exec 2>&1; echo a >&2", "a\n")


@on_host()
async def missing_program(host: Host) -> None:
    """A program that is not there is 127 with the shell's words: no success and no silence."""
    answer = await expect_status(host, "nosuch-lsof /srv/f", 127)
    expect("nosuch-lsof" in answer.stderr, f"standard error is {answer.stderr!r}")
    await _each(host, {"/etc/passwd": 126, "/nosuch/program": 127})


@on_host()
async def syntax_errors(host: Host) -> None:
    """A text that is no shell text ends with the shell's own status and words."""
    for run in ("if then", "echo 'unclosed"):
        answer = await expect_status(host, run, 2)
        expect(answer.stderr != "", f"{run}: nothing is said on standard error")


@on_host()
async def set_e_and_traps(host: Host) -> None:
    """`set -e` ends a command at its first failure, and a trap on EXIT is run and can say how."""
    await _each(host, {"set -e; false; exit 9": 1, "trap 'exit 4' EXIT; exit 2": 4})
    answer = await expect_status(host, "trap 'echo bye' EXIT; exit 2", 2)
    expect_equal(answer.stdout, "bye\n", "what the trap prints")


@on_host("throw-away")
async def all_processes_killed(host: Host) -> None:
    """A command that kills every process of the host has its status or is `dropped`, never a
    status that was made up, and the host answers again."""
    answer = await host.run(Command(run="kill -9 -1; sleep 1; exit 6", timeout=20))
    # Over SSH the server is among the killed, and nobody may be left to tell.
    expect(answer.dropped is True or answer.exit_code in (6, 137), outcome(answer))
    await expect_printed(host, "echo on", "on\n")


@on_host("throw-away")
async def no_shell_left(host: Host) -> None:
    """A host on which no shell can be started does not answer, and the reason says so."""
    await expect_status(host, "true", 0)
    await ran(host, "rm -f /bin /lib /lib64 /sbin")
    answer = await host.run(Command(run="true"))
    expect(answer.unreachable is True and answer.exit_code is None, outcome(answer))
    expect("no shell" in (answer.reason or ""), f"the reason is {answer.reason!r}")
    expect(answer.last_answered_at is not None, "it is not said when it last answered")


@on_host(scripted=True)
async def answer_says_what_was_asked(host: Host) -> None:
    """An answer names the host, the text, the user, the limit, the shell, and when it was."""
    answer = await host.run(Command(run="exit 3", timeout=7.0))
    asked = (answer.on, answer.run, answer.user, answer.timeout)
    expect_equal(asked, (host.facts.name, "exit 3", "root", 7.0), "what the answer says")
    expect_equal(answer.exit_code, 3, "the status")
    expect_equal(answer.shell, host.facts.shell, "the shell")
    if answer.started_at is None or answer.ended_at is None:
        expect(False, "it is not said when it began and ended")
    else:
        expect(answer.started_at <= answer.ended_at, "it ended before it began")
