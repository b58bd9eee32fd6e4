"""Networks, servers and disks that fail: each ends in its bound, with a reason in plain words."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable

import pytest
from tests.integration.sshd import Machine, Rig, driver_for, host_of

from opsdrill.errors import HostError, HostUnreachable, ProvisionFailed
from opsdrill.hosts.driver import Host
from opsdrill.model.host import Command, HostAnswer
from opsdrill.model.scenario import HostSpec

BOUND = 60.0
"""Seconds in which a lost machine is noticed and given up, whatever the command's own limit."""


async def printed(host: Host, run: str) -> str:
    answer = await host.run(Command(run=run, timeout=20))
    assert answer.exit_code == 0, answer
    return answer.stdout


async def interrupted(
    host: Host, machine: Machine, run: str = "echo before; sleep 9999", limit: float = 600
) -> asyncio.Task[HostAnswer]:
    """A command that is in the middle of its work."""
    call = asyncio.ensure_future(host.run(Command(run=run, timeout=limit)))
    async with asyncio.timeout(BOUND):
        while not machine.processes("sleep 9999"):
            assert not call.done(), call
            await asyncio.sleep(0.05)
    await asyncio.sleep(0.2)
    return call


async def no_answer(call: asyncio.Task[HostAnswer]) -> str:
    """The reason of an answer that must be none, and come in the bound."""
    async with asyncio.timeout(BOUND):
        answer = await call
    assert answer.unreachable, answer
    assert answer.exit_code is None
    assert answer.timed_out is None
    assert answer.stdout == "before\n"
    assert answer.last_answered_at is not None
    return answer.reason or ""


async def network_is_cut(machine: Machine) -> None:
    """A cut network in the middle of a command is no answer, noticed without its time limit."""
    async with host_of(machine.lab()) as host:
        await printed(host, "true")
        call = await interrupted(host, machine)
        machine.network("down")
        reason = await no_answer(call)
        assert "lost half way" in reason
        assert machine.address in reason
        # From now on it is known to be down, and asking again is quick to end.
        async with asyncio.timeout(30):
            answer = await host.run(Command(run="true"))
        assert answer.unreachable
        with pytest.raises(HostUnreachable, match="does not answer"):
            await host.get("/etc/hostname")


async def network_comes_back(machine: Machine) -> None:
    """After a cut the command's answer is lost, the host is not, and nothing works on there."""
    async with host_of(machine.lab()) as host:
        await printed(host, "true")
        call = await interrupted(host, machine)
        machine.network("down")
        await asyncio.sleep(14)
        machine.network("up")
        async with asyncio.timeout(BOUND):
            answer = await call
        assert answer.dropped, answer
        assert answer.exit_code is None
        assert answer.stdout == "before\n"
        assert not machine.processes("sleep 9999")
        assert await printed(host, "echo on") == "on\n"


async def host_freezes(machine: Machine) -> None:
    """A frozen server is noticed without the command's time limit."""
    async with host_of(machine.lab()) as host:
        await printed(host, "true")
        call = await interrupted(host, machine)
        machine.signal_sshd(signal.SIGSTOP)
        reason = await no_answer(call)
        assert "says nothing" in reason
        machine.signal_sshd(signal.SIGCONT)


async def host_freezes_before_the_limit(machine: Machine) -> None:
    """Nobody can say that a command was killed on a host that does not answer."""
    async with host_of(machine.lab()) as host:
        await printed(host, "true")
        call = await interrupted(host, machine, limit=3)
        machine.signal_sshd(signal.SIGSTOP)
        reason = await no_answer(call)
        assert "no end within 3 s" in reason
        machine.signal_sshd(signal.SIGCONT)


async def frozen_host_is_not_provisioned(machine: Machine) -> None:
    """A host that accepts connections and says nothing fails in its bound."""
    machine.signal_sshd(signal.SIGSTOP)
    with pytest.raises(ProvisionFailed, match="says nothing"):
        async with asyncio.timeout(BOUND):
            await driver_for(web_01=machine.lab()).provision("run", [HostSpec(name="web-01")])
    machine.signal_sshd(signal.SIGCONT)


