"""What a process of a host must not have: capabilities, system calls, limits, a telling name."""

# ruff: noqa: PTH123
from __future__ import annotations

import errno
import os
import platform
import resource
import struct

from opsdrill.hosts.drivers.sandbox.forkserver import kernel

# Numbers from linux/capability.h: what container engines leave, without MKNOD.
KEPT_CAPABILITIES = (
    0,  # CHOWN
    1,  # DAC_OVERRIDE
    3,  # FOWNER
    4,  # FSETID
    5,  # KILL
    6,  # SETGID
    7,  # SETUID
    8,  # SETPCAP
    10,  # NET_BIND_SERVICE
    13,  # NET_RAW
    18,  # SYS_CHROOT
    29,  # AUDIT_WRITE
    31,  # SETFCAP
)
OPEN_FILES = (1024, 4096)
"""Soft and hard limit of open files of one process."""

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
# bpf, perf_event_open, userfaultfd, io_uring_setup, open_by_handle_at, keyctl, add_key,
# request_key, syslog, kexec_load, init_module, finit_module, delete_module
_REFUSED = {
    "x86_64": (321, 298, 323, 425, 304, 250, 248, 249, 103, 246, 175, 313, 176),
    "aarch64": (280, 241, 282, 425, 265, 219, 217, 218, 116, 104, 105, 273, 106),
}
_SOCKET = {"x86_64": 41, "aarch64": 198}
# Families that network namespaces hold back: unix, inet, inet6, netlink, packet. Others, such as
# vsock, lead past them to whatever this machine itself runs on.
_FAMILIES = (1, 2, 10, 16, 17)

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_X32_BIT = 0x40000000


def filter_program() -> bytes | None:
    """The BPF program of refused system calls; None where the numbers are not known."""
    machine = platform.machine()
    if machine not in _AUDIT_ARCH:
        return None
    refuse = _REFUSE | errno.EPERM
    lines: list[tuple[int, int, int, int]] = [
        (_LOAD, 0, 0, 4),  # seccomp_data.arch
        (_JUMP_EQUAL, 1, 0, _AUDIT_ARCH[machine]),
        (_RETURN, 0, 0, _REFUSE | errno.ENOSYS),
        (_LOAD, 0, 0, 0),  # seccomp_data.nr
    ]
    if machine == "x86_64":
        lines += [(_JUMP_AT_LEAST, 0, 1, _X32_BIT), (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)]
    for number in _REFUSED[machine]:
        lines += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, refuse)]
    lines += [
        (_JUMP_EQUAL, 1, 0, _SOCKET[machine]),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, 16),  # the first argument's low half
    ]
    for family in _FAMILIES:
        lines += [(_JUMP_EQUAL, 0, 1, family), (_RETURN, 0, 0, _ALLOW)]
    lines.append((_RETURN, 0, 0, _REFUSE | errno.EAFNOSUPPORT))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


_PROGRAM = filter_program()


def _known_capabilities() -> range:
    for number in range(64):
        try:
            kernel.prctl(kernel.PR_CAPBSET_READ, number)
        except OSError:
            return range(number)
    return range(64)


_DROPPED_CAPABILITIES = tuple(sorted(set(_known_capabilities()) - set(KEPT_CAPABILITIES)))


def drop_privileges() -> None:
    """Cut the capabilities of this process and of whatever it becomes; for good."""
    for number in _DROPPED_CAPABILITIES:
        kernel.prctl(kernel.PR_CAPBSET_DROP, number)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)


def refuse_system_calls() -> None:
    """Install the filter; `no_new_privs` must be set."""
    if _PROGRAM is not None:
        kernel.seccomp_filter(_PROGRAM)


_AHEAD = 10
_NICENESS = os.getpriority(os.PRIO_PROCESS, 0)


def go_first() -> None:
    """Get a processor before whatever a host runs: hundreds of busy processes hold up no kill."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, _NICENESS - _AHEAD)
    except PermissionError:
        # An ordinary user may not.
        return


def stand_in_line() -> None:
    """Undo `go_first`, for good where the right to it is dropped."""
    os.setpriority(os.PRIO_PROCESS, 0, _NICENESS)


def limit(processes: int) -> None:
    """Bound open files and, for users other than real root, processes; no core files."""
    hard = min(OPEN_FILES[1], resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(OPEN_FILES[0], hard), hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    most = processes if hard == resource.RLIM_INFINITY else min(processes, hard)
    resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def hide(name: str) -> None:
    """Let nobody look into this process and its forks, and give them a name that says nothing.

    Without this, `/proc/PID/exe` of a fork on its way into a host would be a handle on this
    machine's interpreter, and `pgrep -f python` on a host would find us.
    """
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    kernel.set_name(name)
    with open("/proc/self/stat", "rb") as stat:
        # arg_start and arg_end: fields 48 and 49 of proc(5), counted behind the name in brackets.
        fields = stat.read().rpartition(b")")[2].split()
    start, end = int(fields[45]), int(fields[46])
    kernel.overwrite(start, name.encode().ljust(end - start, b"\0")[: end - start])
