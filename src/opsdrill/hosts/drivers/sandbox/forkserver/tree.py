"""The file tree of a host: one size-bounded file system in memory, `/usr` over this machine's.

    (tmpfs)/root        what the host sees as `/`
    (tmpfs)/usr.upper   what the host changed under `/usr` (as root)
    (tmpfs)/usr.work    the overlay's own
    (tmpfs)/usr.local   `/usr/local` (as an ordinary user, whose `/usr` is read-only)

All mounts live in the host's own mount namespace, so the kernel takes them away with its last
process. As an ordinary user the files of this machine's `/usr` belong to nobody that the host
knows, so that an overlay could change none of them.
"""

# ruff: noqa: PTH101, PTH102, PTH110, PTH112, PTH114, PTH211
from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable

from opsdrill.hosts.drivers.sandbox.forkserver import kernel
from opsdrill.hosts.drivers.sandbox.forkserver.skeleton import TOP_LINKS, Entry, File, Folder

_STAGE = "/tmp"  # noqa: S108 - covered by the host's own file system, in its own namespace
BYTES_PER_INODE = 4096
"""One file, folder or link is allowed for so many bytes of a host's size."""

_NODES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9),
          "tty": (5, 0)}  # fmt: skip
_DEV_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}
_MASKED_FILES = (
    "kcore", "keys", "key-users", "kmsg", "kallsyms", "kpagecount", "kpageflags", "kpagecgroup",
    "latency_stats", "timer_list", "timer_stats", "sched_debug", "sysrq-trigger", "config.gz",
    "vmallocinfo", "slabinfo", "mtrr", "profile",
)  # fmt: skip
_MASKED_FOLDERS = (
    "acpi", "scsi", "asound", "bus", "driver", "fs", "irq", "mtd", "pressure", "dynamic_debug",
)  # fmt: skip
_TERMINALS = 64
"""Pseudo-terminals of one host; the machine has some thousands for all."""


def layered(machine: int | None = None) -> list[str]:
    """This machine's folders of programs: `usr`, and `bin` and so on where not merged into it.

    Args:
        machine: a file descriptor of this machine's root, for a process that has another one.
    """
    return ["usr", *(top for top in TOP_LINKS if _is_real_folder(top, machine))]


def _is_real_folder(top: str, machine: int | None) -> bool:
    path = f"/{top}" if machine is None else top
    try:
        return stat.S_ISDIR(os.stat(path, dir_fd=machine, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def build(entries: Iterable[Entry], size: int, *, own_programs: bool) -> int:
    """Build the tree and make it the root of this process.

    Args:
        entries: folders, files and links to make.
        size: bytes that all files may take.
        own_programs: `/usr` can be changed (needs real root); else it is read-only.

    Returns:
        A file descriptor of the whole file system, where nothing is mounted over it.
    """
    kernel.mount("", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    inodes = max(4096, size // BYTES_PER_INODE)
    options = f"size={size},nr_inodes={inodes},mode=700"
    kernel.mount("tmpfs", _STAGE, "tmpfs", kernel.MS_NOSUID, options)
    whole = os.open(_STAGE, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    os.chdir(_STAGE)
    os.mkdir("root", 0o755)
    kernel.mount("root", "root", None, kernel.MS_BIND)
    os.chdir("root")
    for entry in entries:
        _make(entry)
    for top in layered():
        _overlay(top) if own_programs else _read_only(top)
    _devices()
    kernel.mount("proc", "proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
    return whole


def seal() -> None:
    """Mask what a host must not see of the kernel, and let go of this machine's own tree."""
    kernel.bind("sys", "sys", read_only=True)
    for name in _MASKED_FILES:
        if os.path.exists(f"proc/{name}"):
            kernel.bind("dev/null", f"proc/{name}", read_only=True)
    for name in _MASKED_FOLDERS:
        if _is_folder(f"proc/{name}"):
            kernel.bind("sys", f"proc/{name}", read_only=True)
    kernel.bind("proc/sys", "proc/sys", read_only=True)
    kernel.pivot_root_here()


def _make(entry: Entry) -> None:
    if isinstance(entry, Folder):
        os.mkdir(entry.path)
        _own(entry.path, entry.gid)
        os.chmod(entry.path, entry.mode)
    elif isinstance(entry, File):
        fd = os.open(entry.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, entry.mode)
        os.write(fd, entry.content)
        os.close(fd)
        _own(entry.path, entry.gid)
    else:
        os.symlink(entry.target, entry.path)


def _own(path: str, gid: int) -> None:
    if gid == 0:
        return
    try:
        os.chown(path, 0, gid)
    except OSError as error:
        # An ordinary user without a range of ids of his own has root's group only.
        if error.errno != errno.EINVAL:
            raise


def _overlay(top: str) -> None:
    os.mkdir(top)
    upper, work = f"{_STAGE}/{top}.upper", f"{_STAGE}/{top}.work"
    os.mkdir(upper)
    os.mkdir(work)
    layers = f"lowerdir=/{top},upperdir={upper},workdir={work}"
    try:
        kernel.mount("overlay", top, "overlay", kernel.MS_NOSUID, f"{layers},volatile")
    except OSError:
        kernel.mount("overlay", top, "overlay", kernel.MS_NOSUID, layers)


def _read_only(top: str) -> None:
    os.mkdir(top)
    kernel.bind(f"/{top}", top, read_only=True)
    if _is_folder(f"{top}/local"):
        local = f"{_STAGE}/{top}.local"
        os.mkdir(local)
        for part in ("bin", "etc", "games", "include", "lib", "sbin", "share", "src"):
            os.mkdir(f"{local}/{part}")
        kernel.mount(local, f"{top}/local", None, kernel.MS_BIND)


def _devices() -> None:
    for name, (major, minor) in _NODES.items():
        try:
            os.mknod(f"dev/{name}", stat.S_IFCHR | 0o666, os.makedev(major, minor))
            os.chmod(f"dev/{name}", 0o666)  # noqa: S103
        except PermissionError:
            # This machine's own node, read-only: its mode and owner cannot be changed from inside.
            os.close(os.open(f"dev/{name}", os.O_WRONLY | os.O_CREAT, 0o666))
            kernel.bind(f"/dev/{name}", f"dev/{name}", read_only=True)
    for name, target in _DEV_LINKS.items():
        os.symlink(target, f"dev/{name}")
    os.mkdir("dev/shm")
    os.chmod("dev/shm", 0o1777)  # noqa: S103
    os.mkdir("dev/pts")
    options = f"newinstance,ptmxmode=0666,mode=620,max={_TERMINALS}"
    kernel.mount("devpts", "dev/pts", "devpts", kernel.MS_NOSUID | kernel.MS_NOEXEC, options)


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)
