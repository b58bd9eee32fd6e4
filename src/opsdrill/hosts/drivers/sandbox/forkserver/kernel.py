"""System calls that Python does not offer, through the C library.

Numbers and structures are those of the Linux UAPI headers (sched.h, mount.h, capability.h,
prctl.h, seccomp.h) and the system call tables of x86_64 and aarch64.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterable

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
CLONE_PIDFD = 0x00001000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MNT_DETACH = 0x2

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_NAME = 15
PR_SET_SECCOMP = 22
PR_CAPBSET_READ = 23
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2

_SYS_CLONE3 = 435
_SYS_CLOSE_RANGE = 436
_SYS_MOUNT_SETATTR = 442
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41, "ppc64le": 203, "s390x": 217}
_MOUNT_ATTR_RDONLY = 0x1
_MOUNT_ATTR_NOSUID = 0x2
_MOUNT_ATTR_NODEV = 0x4
_AT_EMPTY_PATH = 0x1000
_AT_RECURSIVE = 0x8000
_AT_FDCWD = -100
_SIGCHLD = 17
_CAPABILITY_VERSION_3 = 0x20080522

# PyDLL keeps the interpreter's lock: nothing else of this process may run between the halves
# of a fork.
_libc = ctypes.PyDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def _syscall(number: int, *arguments: object) -> int:
    return int(_libc.syscall(ctypes.c_long(number), *arguments))


def clone(flags: int) -> tuple[int, int]:
    """Fork into new namespaces (`clone3`).

    Returns:
        The child's process id and a pidfd for it; (0, -1) in the child.
    """
    pidfd = ctypes.c_int(-1)
    words = (flags | CLONE_PIDFD, ctypes.addressof(pidfd), 0, 0, _SIGCHLD, 0, 0, 0, 0, 0, 0)
    arguments = ctypes.create_string_buffer(struct.pack("=11Q", *words))
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = _syscall(_SYS_CLONE3, arguments, ctypes.c_size_t(88))
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
        return 0, -1
    ctypes.pythonapi.PyOS_AfterFork_Parent()
    _checked(pid, "clone3")
    os.set_inheritable(pidfd.value, False)
    return pid, pidfd.value


def unshare(flags: int) -> None:
    _checked(_libc.unshare(flags), "unshare")


def setns(fd: int, flags: int) -> None:
    _checked(_libc.setns(fd, flags), "setns")


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    _checked(
        _libc.mount(
            os.fsencode(source),
            os.fsencode(target),
            kind.encode() if kind else None,
            ctypes.c_ulong(flags),
            options.encode() or None,
        ),
        f"mount {kind or 'bind'} on {target}",
    )


def bind(source: str, target: str, *, read_only: bool = False) -> None:
    """Show `source` at `target`; a read-only one also without devices and set-user-id."""
    mount(source, target, None, MS_BIND)
    if read_only:
        _forbid(target, _MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID)


def show_tree(source: str, target: str) -> None:
    """Show `source` and all that is mounted below it at `target`, only to be read."""
    mount(source, target, None, MS_BIND | MS_REC)
    _forbid(target, _MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID, _AT_RECURSIVE)


def forbid_writing(target: str) -> None:
    """Make the mount at `target` read-only."""
    _forbid(target, _MOUNT_ATTR_RDONLY)


def _forbid(target: str, attributes: int, how: int = 0) -> None:
    # mount_setattr only adds; MS_REMOUNT would have to repeat what an outer namespace locked.
    setting = ctypes.create_string_buffer(struct.pack("=4Q", attributes, 0, 0, 0))
    result = _syscall(
        _SYS_MOUNT_SETATTR,
        ctypes.c_int(_AT_FDCWD),
        ctypes.c_char_p(os.fsencode(target)),
        ctypes.c_uint(how),
        setting,
        ctypes.c_size_t(32),
    )
    _checked(result, f"mount_setattr {target}")


def umount(target: str) -> None:
    _checked(_libc.umount2(os.fsencode(target), MNT_DETACH), f"umount {target}")


def pivot_root_here() -> None:
    """Make the working folder, a mount, the root and let go of the old one."""
    number = _SYS_PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(f"pivot_root is not known for {platform.machine()}")
    _checked(_syscall(number, ctypes.c_char_p(b"."), ctypes.c_char_p(b".")), "pivot_root")
    umount(".")
    os.chdir("/")


def sethostname(name: str) -> None:
    raw = name.encode()
    _checked(_libc.sethostname(raw, ctypes.c_size_t(len(raw))), "sethostname")


def prctl(option: int, first: int = 0, second: int = 0) -> int:
    zero = ctypes.c_ulong(0)
    result = _libc.prctl(option, ctypes.c_ulong(first), ctypes.c_ulong(second), zero, zero)
    return _checked(result, f"prctl {option}")


def set_name(name: str) -> None:
    buffer = ctypes.create_string_buffer(name.encode()[:15])
    prctl(PR_SET_NAME, ctypes.addressof(buffer))


def keep_capabilities(kept: Iterable[int]) -> None:
    """Cut the effective, permitted and inheritable sets to `kept`; nothing is inheritable."""
    mask = sum(1 << number for number in kept)
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION_3, 0))
    low, high = mask & 0xFFFFFFFF, mask >> 32
    data = ctypes.create_string_buffer(struct.pack("=6I", low, low, 0, high, high, 0))
    _checked(_libc.capset(header, data), "capset")


def seccomp_filter(program: bytes) -> None:
    """Install a filter: a BPF program of 8-byte instructions."""
    code = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    buffer = ctypes.create_string_buffer(header, len(header))
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.addressof(buffer))


def overwrite(address: int, content: bytes) -> None:
    """Write into this process's own memory."""
    ctypes.memmove(address, content, len(content))


def close_all_but(kept: Iterable[int]) -> None:
    """Close every file descriptor that is not in `kept`."""
    start = 0
    for fd in [*sorted(set(kept)), 0x7FFFFFFF]:
        if fd > start:
            last = fd - 1 if fd != 0x7FFFFFFF else 0xFFFFFFFF
            first = ctypes.c_uint(start)
            result = _syscall(_SYS_CLOSE_RANGE, first, ctypes.c_uint(last), ctypes.c_uint(0))
            _checked(result, "close_range")
        start = fd + 1
