"""A pseudo-terminal of a host, out of the host's own `/dev/pts`.

System calls as of ioctl_tty(2).
"""

from __future__ import annotations

import fcntl
import os
import stat
import struct
import termios

from opsdrill.hosts.drivers.sandbox.forkserver.launch import CannotStart

_MAKER = "/dev/pts/ptmx"
_MAKER_NUMBER = os.makedev(5, 2)
_UNLOCK, _GET_PEER = 0x40045431, 0x5441  # TIOCSPTLCK, TIOCGPTPEER of asm-generic/ioctls.h
_UTF8 = 0o40000  # IUTF8 of asm-generic/termbits.h: a rubout takes a whole character
_TTY_GROUP = 5
_MOST = 0xFFFF


def open_pair(columns: int, rows: int) -> tuple[int, int]:
    """Make a terminal in the host whose files this process sees.

    Returns:
        Our side, and the program's; the latter is nobody's controlling terminal.

    Raises:
        CannotStart: the host has none to give.
    """
    try:
        ours = _open_maker()
    except OSError as error:
        raise CannotStart("error", f"the host has no terminal left ({error.strerror})") from None
    try:
        fcntl.ioctl(ours, _UNLOCK, struct.pack("i", 0))
        # By no path: whatever the host has at /dev/pts/N, this is the other end.
        theirs = fcntl.ioctl(ours, _GET_PEER, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        os.close(ours)
        raise CannotStart("error", f"no terminal can be made ({error.strerror})") from None
    size = struct.pack("HHHH", min(rows, _MOST), min(columns, _MOST), 0, 0)
    fcntl.ioctl(ours, termios.TIOCSWINSZ, size)
    settings = termios.tcgetattr(theirs)
    settings[0] |= _UTF8
    termios.tcsetattr(theirs, termios.TCSANOW, settings)
    return ours, theirs


def control(theirs: int) -> None:
    """Make it the controlling terminal of this process, which leads a session."""
    fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)
    try:
        os.fchown(theirs, -1, _TTY_GROUP)
    except OSError:
        # An ordinary user without a range of ids of his own has root's group only.
        return


def foreground(ours: int) -> int:
    """The process group in its foreground, as numbered where this process is; 0 for none."""
    return int(struct.unpack("i", fcntl.ioctl(ours, termios.TIOCGPGRP, b"\0" * 4))[0])


def _open_maker() -> int:
    flags = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(_MAKER, flags)
    what = os.fstat(fd)
    if stat.S_ISCHR(what.st_mode) and what.st_rdev == _MAKER_NUMBER:
        return fd
    # Something else of the host's stands there.
    os.close(fd)
    raise FileNotFoundError(2, "its /dev/pts is gone")