async def host_that_is_not_there(machine: Machine) -> None:
    """An address that nobody has: no route or a time-out, and no finding that blocks."""
    entry = machine.lab(address=machine.address.rpartition(".")[0] + ".254")
    with pytest.raises(ProvisionFailed, match=r"no route|timed out"):
        async with asyncio.timeout(BOUND):
            await driver_for(web_01=entry).provision("run", [HostSpec(name="web-01")])
    found = await driver_for(web_01=entry).preflight([HostSpec(name="web-01")])
    assert [(finding.good, finding.blocks) for finding in found] == [(False, False)]


async def shells_are_stopped(machine: Machine) -> None:
    """Shells that a command stops are given up, and keep nobody else from the machine."""
    async with host_of(machine.lab()) as host:
        run = "echo before; kill -STOP $PPID; exit 3"
        calls = [host.run(Command(run=run, timeout=1)) for _ in range(10)]
        async with asyncio.timeout(BOUND):
            for answer in await asyncio.gather(*calls):
                assert answer.exit_code is None, answer
                assert answer.stdout == "before\n"
            answers = [host.run(Command(run=f"echo {number}")) for number in range(20)]
            for number, answer in enumerate(await asyncio.gather(*answers)):
                assert answer.stdout == f"{number}\n", answer


async def all_hear_that_it_is_gone(machine: Machine) -> None:
    """Whoever waits for a turn on a machine that goes away hears that as well."""
    async with host_of(machine.lab()) as host:
        run = Command(run="echo before; sleep 9999", user="plain", timeout=600)
        calls = [asyncio.ensure_future(host.run(run)) for _ in range(40)]
        async with asyncio.timeout(BOUND):
            while len(machine.processes("sleep 9999")) < 8:
                await asyncio.sleep(0.05)
        machine.enter("mv /usr/sbin/sshd /usr/sbin/off")
        machine.signal_sshd(signal.SIGKILL)
        async with asyncio.timeout(BOUND):
            assert all(answer.unreachable for answer in await asyncio.gather(*calls))


SILENT: dict[str, Callable[[Machine], Awaitable[None]]] = {
    "network is cut": network_is_cut,
    "network comes back": network_comes_back,
    "host freezes": host_freezes,
    "host freezes before the limit": host_freezes_before_the_limit,
    "frozen host is not provisioned": frozen_host_is_not_provisioned,
    "host that is not there": host_that_is_not_there,
    "shells are stopped": shells_are_stopped,
    "all hear that it is gone": all_hear_that_it_is_gone,
}
"""What takes its time, each with a machine of its own, all at once."""


@pytest.fixture(scope="module")
def silent(session_rig: Rig) -> dict[str, BaseException | None]:
    """What became of each of them: None, or what failed."""
    machines = [session_rig.machine() for _ in SILENT]

    async def all_of_them() -> list[BaseException | None]:
        calls = [check(machine) for check, machine in zip(SILENT.values(), machines, strict=True)]
        return await asyncio.gather(*calls, return_exceptions=True)

    found = asyncio.run(all_of_them())
    session_rig.end_machines()
    return dict(zip(SILENT, found, strict=True))


@pytest.mark.parametrize("case", SILENT)
def test_silence_ends_in_its_bound(silent: dict[str, BaseException | None], case: str) -> None:
    """A cut network, a frozen host, one that is not there: as their functions say."""
    failure = silent[case]
    if failure is not None:
        raise failure


async def test_short_cut_is_not_noticed(machine: Machine) -> None:
    """A cut of two seconds costs two seconds."""
    async with host_of(machine.lab()) as host:
        await printed(host, "true")
        call = asyncio.ensure_future(host.run(Command(run="sleep 1; echo on", timeout=60)))
        machine.network("down")
        await asyncio.sleep(2)
        machine.network("up")
        assert (await call).stdout == "on\n"


