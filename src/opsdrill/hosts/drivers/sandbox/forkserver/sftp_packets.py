"""Packets of SFTP, version 3: draft-ietf-secsh-filexfer-02, and OpenSSH's PROTOCOL for the rest."""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass

INIT, VERSION = 1, 2
OPEN, CLOSE, READ, WRITE, LSTAT, FSTAT, SETSTAT, FSETSTAT, OPENDIR, READDIR = range(3, 13)
REMOVE, MKDIR, RMDIR, REALPATH, STAT, RENAME, READLINK, SYMLINK = range(13, 21)
STATUS, HANDLE, DATA, NAME, ATTRS = range(101, 106)
EXTENDED, EXTENDED_REPLY = 200, 201

OK, EOF, NO_SUCH_FILE, PERMISSION_DENIED, FAILURE, BAD_MESSAGE = range(6)
UNSUPPORTED = 8

MOST = 256 * 1024
"""Bytes of a packet, without its length."""
_SIZE, _OWNER, _MODE, _TIMES, _MORE = 0x1, 0x2, 0x4, 0x8, 0x80000000


class BadPacket(Exception):
    """Bytes that are no packet of the protocol."""


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a client wants a file to have; None: as it is."""

    size: int | None = None
    owner: tuple[int, int] | None = None
    mode: int | None = None
    times: tuple[int, int] | None = None


class Fields:
    """The fields of a packet, one after the other."""

    def __init__(self, packet: bytes) -> None:
        self._packet = packet
        self._at = 0

    def skip(self, size: int) -> None:
        """Pass over what is known already."""
        self._at += size

    def number(self) -> int:
        """32 bits."""
        return self._unpack(">I", 4)

    def offset(self) -> int:
        """64 bits."""
        return self._unpack(">Q", 8)

    def text(self) -> bytes:
        """A text of any bytes."""
        size = self.number()
        end = self._at + size
        if end > len(self._packet):
            raise BadPacket("a text is longer than its packet")
        text = self._packet[self._at : end]
        self._at = end
        return text

    def path(self) -> bytes:
        """A path; an empty one is the folder at hand."""
        path = self.text()
        if b"\0" in path:
            raise BadPacket("a path has a NUL character")
        return path or b"."

    def attributes(self) -> Attributes:
        flags = self.number()
        size = self.offset() if flags & _SIZE else None
        owner = (self.number(), self.number()) if flags & _OWNER else None
        mode = self.number() if flags & _MODE else None
        times = (self.number(), self.number()) if flags & _TIMES else None
        if flags & _MORE:
            for _ in range(self.number()):
                self.text(), self.text()
        return Attributes(size, owner, mode, times)

    def _unpack(self, form: str, size: int) -> int:
        if self._at + size > len(self._packet):
            raise BadPacket("a packet ends too early")
        found: int = struct.unpack_from(form, self._packet, self._at)[0]
        self._at += size
        return found


def text(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content


def attributes(what: os.stat_result) -> bytes:
    """What a file is, as of `stat`."""
    # Times have 32 bits; one that does not fit is as near as can be.
    times = (min(max(int(time), 0), 0xFFFFFFFF) for time in (what.st_atime, what.st_mtime))
    flags = _SIZE | _OWNER | _MODE | _TIMES
    return struct.pack(
        ">IQIIIII", flags, what.st_size, what.st_uid, what.st_gid, what.st_mode, *times
    )


def name(path: bytes, long: bytes = b"", what: bytes = b"\0\0\0\0") -> bytes:
    """One entry of a NAME."""
    return text(path) + text(long or path) + what


def status(error: OSError) -> tuple[int, bytes]:
    """The status that says what went wrong, and the words."""
    code = FAILURE
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        code = NO_SUCH_FILE
    elif isinstance(error, PermissionError):
        code = PERMISSION_DENIED
    return code, (error.strerror or "it did not work").encode()
