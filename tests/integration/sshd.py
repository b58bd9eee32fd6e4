"""Machines with their own sshd, for tests: real ones, made from kernel namespaces by root.

A machine has its own files (an overlay over this machine's, bounded), processes, network and host
name; its sshd is OpenSSH's. The kernel removes all of it with the last process, and these end with
the process that made them. An ordinary user gets one sshd on the loopback device, as himself.
"""

from __future__ import annotations

import asyncio
import getpass
import os
import random
import shlex
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from opsdrill.hosts.driver import Driver, DriverContext, Finding, Fleet, Host
from opsdrill.hosts.drivers.ssh.driver import SshDriver
from opsdrill.model.lab import LabHost
from opsdrill.model.scenario import HostSpec

SSHD = "/usr/sbin/sshd"
PROGRAMS = {
    SSHD: "openssh-server",
    "/usr/bin/ssh-keygen": "openssh-client",
    "/usr/sbin/ip": "iproute2",
    "/usr/bin/unshare": "util-linux",
    "/usr/bin/sudo": "sudo",
    "/usr/bin/busybox": "busybox-static",
}
"""What machines take, and the Debian packages it comes from."""

PASSWORD = "drill-secret-word"
Shell = Literal["bash", "dash", "busybox"]
_TRIES = 300

_CONFIG = """
Port 22
HostKey /etc/ssh/rig_host_key
AuthorizedKeysFile /etc/ssh/rig_keys
PermitRootLogin yes
PasswordAuthentication yes
UsePAM no
UseDNS no
StrictModes no
PidFile none
MaxStartups 100
Subsystem sftp internal-sftp
"""

# Runs as the first process of the machine's namespaces, on this machine's tree.
_BIRTH = r"""
set -e
base=$1 name=$2 shell=$3
mount --make-rprivate /
mount -t tmpfs -o size=96m,mode=755 tmpfs "$base"
cd "$base"
mkdir upper work tree own
mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work tree
for folder in tmp root srv home run var/tmp; do
  mkdir -p "own/$folder"
  mount --bind "own/$folder" "tree/$folder"
done
chmod 1777 tree/tmp tree/var/tmp
mkdir -p tree/run/sshd tree/var/www tree/home/deploy tree/home/plain
mount -t proc proc tree/proc
mount -t tmpfs -o mode=755,size=1m tmpfs tree/dev
for node in null:3 zero:5 full:7 random:8 urandom:9; do
  mknod -m 666 "tree/dev/${node%:*}" c 1 "${node#*:}"
done
mkdir -m 1777 tree/dev/shm
mknod -m 666 tree/dev/tty c 5 0
mkdir tree/dev/pts
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts tree/dev/pts
ln -s pts/ptmx tree/dev/ptmx
ln -s /proc/self/fd tree/dev/fd
hostname "$name"
cat > tree/etc/ssh/sshd_config
printf '%s\n' "$RIG_HOST_KEY" > tree/etc/ssh/rig_host_key
chmod 600 tree/etc/ssh/rig_host_key
printf '%s\n' "$RIG_KEYS" > tree/etc/ssh/rig_keys
printf '%s\n' "$RIG_HOSTS" > tree/etc/hosts
printf '%s\n' "$name" > tree/etc/hostname
rm -rf tree/etc/sudoers tree/etc/sudoers.d
printf '%s\n' 'Defaults use_pty' 'deploy ALL=(ALL) NOPASSWD: ALL' > tree/etc/sudoers
chmod 440 tree/etc/sudoers
login=/bin/bash
[ "$shell" = bash ] || login=/bin/sh
{ grep -v -e '^root:' -e '^deploy:' -e '^plain:' /etc/passwd
  echo "root:x:0:0:root:/root:$login"
  echo "deploy:x:2001:2001::/home/deploy:$login"
  echo "plain:x:2002:2002::/home/plain:$login"
} > tree/etc/passwd
printf 'deploy:x:2001:\nplain:x:2002:\n' >> tree/etc/group
{ cut -d: -f1 tree/etc/passwd | grep -vx -e root -e deploy -e plain | sed 's/$/:*:19000::::::/'
  for user in root deploy plain; do echo "$user:$RIG_HASH:19000::::::"; done
} > tree/etc/shadow
chmod 640 tree/etc/shadow
chown 2001:2001 tree/home/deploy
chown 2002:2002 tree/home/plain
case $shell in
  dash) rm -f tree/bin/bash tree/usr/bin/bash ;;
  busybox)
    mkdir few admin
    cp /usr/bin/busybox few/busybox
    for applet in $(busybox --list); do [ -e few/$applet ] || ln -s busybox few/$applet; done
    cp /usr/sbin/sshd admin/sshd
    mount --bind few tree/usr/bin
    mount --bind admin tree/usr/sbin
    ;;
esac
unset RIG_HOST_KEY RIG_KEYS RIG_HOSTS RIG_HASH
exec env -i /usr/sbin/chroot tree /bin/sh -c \
  'cd /; while :; do /usr/sbin/sshd -D >/dev/null 2>&1 </dev/null; sleep 0.1 || exit; done'
"""


