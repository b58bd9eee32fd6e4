"""A podman of its own for tests, made by root from kernel namespaces, with images built here.

It has its own storage (in memory, bounded), network and processes, and is reached through a client
program like any other. The kernel removes all of it with its first process, which ends with the
tests. No registry is asked: the images are a debootstrap of Debian, kept in the user's cache, the
same without bash, and a tree of busybox alone.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from opsdrill.hosts.driver import DriverContext
from opsdrill.hosts.drivers.container.driver import ContainerDriver

PROGRAMS = {
    "podman": "podman",
    "crun": "crun",
    "/usr/lib/podman/netavark": "netavark",
    "/usr/lib/podman/aardvark-dns": "aardvark-dns",
    "iptables": "iptables",
    "debootstrap": "debootstrap",
    "busybox": "busybox-static",
    "tar": "tar",
    "setpriv": "util-linux",
    "unshare": "util-linux",
}
"""What it takes, and the Debian packages it comes from."""

DEBIAN = "localhost/opsdrill-debian:1"
DASH = "localhost/opsdrill-debian-without-bash:1"
BUSYBOX = "localhost/opsdrill-busybox:1"
_SUITE = "bookworm"
_PACKAGES = "procps,python3-minimal,libpython3-stdlib,systemd-sysv,dbus"
_STORE = "800m"
_TRIES = 500

_FIRST = r"""
set -e
mount --make-rprivate /
umount -R /sys/fs/cgroup 2>/dev/null || :
mount -t cgroup2 none /sys/fs/cgroup
mkdir "/sys/fs/cgroup/$2"
echo $$ > "/sys/fs/cgroup/$2/cgroup.procs"
mount --bind "/sys/fs/cgroup/$2" /sys/fs/cgroup
for folder in /run /dev/shm; do mount -t tmpfs -o mode=755 tmpfs $folder; done
chmod 1777 /dev/shm
mount -t tmpfs -o mode=700,size=$3 tmpfs "$1/store"
ip link set lo up 2>/dev/null || :
touch "$1/ready"
exec sleep infinity
"""

_CONFIG = """
[containers]
cgroups = "disabled"
default_ulimits = ["nofile=1024:1024", "nproc=8192:8192"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
[network]
network_config_dir = "{folder}/networks"
"""


def missing_packages() -> list[str]:
    """The Debian packages that it takes and that are not there."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    return sorted({name for file, name in PROGRAMS.items() if not shutil.which(file, path=path)})


def why_not() -> str | None:
    """Why there can be none here."""
    if lacking := missing_packages():
        return f"containers take the Debian packages {', '.join(lacking)}"
    return "a podman with its own storage and network takes root" if os.geteuid() else None


class Podman:
    """A podman that runs.

    Args:
        folder: for its storage and client program.

    Attributes:
        program: path of the client program.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._group = f"opsdrill-{folder.name}-{os.getpid()}-{time.time_ns()}"
        for name in ("store", "networks"):
            (folder / name).mkdir()
        self._process = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--net"),
                *("--ipc", "--fork", "--kill-child", "--mount-proc"),
                *("/bin/sh", "-c", _FIRST, "sh", str(folder), self._group, _STORE),
            ],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        first = self._first_process()
        (folder / "containers.conf").write_text(_CONFIG.format(folder=folder))
        self.program = folder / "podman"
        self.program.write_text(
            "#!/bin/sh\n"
            f"export CONTAINERS_CONF={folder}/containers.conf\n"
            f"exec nsenter -t {first} -m -n -p -i -w/ podman --root {folder}/store"
            ' --runroot /run/podman "$@"\n'
        )
        self.program.chmod(0o755)

    def ask(self, *words: str) -> str:
        """What the client prints."""
        return subprocess.run(
            [self.program, *words],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout

    def load(self, *images: str) -> None:
        """Import images that were built here."""
        for image in images:
            archive = busybox(self._folder) if image == BUSYBOX else debian(image)
            self.ask("import", "--quiet", str(archive), image)

    def close(self) -> None:
        """End everything."""
        self._process.kill()
        self._process.wait()
        for place in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
            groups = Path(place, self._group)
            for _ in range(_TRIES):
                subprocess.run(
                    ["find", groups, "-depth", "-type", "d", "-exec", "rmdir", "{}", ";"],
                    stderr=subprocess.DEVNULL,
                    check=False,
                )
                if not groups.exists():
                    break
                time.sleep(0.01)

    def _first_process(self) -> int:
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        for _ in range(_TRIES):
            if (self._folder / "ready").exists():
                return int(children.read_text().split()[0])
            time.sleep(0.01)
        raise AssertionError("podman's namespaces did not start")


@contextmanager
def podman(folder: Path, *images: str) -> Iterator[Podman]:
    """A podman with some images, closed in the end."""
    made = Podman(folder)
    try:
        made.load(*images)
        yield made
    finally:
        made.close()


def debian(image: str) -> Path:
    """An archive of a small Debian with Python and systemd; built once for a user."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "opsdrill-tests")
    cache.mkdir(parents=True, exist_ok=True)
    archives = {
        name: cache / f"{_SUITE}{more}-1.tar" for name, more in ((DEBIAN, ""), (DASH, "-sh"))
    }
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not all(archive.exists() for archive in archives.values()):
            with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
                tree = Path(folder)
                _bootstrap(tree)
                _archive(tree, archives[DEBIAN])
                _archive(tree, archives[DASH], "usr/bin/bash", "bin/bash")
    return archives[image]


def _bootstrap(tree: Path) -> None:
    subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", _SUITE, tree],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    (tree / "var/www").mkdir()


def _archive(tree: Path, archive: Path, *without: str) -> None:
    left_out = [
        *("dev/*", "var/cache/apt/*", "var/lib/apt/lists/*", "usr/share/doc/*"),
        *("usr/share/locale/*", *without),
    ]
    unfinished = archive.with_suffix(".new")
    excluded = [f"--exclude=./{name}" for name in left_out]
    subprocess.run(
        ["tar", "-C", tree, "-cf", unfinished, "--one-file-system", *excluded, "."], check=True
    )
    unfinished.rename(archive)


_ETC = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\nwww-data:x:33:33::/var/www:/bin/sh\n",
    "group": "root:x:0:\nadm:x:4:\nwww-data:x:33:\n",
    "motd": "",
    "os-release": 'PRETTY_NAME="busybox alone"\n',
}