async def test_server_is_stopped(machine: Machine) -> None:
    """A stopped sshd: no answer at once, and the reason says that nothing listens."""
    async with host_of(machine.lab()) as host:
        await printed(host, "true")
        call = await interrupted(host, machine)
        machine.enter("mv /usr/sbin/sshd /usr/sbin/off")
        machine.signal_sshd(signal.SIGKILL)
        reason = await no_answer(call)
        assert "connection refused" in reason


async def test_server_is_restarted(machine: Machine) -> None:
    """After a restart of sshd the next command makes a new connection."""
    async with host_of(machine.lab()) as host:
        await printed(host, "true")
        machine.signal_sshd(signal.SIGKILL)
        assert await printed(host, "echo on") == "on\n"


async def test_key_is_taken_away(machine: Machine) -> None:
    """An agent that removes the key: once the connection is lost, the reason says so."""
    async with host_of(machine.lab()) as host:
        await printed(host, ": > /etc/ssh/rig_keys")
        assert await printed(host, "echo on") == "on\n"
        machine.signal_sshd(signal.SIGKILL)
        answer = await host.run(Command(run="true"))
        assert answer.unreachable
        assert "login refused" in (answer.reason or "")


async def test_host_key_changes(machine: Machine, rig: Rig) -> None:
    """A host key that changes in the middle of a run is never accepted."""
    async with host_of(machine.lab()) as host:
        await host.put("/etc/ssh/rig_host_key", rig.other_key.read_bytes(), mode=0o600)
        machine.signal_sshd(signal.SIGKILL)
        answer = await host.run(Command(run="true"))
        assert answer.unreachable
        assert "host key changed" in (answer.reason or "")


async def test_disk_is_full(machine: Machine) -> None:
    """Commands need no room on the disk; a file that finds none says so and leaves no half."""
    async with host_of(machine.lab()) as host:
        await host.put("/srv/file", b"before")
        await host.run(Command(run="head -c 900M /dev/zero > /srv/full"))
        assert await printed(host, "cat <<X\n$((1 + 1))\nX") == "2\n"
        assert await printed(host, "cat /srv/file") == "before"
        with pytest.raises(HostError, match="No space left"):
            await host.put("/srv/file", b"x" * 500_000)
        assert await host.get("/srv/file") == b"before"
        assert await printed(host, "ls -A /srv") == "file\nfull\n"


async def test_shell_behind_is_killed(machine: Machine) -> None:
    """A command that kills its own connection has no status, and nothing of it works on."""
    async with host_of(machine.lab()) as host:
        answer = await host.run(Command(run="sleep 9999 & kill -9 $PPID; sleep 9999"))
        assert answer.dropped, answer
        assert not machine.processes("sleep 9999")


@pytest.mark.parametrize("most", [1, 2, 5])
async def test_few_sessions(rig: Rig, most: int) -> None:
    """A server that allows few sessions gets no more at once; time limits hold all the same."""
    machine = rig.machine(config=f"MaxSessions {most}\n")
    async with host_of(machine.lab()) as host:
        answers = await asyncio.gather(
            *(host.run(Command(run=f"sleep 0.05; echo {number}")) for number in range(20))
        )
        assert [answer.stdout for answer in answers] == [f"{number}\n" for number in range(20)]
        calls = [host.run(Command(run="sleep 9999", timeout=0.5)) for _ in range(3)]
        assert all(answer.timed_out for answer in await asyncio.gather(*calls))
        assert not machine.processes("sleep 9999")


async def test_many_background_processes(machine: Machine) -> None:
    """Channels that background processes hold open do not keep others out, nor end them."""
    async with host_of(machine.lab()) as host:
        for _ in range(22):
            await printed(host, "nohup sh -c 'while echo x; do sleep 0.2; done' &")
        assert await printed(host, "echo on; sleep 0.5; pgrep -fc 'while echo'") == "on\n22\n"


