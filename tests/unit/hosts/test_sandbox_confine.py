"""What a host's processes are refused, and the tree they find."""

from __future__ import annotations

import errno
import platform
import struct

import pytest

from opsdrill.hosts.drivers.sandbox.forkserver import skeleton
from opsdrill.hosts.drivers.sandbox.forkserver.confine import filter_program
from opsdrill.hosts.drivers.sandbox.forkserver.identity import Identity
from opsdrill.hosts.drivers.sandbox.forkserver.skeleton import File, Folder, Link

X86_64 = 0xC000003E
I386 = 0x40000003
ALLOW = 0x7FFF0000


def verdict(number: int, first_argument: int = 0, arch: int = X86_64) -> int:
    """What the filter says to a system call: 0 for allowed, else the errno.

    Runs the program as the kernel would (linux/filter.h, linux/seccomp.h).
    """
    program = filter_program()
    assert program is not None
    lines = list(struct.iter_unpack("=HBBI", program))
    data = struct.pack("=iIQQ", number, arch, 0, first_argument)
    at, word = 0, 0
    while True:
        code, yes, no, value = lines[at]
        at += 1
        if code == 0x20:
            word = struct.unpack_from("=I", data, value)[0]
        elif code == 0x15:
            at += yes if word == value else no
        elif code == 0x35:
            at += yes if word >= value else no
        else:
            assert code == 0x06
            return 0 if value == ALLOW else value & 0xFFFF


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are those of x86_64")
class TestFilter:
    @pytest.mark.parametrize("number", [0, 1, 2, 57, 59, 61, 62, 101, 165, 231, 257, 435, 439])
    def test_usual_calls_pass(self, number: int) -> None:
        """read, write, open, fork, execve, wait4, kill, ptrace, ...: allowed."""
        assert verdict(number) == 0

    @pytest.mark.parametrize(
        "number", [103, 175, 176, 246, 248, 249, 250, 298, 304, 313, 321, 323, 425]
    )
    def test_dangerous_calls_do_not(self, number: int) -> None:
        """syslog, modules, kexec, keys, perf, handles, bpf, userfaultfd, io_uring: refused."""
        assert verdict(number) == errno.EPERM

    @pytest.mark.parametrize("family", [1, 2, 10, 16, 17])
    def test_families_of_a_network_namespace(self, family: int) -> None:
        """unix, inet, inet6, netlink, packet: allowed."""
        assert verdict(41, family) == 0

    @pytest.mark.parametrize("family", [0, 3, 29, 31, 38, 40, 42, 44, 46])
    def test_other_families(self, family: int) -> None:
        """vsock and all others: as if the kernel had none."""
        assert verdict(41, family) == errno.EAFNOSUPPORT
        assert verdict(41, family | 1 << 32) == errno.EAFNOSUPPORT

    def test_other_ways_into_the_kernel(self) -> None:
        """32-bit and x32 calls, whose numbers mean something else, are not there."""
        assert verdict(0, arch=I386) == errno.ENOSYS
        assert verdict(0x40000000 | 41) == errno.ENOSYS


ENTRIES = skeleton.common()


def test_parents_come_first() -> None:
    """Every entry's folder is made before it, and nothing is made twice."""
    made = {""}
    for entry in ENTRIES:
        assert entry.path.rpartition("/")[0] in made, entry.path
        assert entry.path not in made
        made.add(entry.path)


def test_nothing_of_the_machine_but_the_linker() -> None:
    """The tree's content is made up; links lead into `/usr` or stay on the host."""
    for entry in ENTRIES:
        if isinstance(entry, Link) and entry.target.startswith("/"):
            assert entry.target.startswith(("/usr/", "/run"))
        assert not isinstance(entry, Folder) or not entry.path.startswith("usr")


def _text(path: str) -> str:
    return next(
        entry.content.decode()
        for entry in ENTRIES
        if isinstance(entry, File) and entry.path == path
    )


def test_accounts_agree() -> None:
    """Every user has a shadow line without a password, and a group that exists."""
    users = [line.split(":") for line in _text("etc/passwd").splitlines()]
    shadow = [line.split(":") for line in _text("etc/shadow").splitlines()]
    groups = {line.split(":")[2] for line in _text("etc/group").splitlines()}
    assert [user[0] for user in users] == [line[0] for line in shadow]
    assert {line[1] for line in shadow} == {"*"}
    assert all(len(user) == 7 and user[3] in groups for user in users)
    assert users[0][:4] == ["root", "x", "0", "0"]


def test_hosts_file() -> None:
    """A host alone is its own loopback name; hosts of a run have each other's addresses."""
    alone = skeleton.named("web-01", {})[1]
    assert isinstance(alone, File)
    assert b"127.0.1.1 web-01\n" in alone.content
    several = skeleton.named("web-01", {"web-01": "10.99.0.10", "db-01": "10.99.0.11"})[1]
    assert isinstance(several, File)
    assert b"10.99.0.11 db-01\n" in several.content
    assert b"127.0.1.1" not in several.content


def test_user_map_keeps_the_pieces() -> None:
    """A nested map may not span two pieces of the outer one."""
    assert Identity(True, 4294967295).map == b"0 0 4294967295\n"
    assert Identity(False, 1).map == b"0 0 1\n"
    assert Identity(False, 65536).map == b"0 0 1\n1 1 65535\n"