def missing_packages() -> list[str]:
    """The Debian packages that machines take and that are not there."""
    return sorted({package for path, package in PROGRAMS.items() if not Path(path).exists()})


def why_not() -> str | None:
    """Why no machines can be made here."""
    if lacking := missing_packages():
        return f"machines with an SSH server take the Debian packages {', '.join(lacking)}"
    return "machines with an SSH server of their own take root" if os.geteuid() else None


@dataclass
class Machine:
    """A machine that runs.

    Attributes:
        name: its host name.
        address: where its sshd listens, on port 22.
        key: path of a private key that lets everybody in.
        host_key: its public host key, as one line.
        first: process id of its first process, as this machine sees it.
    """

    name: str
    address: str
    key: Path
    host_key: str
    first: int
    rig: Rig = field(repr=False)
    device: str = ""

    def lab(self, **changes: object) -> LabHost:
        """Its entry in a lab."""
        values: dict[str, object] = {
            "address": self.address,
            "key": str(self.key),
            "known_host": self.host_key,
            **changes,
        }
        return LabHost(**values)  # type: ignore[arg-type]

    def enter(self, script: str) -> str:
        """What a script prints that this machine's root runs inside, not over SSH."""
        words = ["nsenter", "-t", str(self.first), "-a", "-r", "-w", "/bin/sh", "-c", script]
        return subprocess.run(
            words, check=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
        ).stdout

    def processes(self, pattern: str) -> list[int]:
        """Its processes whose command line matches, as this machine sees them."""
        inside = Path(f"/proc/{self.first}/ns/pid").readlink()
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if (entry / "ns/pid").readlink() == inside and pattern in words:
                    found.append(int(entry.name))
            except OSError:
                continue
        return found

    def signal_sshd(self, number: signal.Signals) -> None:
        """Send a signal to all of its sshd processes."""
        for pid in self.processes("sshd"):
            if pid != self.first:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)

    def network(self, state: Literal["up", "down"]) -> None:
        """Plug its cable in, or out."""
        self.rig.hub(f"ip link set {self.device} {state}")

    def end(self) -> None:
        """Pull the plug."""
        self.rig.end(self)


