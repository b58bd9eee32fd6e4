"""What a host must not be able to do: each test tries it from inside, as its root."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest

from opsdrill.errors import HostError
from opsdrill.hosts.drivers.sandbox.driver import SandboxDriver
from opsdrill.hosts.drivers.sandbox.host import SandboxHost
from opsdrill.model.host import Command, HostAnswer
from opsdrill.model.scenario import HostSpec

pytestmark = pytest.mark.sandbox

PREAMBLE = """
import ctypes, errno, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    ctypes.set_errno(0)
    result = getattr(libc, name)(*arguments)
    print("did it" if result >= 0 else errno.errorcode[ctypes.get_errno()])
"""


async def attempt(host: SandboxHost, code: str) -> str:
    """Run Python code on the host; what it prints."""
    await host.put("/tmp/attempt.py", (PREAMBLE + code).encode())
    answer = await host.run(Command(run="python3 /tmp/attempt.py"))
    assert answer.exit_code == 0, answer
    return answer.stdout.strip()


async def run(host: SandboxHost, text: str, timeout: float = 60.0) -> HostAnswer:
    return await host.run(Command(run=text, timeout=timeout))


REFUSED = {
    "mount a file system": 'call("mount", b"x", b"/mnt", b"tmpfs", 0, None)',
    "mount over proc": 'call("mount", b"proc", b"/mnt", b"proc", 0, None)',
    "bind mount": 'call("mount", b"/etc", b"/mnt", None, 4096, None)',
    "remount the kernel's settings writable": (
        'call("mount", None, b"/proc/sys", None, 4096 | 32, None)'
    ),
    "unmount what masks the kernel": 'call("umount2", b"/proc/sys", 2)',
    "pivot_root": 'call("syscall", 155, b"/tmp", b"/tmp")',
    "a new user namespace": 'call("unshare", 0x10000000)',
    "a new mount namespace": 'call("unshare", 0x20000)',
    "a new network namespace": 'call("unshare", 0x40000000)',
    "a new process namespace": 'call("unshare", 0x20000000)',
    "a new UTS namespace, to shed the mark": 'call("unshare", 0x04000000)',
    "clone into a user namespace": 'call("syscall", 56, 0x10000000 | 17, 0, 0, 0, 0)',
    "enter the first process's namespaces": (
        'fd = os.pidfd_open(1); call("setns", fd, 0x04000000 | 0x20000)'
    ),
    "attach to the first process": 'call("ptrace", 16, 1, None, None)',
    "the machine's clock": 'call("settimeofday", bytes(16), None)',
    "the host's name, which would reach others": 'call("sethostname", b"x", 1)',
    "load a module": 'call("syscall", 175, b"x", 1, b"")',
    "load a module from a file": 'call("syscall", 313, 0, b"", 0)',
    "reboot": 'call("reboot", 0x1234567)',
    "swap": 'call("swapon", b"/tmp/attempt.py", 0)',
    "load another kernel": 'call("syscall", 246, 0, 0, None, 0)',
    "bpf": 'call("syscall", 321, 0, bytes(128), 128)',
    "perf_event_open": 'call("syscall", 298, bytes(128), 0, -1, -1, 0)',
    "userfaultfd": 'call("syscall", 323, 0)',
    "io_uring": 'call("syscall", 425, 1, bytes(120))',
    "the kernel's keys": 'call("syscall", 250, 0, -3, 1)',
    "the kernel's log": 'call("klogctl", 10, None, 0)',
    "a file by its handle": ('call("syscall", 304, os.open("/usr", 0), bytes(64), 0)'),
    "more open files than allowed": (
        'class L(ctypes.Structure): _fields_ = [("a", ctypes.c_ulong), ("b", ctypes.c_ulong)]\n'
        'call("setrlimit", 7, ctypes.byref(L(10**6, 10**6)))'
    ),
    "a real-time priority": 'call("nice", -10)',
    "an I/O port": 'call("ioperm", 0x60, 1, 1)',
    "file systems that a name hides": 'call("syscall", 161, b"/proc/1/root")',
}


@pytest.mark.parametrize("what", sorted(REFUSED))
async def test_refused(host: SandboxHost, what: str) -> None:
    """The kernel's settings, modules, mounts, namespaces, clock: refused to the host's root."""
    if os.uname().machine != "x86_64" and "syscall" in REFUSED[what]:
        pytest.skip("the system call numbers here are those of x86_64")
    said = await attempt(host, REFUSED[what])
    assert said in ("EPERM", "EACCES", "EINVAL", "ENOSPC", "EROFS", "ENOSYS"), said
    assert said != "EINVAL" or what in ("remount the kernel's settings writable", "pivot_root")


async def test_no_disk_node(host: SandboxHost) -> None:
    """A node of the machine's disk cannot be made, so the disk cannot be mounted or read."""
    disk = Path("/").stat().st_dev
    said = await attempt(
        host, f'call("mknod", b"/tmp/disk", 0o060666, {disk}); print(os.path.exists("/tmp/disk"))'
    )
    assert said == "EPERM\nFalse"