def busybox(folder: Path) -> Path:
    """An archive of a tree in which there is busybox and nothing else."""
    tree = folder / "busybox"
    for name in ("bin", "etc", "root", "srv", "var/www", "tmp", "usr", "lib"):
        (tree / name).mkdir(parents=True)
    (tree / "tmp").chmod(0o1777)
    shutil.copy(shutil.which("busybox") or "/bin/busybox", tree / "bin/busybox")
    listed = subprocess.run(
        [tree / "bin/busybox", "--list"], check=True, stdout=subprocess.PIPE, text=True
    )
    for name in listed.stdout.split():
        if name != "busybox":
            (tree / "bin" / name).symlink_to("busybox")
    for name, content in _ETC.items():
        (tree / "etc" / name).write_text(content)
    archive = folder / "busybox.tar"
    subprocess.run(["tar", "-C", tree, "-cf", archive, "."], check=True)
    return archive


MakeDriver = Callable[..., ContainerDriver]
"""Makes a driver for an image, with more options."""


class PodmanDriver:
    """The container driver with a podman of its own.

    Args:
        folder: for the podman.
        image: of its hosts, built here.
        options: of the driver.
    """

    name = "container"
    throw_away = True

    def __init__(self, folder: Path, image: str, options: Mapping[str, str] | None = None) -> None:
        self.podman = Podman(folder)
        self.podman.load(image)
        given = {"engine": str(self.podman.program), **(options or {})}
        self._driver = ContainerDriver(DriverContext(folder, given, image=image))
        self.preflight = self._driver.preflight
        self.provision = self._driver.provision
        self.reap = self._driver.reap

    async def close(self) -> None:
        await self._driver.close()
        self.podman.close()
