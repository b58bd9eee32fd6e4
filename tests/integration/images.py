"""Images of containers, built here and not fetched: kept in the user's cache.

A debootstrap of Debian, the same without bash, and a tree of busybox alone.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

DEBIAN = "localhost/opsdrill-debian:1"
DASH = "localhost/opsdrill-debian-without-bash:1"
BUSYBOX = "localhost/opsdrill-busybox:1"
PROGRAMS = {"debootstrap": "debootstrap", "busybox": "busybox-static", "tar": "tar"}
"""What building takes, and the Debian packages it comes from."""

_SUITE = "bookworm"
_PACKAGES = "procps,python3-minimal,libpython3-stdlib,systemd-sysv,dbus,openssh-sftp-server"


def cache() -> Path:
    """Where what was built once for a user stays."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "opsdrill-tests")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def archive(image: str, folder: Path) -> Path:
    """A tar archive of an image's files.

    Args:
        image: one of the three.
        folder: for what is not kept.
    """
    return _busybox(folder) if image == BUSYBOX else _debian(image)


def _debian(image: str) -> Path:
    """An archive of a small Debian with Python and systemd; built once for a user."""
    archives = {
        name: cache() / f"{_SUITE}{more}-3.tar" for name, more in ((DEBIAN, ""), (DASH, "-sh"))
    }
    with (cache() / "lock").open("w") as lock:
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
    # A temporary folder is its maker's alone, and would be the `/` of every host.
    tree.chmod(0o755)


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


def _busybox(folder: Path) -> Path:
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