class Rig:
    """A network of machines, apart from all others, which this machine is part of too.

    Args:
        folder: for keys and mount points.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 1
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self.key = make_key(folder / "login")
        self.host_key = make_key(folder / "host")
        self.other_key = make_key(folder / "other")
        self._hash = subprocess.run(
            ["openssl", "passwd", "-6", PASSWORD], check=True, capture_output=True, text=True
        ).stdout.strip()
        self._hub = self._start(["unshare", "--net", "--kill-child", "--fork", "sleep", "infinity"])
        self._second, self._third = _free_net()
        self.address = f"198.{self._second}.{self._third}.1"
        device = f"odr{self._hub}"
        _run(
            f"ip link add {device} type veth peer name up0 netns {self._hub}\n"
            f"ip addr add {self.address}/20 dev {device}\n"
            f"ip link set {device} up"
        )
        self.hub("ip link add br0 type bridge; ip link set br0 up; ip link set up0 master br0 up")

    def machines(
        self, names: Sequence[str], *, shell: Shell = "bash", config: str = ""
    ) -> list[Machine]:
        """Machines that know each other by name.

        Args:
            names: their names.
            shell: what stands at /bin/sh, and whether there is bash.
            config: lines of sshd_config(5) that come first, and so hold.
        """
        addresses = {name: self._address() for name in names}
        hosts = "\n".join(
            ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in addresses.items())]
        )
        return [self._machine(name, addresses[name], hosts, shell, config) for name in names]

    def machine(self, name: str = "web-01", *, shell: Shell = "bash", config: str = "") -> Machine:
        """One machine."""
        return self.machines([name], shell=shell, config=config)[0]

    def hub(self, script: str) -> None:
        """Run a script in the network between the machines."""
        _run(f"nsenter -t {self._hub} -n sh -ec {shlex.quote(script)}")

    def end(self, machine: Machine) -> None:
        """End a machine; the kernel takes the rest back."""
        self._end(machine.first)
        shutil.rmtree(self._folder / machine.device, ignore_errors=True)

    def end_machines(self) -> None:
        """End all machines, not the network."""
        for first in set(self._running) - {self._hub}:
            self._end(first)

    def close(self) -> None:
        """End everything."""
        for first in list(self._running):
            self._end(first)

    def _address(self) -> str:
        self._number += 1
        third, fourth = divmod(self._number, 250)
        return f"198.{self._second}.{self._third + third}.{fourth + 2}"

    def _machine(self, name: str, address: str, hosts: str, shell: Shell, config: str) -> Machine:
        device = f"m{address.replace('.', '-')[4:]}"
        base = self._folder / device
        base.mkdir()
        first = self._start(
            [
                *("unshare", "--mount", "--pid", "--net", "--uts", "--ipc"),
                *("--fork", "--kill-child", "/bin/sh", "-c", _BIRTH, "sh"),
                *(str(base), name, shell),
            ],
            stdin=config + _CONFIG,
            environment={
                "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
                "RIG_HOST_KEY": self.host_key.read_text(),
                "RIG_KEYS": self.key.with_suffix(".pub").read_text(),
                "RIG_HOSTS": hosts,
                "RIG_HASH": self._hash,
            },
        )
        self.hub(
            f"ip link add {device} type veth peer name eth0 netns {first};"
            f"ip link set {device} master br0 up"
        )
        _run(
            f"nsenter -t {first} -n sh -ec"
            f" 'ip link set lo up; ip addr add {address}/20 dev eth0; ip link set eth0 up'"
        )
        host_key = self.host_key.with_suffix(".pub").read_text()
        machine = Machine(name, address, self.key, host_key, first, self, device)
        _wait_for(address, 22)
        return machine

    def _start(
        self, words: list[str], *, stdin: str = "", environment: dict[str, str] | None = None
    ) -> int:
        """Start the first process of namespaces; its process id."""
        process = subprocess.Popen(
            words, stdin=subprocess.PIPE, env=environment, start_new_session=True
        )
        assert process.stdin is not None
        process.stdin.write(stdin.encode())
        process.stdin.close()
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        for _ in range(_TRIES):
            if found := children.read_text().split():
                self._running[int(found[0])] = process
                return int(found[0])
            time.sleep(0.005)
        raise AssertionError(f"{words[0]} did not start")

    def _end(self, first: int) -> None:
        process = self._running.pop(first, None)
        if process is not None:
            process.kill()
            process.wait()


@contextmanager
def rig(folder: Path) -> Iterator[Rig]:
    """A rig that is closed in the end."""
    made = Rig(folder)
    try:
        yield made
    finally:
        made.close()


class RigFleet:
    """A fleet of the driver whose machines vanish with it."""

    def __init__(self, fleet: Fleet, machines: Sequence[Machine]) -> None:
        self._fleet = fleet
        self._machines = machines

    @property
    def hosts(self) -> dict[str, Host]:
        return dict(self._fleet.hosts)

    async def release(self) -> None:
        await self._fleet.release()
        for machine in self._machines:
            machine.end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.release()


class RigDriver:
    """The ssh driver, with machines made anew for every fleet."""

    name = "ssh"
    throw_away = False

    def __init__(self, rig: Rig, state: Path, shell: Shell = "bash") -> None:
        self._rig = rig
        self._state = state
        self._shell = shell

    async def preflight(self, hosts: Sequence[HostSpec] = ()) -> list[Finding]:
        driver, machines = await self._driver(hosts)
        found = await driver.preflight(hosts)
        for machine in machines:
            machine.end()
        return found

    async def provision(self, run: str, hosts: Sequence[HostSpec]) -> RigFleet:
        driver, machines = await self._driver(hosts)
        return RigFleet(await driver.provision(run, hosts), machines)

    async def reap(self) -> list[str]:
        return []

    async def close(self) -> None:
        self._rig.close()

    async def _driver(self, hosts: Sequence[HostSpec]) -> tuple[Driver, list[Machine]]:
        names = [spec.name for spec in hosts]
        machines = await asyncio.to_thread(self._rig.machines, names, shell=self._shell)
        inventory = {machine.name: machine.lab() for machine in machines}
        return SshDriver(DriverContext(self._state, hosts=inventory)), machines


def driver_for(**machines: LabHost) -> SshDriver:
    """The driver with these machines in its lab; `web_01` stands for `web-01`."""
    named = {name.replace("_", "-"): entry for name, entry in machines.items()}
    return SshDriver(DriverContext(Path("/nowhere"), hosts=named, folder=Path("/nowhere")))


@asynccontextmanager
async def host_of(entry: LabHost, **others: LabHost) -> AsyncIterator[Host]:
    """A host of a run, from its entry in the lab and those it goes through."""
    driver = driver_for(web_01=entry, **others)
    async with await driver.provision("run", [HostSpec(name="web-01")]) as fleet:
        yield fleet.hosts["web-01"]


@contextmanager
def own_sshd(folder: Path) -> Iterator[LabHost]:
    """An sshd on the loopback device that lets in whoever started it."""
    host_key, key = make_key(folder / "host"), make_key(folder / "login")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = folder / "sshd_config"
    config.write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {host_key}\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {key}.pub\nStrictModes no\n"
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen([SSHD, "-D", "-e", "-f", config], stderr=subprocess.DEVNULL)
    try:
        _wait_for("127.0.0.1", port)
        public = Path(f"{host_key}.pub").read_text()
        yield LabHost("127.0.0.1", port, getpass.getuser(), str(key), known_host=public)
    finally:
        server.terminate()
        server.wait()


def make_key(path: Path) -> Path:
    """A new ed25519 key; its public half stands beside it, with `.pub`."""
    subprocess.run(["ssh-keygen", "-qt", "ed25519", "-N", "", "-f", path], check=True)
    return path


def _free_net() -> tuple[int, int]:
    """The second and third number of a /20 that nobody here uses (RFC 2544: for benchmarks)."""
    used = subprocess.run(
        ["ip", "route", "show"], check=True, capture_output=True, text=True
    ).stdout
    blocks = [(second, third) for second in (18, 19) for third in range(0, 256, 16)]
    random.shuffle(blocks)
    for second, third in blocks:
        if f"198.{second}.{third}.0/20" not in used:
            return second, third
    raise AssertionError("no network is free")


def _run(script: str) -> None:
    subprocess.run(["sh", "-ec", script], check=True, stdin=subprocess.DEVNULL)


def _wait_for(address: str, port: int) -> None:
    for _ in range(_TRIES):
        try:
            with socket.create_connection((address, port), timeout=1) as connection:
                if connection.recv(4) == b"SSH-":
                    return
        except OSError:
            time.sleep(0.02)
    raise AssertionError(f"nothing answers at {address}:{port}")
