"""What a host must not see: each test looks for it from inside."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

import pytest

from opsdrill.hosts.driver import DriverContext
from opsdrill.hosts.drivers.sandbox.driver import SandboxDriver
from opsdrill.hosts.drivers.sandbox.host import SandboxHost
from opsdrill.model.host import Command
from opsdrill.model.scenario import HostSpec

pytestmark = pytest.mark.sandbox


async def output(host: SandboxHost, run: str, timeout: float = 60.0) -> str:
    answer = await host.run(Command(run=run, timeout=timeout))
    assert answer.exit_code is not None, answer
    return answer.stdout


async def listed(host: SandboxHost, folders: str) -> list[str]:
    """What is in these folders, those that are there."""
    return (await output(host, f"ls -A {folders} 2>/dev/null | grep -v :$")).split()


async def test_tree_is_an_allow_list(host: SandboxHost) -> None:
    """The tree is an allow-list: `/usr` and the links into it, `/etc`, `/var`, the rest empty."""
    merged = {"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr"}
    empty = {"home", "media", "mnt", "opt", "root", "srv", "sys", "tmp"}
    expected = merged | empty | {"dev", "etc", "proc", "run", "var"}
    assert set((await output(host, "ls /")).split()) <= expected
    assert await listed(host, "/home /root /srv /opt /mnt /media /tmp") == []


async def test_no_file_of_the_machine(host: SandboxHost, tmp_path: Path) -> None:
    """Homes, `/root`, the project's data: a file of the machine is nowhere on a host."""
    word = secrets.token_hex(16)
    places = [tmp_path / "secret", Path.home() / f".opsdrill-test-{word}"]
    try:
        for place in places:
            place.write_text(word)
            assert await output(host, f"cat {place} 2>/dev/null") == ""
        found = await output(
            host,
            f"find / -xdev -name '*{word}*' 2>/dev/null; grep -rl {word} /tmp /root /home /var",
        )
        assert found == ""
    finally:
        for place in places:
            place.unlink(missing_ok=True)


async def test_no_password_of_the_machine(host: SandboxHost) -> None:
    """Never the machine's own `/etc`: no password hash, no user or name of the machine."""
    shadow = await output(host, "cat /etc/shadow")
    assert all(line.split(":")[1] == "*" for line in shadow.splitlines())
    users = {line.split(":")[0] for line in (await output(host, "cat /etc/passwd")).splitlines()}
    machine = Path("/etc/passwd").read_text(encoding="utf-8").splitlines()
    humans = {line.split(":")[0] for line in machine if 1000 <= int(line.split(":")[2]) < 60000}
    assert not users & humans
    assert await listed(host, "/etc/ssh /etc/ssl/private /etc/sudoers.d") == []


async def test_no_environment_of_ours(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of OpsDrill's environment is in any process of a host."""
    word = secrets.token_hex(16)
    monkeypatch.setenv("OPSDRILL_TEST_SECRET", word)
    driver = SandboxDriver(DriverContext(tmp_path, {"size": "16M"}))
    try:
        async with await driver.provision("env", [HostSpec(name="web-01")]) as fleet:
            run = f"cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c {word}"
            assert await output(fleet.hosts["web-01"], run) == "0\n"
    finally:
        await driver.close()


async def test_processes_outside_are_unseen(host: SandboxHost) -> None:
    """A host sees its own processes only, and its first one says nothing of ours."""
    pids = (await output(host, "ls /proc | grep -E '^[0-9]+$' | wc -l")).strip()
    assert int(pids) <= 6
    assert await output(host, "tr -d '\\0' < /proc/1/cmdline; cat /proc/1/comm") == "initinit\n"
    assert await output(host, f"test -e /proc/{os.getpid() + 100000} || echo no") == "no\n"


async def test_first_process_is_closed(host: SandboxHost) -> None:
    """Nothing of the host's first process can be opened: neither program, memory nor files."""
    for name in ("exe", "mem", "environ", "maps", "root/etc/passwd", "cwd/etc", "fd/0", "stack"):
        answer = await host.run(Command(run=f"head -c 1 /proc/1/{name}"))
        assert answer.exit_code != 0, name
        assert answer.stdout == ""


async def test_kernel_secrets_are_masked(host: SandboxHost) -> None:
    """Kernel memory, keys, symbols, timers: empty or not there."""
    for name in ("kcore", "keys", "kallsyms", "timer_list", "kmsg", "sysrq-trigger", "config.gz"):
        assert await output(host, f"cat /proc/{name} 2>/dev/null | head -c 100") == "", name
    assert await listed(host, "/sys /proc/acpi /proc/bus /proc/fs") == []
    assert (await host.run(Command(run="dmesg"))).exit_code != 0


async def test_no_disk_of_the_machine(host: SandboxHost) -> None:
    """No block device is there, and no other device than the harmless ones."""
    assert await output(host, "find /dev -type b") == ""
    devices = set((await output(host, "find /dev -type c -printf '%f '")).split())
    assert devices <= {"null", "zero", "full", "random", "urandom", "tty", "ptmx"}


async def test_mounts_lead_nowhere(host: SandboxHost) -> None:
    """No mount but the host's own is in its table; the old root is gone."""
    kinds = set((await output(host, "cut -d' ' -f1,2 /proc/mounts")).splitlines())
    targets = {line.split()[1] for line in kinds}
    allowed = ("/proc", "/sys", "/dev", "/usr", "/bin", "/sbin", "/lib")
    assert all(target == "/" or target.startswith(allowed) for target in targets), targets


async def test_other_runs_are_unseen(driver: SandboxDriver, host: SandboxHost) -> None:
    """A host of another run shares neither files nor processes nor shared memory nor queues."""
    async with await driver.provision("other", [HostSpec(name="web-01")]) as fleet:
        other = fleet.hosts["web-01"]
        marks = "echo x > /tmp/mark; echo x > /dev/shm/mark; echo x > /usr/local/bin/mark;"
        await output(other, f"{marks} ipcmk -M 100 -Q >/dev/null; sleep 6666 >/dev/null &")
        seen = (
            "ls /tmp /dev/shm /usr/local/bin | grep mark; pgrep -f 'sleep 6666'; ipcs -mq | grep 0x"
        )
        assert await output(host, seen) == ""
