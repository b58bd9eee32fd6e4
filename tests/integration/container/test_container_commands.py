"""Commands of containers, with bash and with busybox alone, and what an engine might confuse."""

from __future__ import annotations

import asyncio

import pytest
from tests.integration.engines import Engine, MakeDriver
from tests.integration.images import DEBIAN

from opsdrill.hosts.drivers.container.host import ContainerHost
from opsdrill.model.host import OUTPUT_LIMIT, Command, HostAnswer
from opsdrill.model.scenario import HostSpec

_GROWS = "while :; do echo x >> /tmp/grows; sleep 0.05; done"


async def ran(host: ContainerHost, run: str, *, user: str = "root") -> HostAnswer:
    answer = await host.run(Command(run=run, user=user, timeout=30))
    assert answer.exit_code is not None, answer
    return answer


async def grows(host: ContainerHost) -> bool:
    """Whether something still writes to the file."""
    text = "a=$(wc -c < /tmp/grows); sleep 0.5; b=$(wc -c < /tmp/grows); test $a != $b"
    return (await ran(host, text)).exit_code == 0


@pytest.mark.parametrize("status", [0, 1, 3, 125, 126, 127, 128, 137, 255])
async def test_statuses_are_the_commands_own(host: ContainerHost, status: int) -> None:
    """The engine's own statuses (125, 126, 127) are never taken for the command's."""
    answer = await ran(host, f"exit {status}")
    assert (answer.exit_code, answer.reason) == (status, None)


async def test_shell_is_told(host: ContainerHost) -> None:
    """`bash` if the host has it, else `sh`."""
    answer = await ran(host, 'echo "${BASH_VERSION:+bash}"')
    assert answer.shell == host.facts.shell == (answer.stdout.strip() or "sh")


async def test_output_is_whole_and_bounded(host: ContainerHost) -> None:
    """Both streams full at once do not block, and more than 1 MiB is counted."""
    many = "head -c 3000000 /dev/zero | tr '\\0' "
    answer = await ran(host, f"{many} e >&2 & {many} o; wait")
    assert answer.stdout == "o" * OUTPUT_LIMIT
    assert (answer.stdout_bytes, answer.stderr_bytes) == (3_000_000, 3_000_000)


async def test_other_user(host: ContainerHost) -> None:
    """Another user has its own number and home, whatever the image has to become it."""
    answer = await ran(host, "id -u; pwd; echo $USER", user="www-data")
    assert answer.stdout == "33\n/var/www\nwww-data\n"


@pytest.mark.parametrize(
    "start", [_GROWS, f"({_GROWS}) & sleep 99", f"(setsid sh -c '{_GROWS}' &) ; sleep 99"]
)
async def test_time_limit_kills_every_descendant(host: ContainerHost, start: str) -> None:
    """Killed on the host with every descendant, `setsid` and double forks included."""
    answer = await host.run(Command(run=start, timeout=1))
    assert answer.timed_out, answer
    assert not await grows(host)


async def test_background_process_writes_on(host: ContainerHost) -> None:
    """A background process that fills its output long after its command ended goes on."""
    fill = "head -c 200000 /dev/zero | tr '\\0' x; echo x >> /tmp/grows; sleep 0.05"
    await ran(host, f"while :; do {fill}; done & echo on")
    await asyncio.sleep(4)
    assert await grows(host)


async def test_ended_orphans_are_gone(host: ContainerHost) -> None:
    """The first process takes note of the end of orphans: no zombie stays."""
    await ran(host, "for i in 1 2 3; do (sh -c 'sleep 0.1' &); done; sleep 0.5")
    seen = await ran(host, 'grep -l "^State:.Z" /proc/[0-9]*/status 2>/dev/null; :')
    assert seen.stdout == ""


async def test_files_of_setup_do_not_count(host: ContainerHost) -> None:
    """Changed files are those changed since setup ended, not since the image was made."""
    await ran(
        host, "mkdir /srv/d; for n in same over gone; do echo x > /srv/$n; done; rm /etc/motd"
    )
    await host.mark()
    assert await host.changed() == ()
    await ran(
        host,
        "echo y > /srv/over; rm /srv/gone; touch '/srv/new\nline'; echo x > /srv/d/in;"
        " echo z > /etc/motd",
    )
    changes = await host.changed()
    assert changes is not None
    assert {change.path: (change.change, change.size) for change in changes} == {
        "/etc/motd": ("added", 2),
        "/srv/d/in": ("added", 2),
        "/srv/gone": ("removed", None),
        "/srv/new\nline": ("added", 0),
        "/srv/over": ("changed", 2),
    }


async def test_without_tools_changes_are_not_known(podman: Engine, make_driver: MakeDriver) -> None:
    """Not seen is not false: a host that cannot say what its files are like tells of no changes."""
    async with await make_driver(podman, DEBIAN).provision(
        "run", (HostSpec(name="web-01"),)
    ) as fleet:
        host = fleet.hosts["web-01"]
        await host.mark()
        await ran(host, "rm /usr/bin/find")
        assert await host.changed() is None


async def test_busy_start_takes_nothing_from_the_time_limit(
    podman: Engine, make_driver: MakeDriver
) -> None:
    """A time limit counts from when the command is at work, not from when the engine is asked."""
    async with await make_driver(podman).provision("run", (HostSpec(name="web-01"),)) as fleet:
        host = fleet.hosts["web-01"]
        program = podman.program.read_text()
        podman.program.write_text(program.replace("exec", "sleep 1\nexec", 1))
        try:
            answer = await host.run(Command(run="echo done", timeout=0.5))
        finally:
            podman.program.write_text(program)
    assert answer.stdout == "done\n", answer
