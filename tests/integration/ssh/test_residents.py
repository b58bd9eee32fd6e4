"""Commands in a row, which a shell that stays starts: each as if it were alone."""

from __future__ import annotations

import asyncio

import pytest
from tests.integration.sshd import Machine, Rig, host_of

from opsdrill.hosts.driver import Host
from opsdrill.model.host import Command, HostAnswer

STAYS = "sh -c IFS= read -r l&&eval"
"""How the command line of a shell that stays begins."""


async def asked(host: Host, run: str, **more: object) -> HostAnswer:
    return await host.run(Command(run=run, timeout=20, **more))  # type: ignore[arg-type]


async def printed(host: Host, run: str) -> str:
    answer = await asked(host, run)
    assert answer.exit_code == 0, answer
    return answer.stdout


async def test_commands_in_a_row_share_a_channel(machine: Machine) -> None:
    """One shell serves commands in a row, and is gone a moment after the last."""
    async with host_of(machine.lab()) as host:
        parents = {await printed(host, "echo $PPID") for _ in range(10)}
        assert len(parents) == 1
        assert STAYS in await printed(host, "tr '\\0' ' ' </proc/$PPID/cmdline")
        await asyncio.sleep(1)
        assert not machine.processes(STAYS)


async def test_nothing_is_carried_over(machine: Machine) -> None:
    """Variables, folder, mask, limits, traps and files of one command are not the next one's."""
    look = "env | sort; pwd; umask; ulimit -a | grep -v locks; trap; ls /proc/self/fd; echo $-"
    async with host_of(machine.lab()) as host:
        before = await printed(host, look)
        await printed(
            host, "cd /tmp; umask 0; export X=1; ulimit -n 99; trap : TERM; exec 7</; set -f"
        )
        assert await printed(host, look) == before
        assert "SHLVL=1\n" in before
        assert "OLDPWD" not in before


async def test_environment_is_that_of_a_command_alone(machine: Machine) -> None:
    """A command that another user's login runs alone has the same variables, but for its name."""
    async with host_of(machine.lab()) as host:
        root = await printed(host, "env | sort")
        alone = (await asked(host, "env | sort", user="plain")).stdout
        assert alone.replace("/home/plain", "/root").replace("plain", "root") == root


@pytest.mark.parametrize("times", [1, 3])
async def test_background_output_is_never_the_next_ones(machine: Machine, times: int) -> None:
    """What a background process writes later is in no other command's output."""
    async with host_of(machine.lab()) as host:
        for _ in range(times):
            await printed(host, "(sleep 0.05; while echo late; do sleep 0.01; done) & echo on")
        for number in range(20):
            assert await printed(host, f"sleep 0.02; echo {number}") == f"{number}\n"
        await asked(host, "pkill -f 'sleep 0.01'; pkill -f late")


async def test_detached_daemons_do_not_end_it(machine: Machine) -> None:
    """A background process with an output of its own holds nothing up."""
    async with host_of(machine.lab()) as host:
        run = "setsid sleep 500 </dev/null >/dev/null 2>&1 & sleep 0.1; echo $PPID"
        assert len({await printed(host, run) for _ in range(5)}) == 1


async def test_no_shell_leaves_no_text_behind(machine: Machine) -> None:
    """A text that no shell read is not run by the one that stays, nor taken for another's."""
    async with host_of(machine.lab()) as host:
        await printed(host, "cp /bin/bash /srv/bash; mv /bin/bash /srv/off; echo on")
        answer = await asked(host, "echo ran >> /srv/ran\necho ran >> /srv/ran\n")
        assert answer.exit_code is None or answer.shell == "sh", answer
        machine.enter("mv /srv/off /bin/bash")
        ran = "0\n" if answer.exit_code is None else "2\n"
        assert await printed(host, "cat /srv/ran 2>/dev/null | wc -l") == ran


async def test_group_is_killed(machine: Machine) -> None:
    """`kill 0` ends the command with its signal; the next ones are answered by the same shell."""
    async with host_of(machine.lab()) as host:
        before = await printed(host, "echo $PPID")
        assert (await asked(host, "kill 0; sleep 9")).exit_code == 143
        assert (await asked(host, "trap 'echo bye' TERM; kill 0; exit 4")).stdout == "bye\n"
        assert (await asked(host, "kill -9 0")).exit_code == 137
        assert await printed(host, "echo $PPID") == before


async def test_killed_while_it_waits(machine: Machine) -> None:
    """A job may kill a shell that stays: the next command is answered by another."""
    async with host_of(machine.lab()) as host:
        for _ in range(3):
            await printed(host, "true")
            machine.enter("pkill -9 -f '[I]FS= read' || :")
            assert await printed(host, "echo on") == "on\n"


async def test_time_limit_leaves_it_whole(machine: Machine) -> None:
    """After a command was killed at its time limit the next one starts anew."""
    async with host_of(machine.lab()) as host:
        await printed(host, "true")
        answer = await host.run(Command(run="echo a; (setsid sleep 8 &); sleep 8", timeout=0.5))
        assert answer.timed_out
        assert answer.stdout == "a\n"
        assert not machine.processes("sleep 8")
        assert await printed(host, "echo b") == "b\n"


async def test_text_arrives_whole(machine: Machine) -> None:
    """Many lines, a missing line break, quotes and bytes that are no text arrive as written."""
    async with host_of(machine.lab()) as host:
        assert await printed(host, "cat <<'X'\n'\"$x\\\n\tä\nX") == "'\"$x\\\n\tä\n"
        text = "x=" + "a" * 200_000 + "; echo ${#x}"
        assert await printed(host, text) == "200000\n"
        assert await printed(host, "cat; read x; echo $?") == "1\n"
        assert await printed(host, "") == ""


async def test_many_at_once_over_few_sessions(rig: Rig) -> None:
    """Shells that stay keep nobody else from a channel where a server allows two."""
    machine = rig.machine(config="MaxSessions 2\n")
    async with host_of(machine.lab()) as host:

        async def one(number: int) -> None:
            assert await printed(host, f"echo {number}") == f"{number}\n"
            await host.put(f"/srv/{number}", b"x")
            assert (await asked(host, f"cat /srv/{number}; id -un", user="plain")).stdout == (
                "xplain\n"
            )

        async with asyncio.timeout(60):
            await asyncio.gather(*(one(number) for number in range(12)))