SETTINGS = ("kernel/core_pattern", "kernel/hostname", "vm/drop_caches", "kernel/panic")


@pytest.mark.parametrize("name", SETTINGS)
async def test_settings_are_read_only(host: SandboxHost, name: str) -> None:
    """The kernel's settings cannot be changed; `core_pattern` would run a program outside."""
    before = Path(f"/proc/sys/{name}")
    old = before.read_text() if os.access(before, os.R_OK) else None
    answer = await run(host, f"echo '|/tmp/x' > /proc/sys/{name}")
    assert answer.exit_code != 0
    if old is not None:
        assert before.read_text() == old


async def test_capabilities_are_cut(host: SandboxHost) -> None:
    """Capabilities are cut to what a container gets, for good."""
    text = (await run(host, "grep -E 'Cap(Prm|Eff|Bnd|Inh|Amb)' /proc/self/status")).stdout
    sets = {line.split(":")[0]: int(line.split()[1], 16) for line in text.splitlines()}
    allowed = sum(1 << bit for bit in (0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 29, 31))
    assert sets["CapBnd"] == sets["CapPrm"] == sets["CapEff"] == allowed
    assert sets["CapInh"] == sets["CapAmb"] == 0


async def test_no_new_privileges(host: SandboxHost) -> None:
    """No new privileges: a set-user-id program gives none, and the filter holds."""
    text = (await run(host, "grep -E 'NoNewPrivs|Seccomp:' /proc/self/status")).stdout
    assert text.split() == ["NoNewPrivs:", "1", "Seccomp:", "2"]
    if host.facts.users:
        await run(host, "cp /usr/bin/id /srv/id; chmod 4755 /srv/id")
        answer = await host.run(Command(run="/srv/id -u", user="www-data"))
        assert answer.stdout == "33\n"


async def test_first_process_survives(host: SandboxHost) -> None:
    """Signals to the host's first process, or to all, do not end the host."""
    await run(host, "kill -9 1; kill -TERM 1; kill -STOP 1; kill -9 -1")
    assert (await run(host, "echo on")).stdout == "on\n"


async def test_no_signal_to_outside(host: SandboxHost) -> None:
    """No process outside can be signalled: its number means nothing, or another one, inside."""
    me = os.getpid()
    answer = await run(host, f"kill -0 {me}")
    assert answer.exit_code != 0 or me < 100


async def test_no_way_out_of_the_network(host: SandboxHost) -> None:
    """A host alone reaches nothing: no address but its own loopback, no route, no port of ours."""
    with socket.socket() as listening:
        listening.bind(("0.0.0.0", 0))
        listening.listen()
        port = listening.getsockname()[1]
        said = await attempt(
            host,
            f"""
for address in ("127.0.0.1", "10.0.0.1", "192.0.2.1", "1.1.1.1", "169.254.169.254"):
    try:
        socket.create_connection((address, {port}), timeout=3); print("reached", address)
    except OSError as error:
        print(errno.errorcode[error.errno])
print(sorted(name for _, name in socket.if_nameindex()))
""",
        )
    assert said.split("\n") == ["ECONNREFUSED"] + ["ENETUNREACH"] * 4 + ["['lo']"]


async def test_no_abstract_socket_of_the_machine(host: SandboxHost) -> None:
    """Unix sockets without a path are not shared with the machine."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(b"\0opsdrill-test-outside")
        listening.listen()
        said = await attempt(
            host,
            """