async def test_background_processes_hold_all_sessions(rig: Rig) -> None:
    """Where no session is left, and none will be, a command is not waited for: the reason says what
    holds them, and once that is gone the machine answers again."""
    machine = rig.machine(config="MaxSessions 1\n")
    async with host_of(machine.lab()) as host:
        async with asyncio.timeout(2 * BOUND):
            for number in range(30):
                answer = await host.run(Command(run="nohup sh -c 'sleep 9999; echo x' &"))
                if answer.unreachable:
                    break
                assert answer.exit_code == 0, (number, answer)
                await asyncio.sleep(0.4)
            assert "background processes hold all" in (answer.reason or ""), answer
            machine.enter("pkill -f '[s]leep 9999'")
            await asyncio.sleep(1)
            assert await printed(host, "echo on") == "on\n"


async def test_one_connection(machine: Machine) -> None:
    """Many commands at once go over one connection."""
    async with host_of(machine.lab()) as host:
        await asyncio.gather(*(printed(host, "true") for _ in range(60)))
        assert len(machine.processes("sshd: root")) <= 11
        assert len(machine.processes("sshd: root@notty")) == 1


async def test_all_output_before_a_background_process(machine: Machine) -> None:
    """All that a command wrote is there, though a background process holds its output."""
    async with host_of(machine.lab()) as host:
        run = "sleep 60 & head -c 300000 /dev/zero | tr '\\0' x; echo end >&2"
        for _ in range(10):
            answer = await host.run(Command(run=run))
            assert (len(answer.stdout), answer.stderr) == (300_000, "end\n")


async def test_all_output_over_a_slow_line(machine: Machine) -> None:
    """What a command wrote last comes long after its status on a slow line. It is waited for,
    though background processes keep this channel open, and others."""
    async with host_of(machine.lab()) as host:
        for _ in range(9):
            await printed(host, "nohup sleep 9999 &")
        machine.enter("tc qdisc add dev eth0 root tbf rate 1mbit burst 16kb latency 30s")
        run = Command(run="sleep 60 & head -c 300000 /dev/zero | tr '\\0' x; echo end >&2")
        for answer in await asyncio.gather(*(host.run(run) for _ in range(2))):
            assert (len(answer.stdout), answer.stderr) == (300_000, "end\n")


async def test_background_process_that_never_stops_writing(machine: Machine) -> None:
    """What it writes after its command is dropped, slowly, and others are not held up."""
    async with host_of(machine.lab()) as host:
        answer = await host.run(Command(run="yes & echo on", timeout=20))
        assert answer.exit_code == 0
        used = time.process_time()
        await asyncio.sleep(1)
        assert time.process_time() - used < 0.8
        assert await printed(host, "pgrep -c yes") == "1\n"


async def test_released_in_the_middle(machine: Machine) -> None:
    """A host that is given back answers nothing more, and no call hangs."""
    async with host_of(machine.lab()) as host:
        call = await interrupted(host, machine)
    async with asyncio.timeout(20):
        answer = await call
    assert answer.unreachable


async def test_released_while_it_is_looked_for(machine: Machine) -> None:
    """A host that is given back while its connection is being made anew: no answer, no hang."""
    async with host_of(machine.lab()) as host:
        machine.enter("mv /usr/sbin/sshd /usr/sbin/off")
        machine.signal_sshd(signal.SIGKILL)
        call = asyncio.ensure_future(host.run(Command(run="true")))
        await asyncio.sleep(1)
        assert not call.done()
    async with asyncio.timeout(20):
        answer = await call
    assert answer.unreachable
    assert "given back" in (answer.reason or "")


async def test_cancelled_while_it_is_looked_for(machine: Machine) -> None:
    """A call that is cancelled while a connection is made ends at once."""
    async with host_of(machine.lab()) as host:
        machine.enter("mv /usr/sbin/sshd /usr/sbin/off")
        machine.signal_sshd(signal.SIGKILL)
        call = asyncio.ensure_future(host.run(Command(run="true")))
        await asyncio.sleep(0.5)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            async with asyncio.timeout(5):
                await call
