"""Container engines of their own for tests, made by root from kernel namespaces.

Each has its own storage (in memory, bounded), network and processes, and is reached through a
client program like any other. The kernel removes all of it with its first process, which ends with
the tests.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.integration import images

from opsdrill.hosts.driver import DriverContext
from opsdrill.hosts.drivers.container.driver import ContainerDriver

_PODMAN = {
    "podman": "podman",
    "crun": "crun",
    "/usr/lib/podman/netavark": "netavark",
    "/usr/lib/podman/aardvark-dns": "aardvark-dns",
}
_ROOTLESS = {"newuidmap": "uidmap", "slirp4netns": "slirp4netns"}
_DOCKER = {"apt-get": "apt", "dpkg": "dpkg"}
_ALL = {
    "iptables": "iptables",
    "setpriv": "util-linux",
    "unshare": "util-linux",
    "ip": "iproute2",
    **images.PROGRAMS,
}
"""What each takes, and the Debian packages it comes from."""

_DEBS = ("docker.io", "containerd", "runc", "tini")
_STORE = "800m"
_TRIES = 3000

_FIRST = """
set -e
mount --make-rprivate /
for folder in /run /mnt /dev/shm; do mount -t tmpfs -o mode=755 tmpfs $folder; done
chmod 1777 /dev/shm
mkdir -p /mnt/drill/store /etc/containers/networks
mount -t tmpfs -o mode=711,size="$STORE" tmpfs /mnt/drill/store
ip link set lo up
"""
_OWN_GROUP = """
umount -R /sys/fs/cgroup 2>/dev/null || :
mount -t cgroup2 none /sys/fs/cgroup
mkdir "/sys/fs/cgroup/$GROUP"
echo $$ > "/sys/fs/cgroup/$GROUP/cgroup.procs"
mount --bind "/sys/fs/cgroup/$GROUP" /sys/fs/cgroup
"""
_PODMAN_CONFIG = """
cat > /mnt/drill/containers.conf <<X
[containers]
cgroups = "disabled"
default_ulimits = ["nofile=1024:1024", "nproc=8192:8192"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
X
mount -t tmpfs tmpfs /etc/containers/networks 2>/dev/null || :
"""
# A user that only these namespaces know, with numbers of others to give.
_OWN_USER = """
cd /mnt/drill
for file in passwd group subuid subgid; do cp /etc/$file $file 2>/dev/null || : > $file; done
echo 'drill:x:7411:7411::/mnt/drill/home:/bin/sh' >> passwd
echo 'drill:x:7411:' >> group
echo 'drill:1000000:65536' | tee subuid > subgid
for file in passwd group subuid subgid; do
  [ -e /etc/$file ] || : > /etc/$file
  mount --bind $file /etc/$file
done
mkdir -p home /run/user
mkdir /dev/net 2>/dev/null || :
mount -t tmpfs tmpfs /dev/net
mknod -m 666 /dev/net/tun c 10 200
chown -R drill:drill store home /run/user
chmod 700 /run/user
chown -R drill:drill /sys/fs/cgroup
"""
# As a first process it must take note of the end of orphans.
_READY = 'touch "$FOLDER/ready"\nwhile :; do sleep infinity & wait; done\n'
_DOCKERD = """
PATH=$PROGRAMS/usr/sbin:$PROGRAMS/usr/bin:$PATH
dockerd --data-root /mnt/drill/store --exec-root /mnt/drill/docker --cgroup-parent "/$GROUP" \
  --host unix:///mnt/drill/sock --pidfile /mnt/drill/pid >"$FOLDER/log" 2>&1 </dev/null &
until docker --host unix:///mnt/drill/sock version >/dev/null 2>&1; do sleep 0.1; done
"""


def _missing(programs: Mapping[str, str]) -> str | None:
    if os.geteuid():
        return "an engine with its own storage and network takes root"
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    lacking = {package for file, package in programs.items() if not shutil.which(file, path=path)}
    return f"it takes the Debian packages {', '.join(sorted(lacking))}" if lacking else None


class Engine:
    """An engine that runs.

    Args:
        folder: for its client program.
        script: what its first process does before it is ready.
        client: words that start the client there.
        variables: for the script.

    Attributes:
        program: path of the client program.
    """

    def __init__(
        self,
        folder: Path,
        script: str,
        client: str,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = folder
        self._group = f"opsdrill-{os.getpid()}-{time.time_ns()}"
        self._process = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--net"),
                *("--ipc", "--fork", "--kill-child", "--mount-proc"),
                *("/bin/sh", "-c", _FIRST + script + _READY),
            ],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env={
                "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                "FOLDER": str(folder),
                "GROUP": self._group,
                "STORE": _STORE,
                **(variables or {}),
            },
        )
        first = self._first_process()
        self.program = folder / "client"
        self.program.write_text(
            f'#!/bin/sh\nexec nsenter -t {first} -m -n -p -i -w/ {client} "$@"\n'
        )
        self.program.chmod(0o755)

    def ask(self, *words: str) -> str:
        """What the client prints."""
        return self._ask(words, subprocess.DEVNULL)

    def load(self, *names: str) -> None:
        """Import images that were built here."""
        for name in names:
            with images.archive(name, self._folder).open("rb") as archive:
                self._ask(("import", "-", name), archive.fileno())

    def close(self) -> None:
        """End everything."""
        self._process.kill()
        self._process.wait()
        for group in [
            Path("/sys/fs/cgroup") / self._group,
            *Path("/sys/fs/cgroup").glob(f"*/{self._group}"),
        ]:
            _remove_group(group)

    def _ask(self, words: Sequence[str], stdin: int) -> str:
        return subprocess.run(
            [self.program, *words], check=True, stdin=stdin, stdout=subprocess.PIPE, text=True
        ).stdout

    def _first_process(self) -> int:
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        for _ in range(_TRIES):
            if (self._folder / "ready").exists():
                return int(children.read_text().split()[0])
            if self._process.poll() is not None:
                break
            time.sleep(0.01)
        self._process.kill()
        raise AssertionError("the engine's namespaces did not start")


def _remove_group(group: Path) -> None:
    for _ in range(_TRIES):
        subprocess.run(
            ["find", group, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"],
            stderr=subprocess.DEVNULL,
            check=False,
        )
        if not group.exists():
            return
        time.sleep(0.01)


_PODMAN_CLIENT = (
    "podman --root /mnt/drill/store/{name} --runroot /run/{name} --cgroup-manager=cgroupfs"
)


def podman(folder: Path) -> Engine:
    """A podman of root's."""
    client = (
        f"env CONTAINERS_CONF=/mnt/drill/containers.conf {_PODMAN_CLIENT.format(name='podman')}"
    )
    return Engine(folder, _OWN_GROUP + _PODMAN_CONFIG, client)


def rootless_podman(folder: Path) -> Engine:
    """A podman of an ordinary user."""
    client = (
        "setpriv --reuid=7411 --regid=7411 --clear-groups --reset-env"
        " env HOME=/mnt/drill/home XDG_RUNTIME_DIR=/run/user"
        f" CONTAINERS_CONF=/mnt/drill/containers.conf {_PODMAN_CLIENT.format(name='user/podman')}"
    ).replace("store/user/podman", "store/podman")
    return Engine(folder, _OWN_GROUP + _PODMAN_CONFIG + _OWN_USER, client)


def docker(folder: Path) -> Engine:
    """A docker; its programs are taken from Debian's packages, which are not installed."""
    programs = _docker_programs()
    client = f"{programs}/usr/bin/docker --host unix:///mnt/drill/sock"
    return Engine(folder, _DOCKERD, client, {"PROGRAMS": str(programs)})


def _docker_programs() -> Path:
    kept = images.cache() / "docker-1"
    if not kept.exists():
        fresh = images.cache() / f"docker-{os.getpid()}"
        fresh.mkdir()
        words = ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", *_DEBS]
        subprocess.run(words, cwd=fresh, check=True, stdout=subprocess.DEVNULL)
        for package in fresh.glob("*.deb"):
            subprocess.run(["dpkg", "-x", package, fresh], check=True)
            package.unlink()
        try:
            fresh.rename(kept)
        except OSError:
            shutil.rmtree(fresh)
    return kept


ENGINES: dict[str, Callable[[Path], Engine]] = {
    "podman": podman,
    "podman of an ordinary user": rootless_podman,
    "docker": docker,
}
_TAKES = {
    "podman": _PODMAN,
    "podman of an ordinary user": {**_PODMAN, **_ROOTLESS},
    "docker": _DOCKER,
}


def why_not(name: str) -> str | None:
    """Why there can be no such engine here."""
    return _missing({**_TAKES[name], **_ALL})


@contextmanager
def engine(name: str, folder: Path, *names: str) -> Iterator[Engine]:
    """An engine with some images, closed in the end."""
    made = ENGINES[name](folder)
    try:
        made.load(*names)
        yield made
    finally:
        made.close()


MakeDriver = Callable[..., ContainerDriver]
"""Makes a driver for an image, with more options."""


class EngineDriver:
    """The container driver with an engine of its own.

    Args:
        name: of the engine.
        folder: for it.
        image: of its hosts, built here.
    """

    name = "container"
    throw_away = True

    def __init__(self, name: str, folder: Path, image: str) -> None:
        self._engine = ENGINES[name](folder)
        self._engine.load(image)
        options = {"engine": str(self._engine.program)}
        self._driver = ContainerDriver(DriverContext(folder, options, image=image))
        self.preflight = self._driver.preflight
        self.provision = self._driver.provision
        self.reap = self._driver.reap

    async def close(self) -> None:
        await self._driver.close()
        self._engine.close()