try:
    socket.socket(socket.AF_UNIX).connect(b"\\0opsdrill-test-outside"); print("reached")
except OSError as error:
    print(errno.errorcode[error.errno])
""",
        )
    assert said == "ECONNREFUSED"


@pytest.mark.parametrize("family", [40, 38, 31, 29, 42])
async def test_no_socket_past_the_network(host: SandboxHost, family: int) -> None:
    """Families that network namespaces do not hold back (vsock, ...) are refused."""
    said = await attempt(
        host,
        f"""
try:
    socket.socket({family}, socket.SOCK_STREAM); print("made")
except OSError as error:
    print(errno.errorcode[error.errno])
""",
    )
    assert said == "EAFNOSUPPORT"


async def test_runs_do_not_reach_each_other(driver: SandboxDriver) -> None:
    """Hosts of one run see each other, and those of another run, on the same addresses, do not."""
    names = [HostSpec(name="web-01"), HostSpec(name="db-01")]
    async with await driver.provision("a", names) as one, await driver.provision("b", names) as two:
        await run(
            one.hosts["db-01"], "cd /srv; echo a > run; python3 -m http.server 80 >/dev/null 2>&1 &"
        )
        fetch = (
            "python3 -c 'import urllib.request as u;"
            'print(u.urlopen("http://db-01/run", timeout=3).read())\''
        )
        for _ in range(50):
            answer = await run(one.hosts["web-01"], fetch)
            if answer.exit_code == 0:
                break
        assert "a" in answer.stdout
        other = await run(two.hosts["web-01"], fetch)
        assert other.exit_code != 0
        assert "refused" in other.stderr
        away = await attempt(
            one.hosts["web-01"],
            """
try:
    socket.create_connection(("192.0.2.1", 80), timeout=3)
except OSError as error:
    print(errno.errorcode[error.errno])
""",
        )
        assert away == "ENETUNREACH"


async def test_disk_is_bounded(host: SandboxHost) -> None:
    """A host cannot take more than its size, wherever it writes; others go on."""
    answer = await run(
        host,
        "for d in /srv /tmp /dev/shm /run /var/tmp /usr/local; do"
        " head -c 100M /dev/zero > $d/full 2>/dev/null; done; du -scm --total /srv /tmp /dev/shm"
        " /run /var/tmp /usr/local/full | tail -1 | cut -f1; df -m / | tail -1",
    )
    assert int(answer.stdout.split()[0]) <= 17, answer


async def test_file_count_is_bounded(host: SandboxHost) -> None:
    """A host cannot use up memory by empty files."""
    answer = await run(
        host,
        'python3 -c \'import os\nfor n in range(10**6):\n open(f"/srv/{n}", "w").close()\'',
    )
    assert answer.exit_code == 1
    assert "No space left" in answer.stderr
    assert (await run(host, "rm -rf /srv/*; ls /srv | wc -l")).exit_code is not None


async def test_processes_are_bounded(host: SandboxHost) -> None:
    """A fork bomb ends at the bound; the machine and other commands of the host go on."""
    answer = await run(host, "b() { b | b & }; b; sleep 0.5; ls /proc | grep -cE '^[0-9]'", 2.0)
    count = len([path for path in Path("/proc").iterdir() if path.name.isdigit()])
    assert count < 2000
    assert answer.timed_out or answer.exit_code is not None
    answer = await run(
        host, "for i in $(seq 200); do sleep 555 & done 2>/dev/null; jobs -p | wc -l", 5.0
    )
    assert answer.exit_code is None or answer.exit_code != 0 or int(answer.stdout) <= 64


BOMB = b"""
import os
while True:
    try:
        if os.fork() == 0: os.setsid()
    except OSError:
        pass
"""


async def test_fork_bomb_is_killed_at_its_limit(driver: SandboxDriver) -> None:
    """Past its time limit even a fork bomb is gone, and the host answers again."""
    async with await driver.provision("bomb", [HostSpec(name="web-01")]) as fleet:
        host = fleet.hosts["web-01"]
        await host.put("/tmp/bomb.py", BOMB)
        answer = await run(host, "python3 /tmp/bomb.py", 1.0)
        assert answer.timed_out
        assert "could not be killed" not in (answer.reason or "")
        left = await run(host, "pgrep -cf bomb.py")
        assert left.stdout == "0\n"


async def test_memory_is_bounded(host: SandboxHost) -> None:
    """Where the kernel lets memory be bounded, a command that takes too much of it is ended."""
    if not host.facts.limits["memory"].startswith("at most"):
        pytest.skip("needs root, or a control group of one's own from the Debian package systemd")
    answer = await run(host, "python3 -c 'x = bytearray(10**9); print(len(x))'")
    assert answer.exit_code == 137
    assert (await run(host, "echo on")).stdout == "on\n"


async def test_open_files_are_bounded(host: SandboxHost) -> None:
    """One process cannot open files without end."""
    said = await attempt(
        host,
        """
held = []
try:
    while True: held.append(os.open("/dev/null", 0))
except OSError as error:
    print(errno.errorcode[error.errno], len(held) < 5000)
""",
    )
    assert said == "EMFILE True"


async def test_lower_layer_stays_as_it_is(host: SandboxHost) -> None:
    """Whatever a host does under `/usr`, the machine's own `/usr` does not change."""
    before = Path("/usr/bin/env").stat()
    await run(
        host,
        "rm -f /usr/bin/env; echo x > /usr/bin/env; chmod 777 /usr/bin/id; chown 33 /usr/bin;"
        " rm -rf /usr/share/doc; touch /usr/local/bin/mine; ln /usr/bin/sort /usr/bin/sort2",
    )
    after = Path("/usr/bin/env").stat()
    assert (before.st_ino, before.st_size, before.st_mtime_ns, before.st_ctime_ns) == (
        after.st_ino,
        after.st_size,
        after.st_mtime_ns,
        after.st_ctime_ns,
    )
    assert Path("/usr/share/doc").exists()
    assert not Path("/usr/local/bin/mine").exists()
    assert Path("/usr/bin").stat().st_uid != 33


async def test_devices_of_the_machine_stay(host: SandboxHost) -> None:
    """`/dev/null` of the machine keeps mode and owner, whatever a host does to its own."""
    before = Path("/dev/null").stat()
    await run(host, "chmod 000 /dev/null; chown 33 /dev/null; rm -f /dev/null; echo x > /dev/null")
    after = Path("/dev/null").stat()
    assert (before.st_mode, before.st_uid, before.st_ino) == (
        after.st_mode,
        after.st_uid,
        after.st_ino,
    )


async def test_chroot_does_not_lead_out(host: SandboxHost) -> None:
    """The classic way out of a chroot leads to the host's own root."""
    said = await attempt(
        host,
        """
here = os.open("/", 0)
os.makedirs("/tmp/jail", exist_ok=True); os.chroot("/tmp/jail"); os.fchdir(here)
for _ in range(50): os.chdir("..")
os.chroot(".")
print(open("/etc/hostname").read().strip(), os.path.exists("/lost+found"))
""",
    )
    assert said == "web-01 False"


async def test_program_of_ours_cannot_be_reached(host: SandboxHost) -> None:
    """While commands come in, no process lets anybody open the machine's interpreter."""
    await host.put(
        "/tmp/watch.py",
        b"""
import os, time
end = time.monotonic() + 2
got = set()
while time.monotonic() < end:
    for pid in os.listdir("/proc"):
        if not pid.isdigit(): continue
        try:
            comm = open(f"/proc/{pid}/comm").read().strip()
            fd = os.open(f"/proc/{pid}/exe", os.O_RDONLY)
        except OSError: continue
        inside = os.path.realpath(f"/proc/self/fd/{fd}")
        if os.fstat(fd).st_dev != os.stat("/usr/bin/env").st_dev or not os.path.exists(inside):
            got.add((comm, inside))
        os.close(fd)
print(sorted(got))
""",
    )
    await run(host, "python3 /tmp/watch.py > /tmp/got 2>&1 &")
    for _ in range(40):
        await run(host, "true")
    await run(host, "sleep 2.5")
    assert (await run(host, "cat /tmp/got")).stdout == "[]\n"


async def test_links_do_not_lead_put_outside(host: SandboxHost, tmp_path: Path) -> None:
    """A link on the host to a path of the machine leads to the host's own path."""
    target = tmp_path / "victim"
    target.write_text("ours")
    await run(host, f"ln -s {target} /srv/link; ln -s / /srv/up; ln -s /proc/1/root /srv/root")
    with pytest.raises(HostError):
        await host.put("/srv/link", b"theirs")
    with pytest.raises(HostError):
        await host.get("/srv/root/etc/passwd")
    with pytest.raises(FileNotFoundError):
        await host.get(f"/srv/up{target}")
    await host.put(f"/srv/up{target}", b"theirs")
    assert target.read_text() == "ours"


async def test_descriptor_tricks_do_not_lead_outside(host: SandboxHost) -> None:
    """`/proc/self/fd` and `/dev/stdin` in a path do not reach descriptors of ours."""
    for path in ("/proc/self/fd/0", "/dev/stdin", "/dev/fd/3", "/proc/thread-self/fd/3"):
        with pytest.raises((FileNotFoundError, HostError)):
            await host.get(path)


async def test_hostile_passwd(host: SandboxHost) -> None:
    """A broken, endless or missing `/etc/passwd` does not stop root's commands."""
    for text in (
        b"",
        b"root\n",
        b"root:x:-1:99999999999999:::\n",
        b"\xff\0:" * 1000,
        b"x" * 2_000_000,
    ):
        await host.put("/etc/passwd", text)
        assert (await run(host, "id -u")).stdout == "0\n"
    await run(
        host, "rm /etc/passwd; mkfifo /etc/passwd; rm -f /etc/group; ln -s /dev/zero /etc/group"
    )
    assert (await run(host, "echo $HOME")).stdout == "/root\n"


async def test_home_that_is_not_there(host: SandboxHost) -> None:
    """Without its home a command starts in `/`."""
    assert (await run(host, "rmdir /root; echo gone")).stdout == "gone\n"
    assert (await run(host, "pwd")).stdout == "/\n"


HUNTER = b"""
import os, signal, sys
own = {1, os.getpid()}
while True:
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in own:
            try: os.kill(int(name), getattr(signal, sys.argv[1]))
            except OSError: pass
"""


@pytest.mark.parametrize("number", ["SIGSTOP", "SIGKILL"])
async def test_hunter_of_processes(driver: SandboxDriver, number: str) -> None:
    """A process that stops or kills whatever starts holds up no answer past its time limit."""
    async with await driver.provision("hunter", [HostSpec(name="web-01")]) as fleet:
        host = fleet.hosts["web-01"]
        await host.put("/tmp/hunter.py", HUNTER)
        await run(host, f"python3 /tmp/hunter.py {number} >/dev/null 2>&1 & sleep 0.5", 3.0)
        for _ in range(3):
            async with asyncio.timeout(20):
                answer = await run(host, "setsid sleep 9999 & sleep 9999", 1.0)
            assert answer.timed_out or answer.exit_code == 137, answer
        async with asyncio.timeout(20):
            await host.put("/tmp/file", b"x")
            assert await host.get("/tmp/file") == b"x"


async def test_links_swapped_in_do_not_lead_a_listing_out(host: SandboxHost) -> None:
    """A folder that becomes a link while files are listed shows nothing of the machine."""
    await host.put(
        "/tmp/swap.py",
        b"""
import os
os.makedirs("/srv/a/b", exist_ok=True)
os.symlink("/", "/srv/link")
while True:
    os.rename("/srv/a", "/srv/c"); os.rename("/srv/link", "/srv/a")
    os.rename("/srv/a", "/srv/link"); os.rename("/srv/c", "/srv/a")
""",
    )
    await host.mark()
    await run(host, "python3 /tmp/swap.py >/dev/null 2>&1 &")
    for _ in range(20):
        changes = await host.changed()
        assert changes is not None
        deeper = [change.path for change in changes if change.path.startswith("/srv/a/b/")]
        assert not deeper
        assert len(changes) < 20


async def test_users_or_why_not(host: SandboxHost) -> None:
    """Other users can be had, or the answer says what they take; it is never a status."""
    answer = await host.run(Command(run="id -u", user="www-data"))
    if host.facts.users:
        assert answer.stdout == "33\n"
    else:
        assert answer.exit_code is None
        assert "uidmap" in (answer.reason or "")
