"""An SFTP server (version 3) inside a host, in the place of a program of one of its users.

Whatever it opens, follows or writes is the host's, and it may do what that user may. Nothing is
imported once it is inside: modules there are the host's. Its client gets one answer for each
request, in their order, and holds it up by not reading.
"""

# ruff: noqa: PTH101, PTH102, PTH104, PTH105, PTH106, PTH108, PTH115, PTH116
# ruff: noqa: PTH211
from __future__ import annotations

import os
import posixpath
import stat
import struct
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from itertools import islice

from opsdrill.hosts.drivers.sandbox.forkserver import accounts, confine
from opsdrill.hosts.drivers.sandbox.forkserver import sftp_packets as packets
from opsdrill.hosts.drivers.sandbox.forkserver.sftp_packets import BadPacket, Fields

_FLAG_READ, _FLAG_WRITE, _FLAG_APPEND, _FLAG_CREATE, _FLAG_CUT, _FLAG_NEW = (
    1 << bit for bit in range(6)
)
_CHUNK = packets.MOST - 1024
"""Bytes of one read at most, and of one write."""
_ENTRIES = 100
"""Entries of a folder that one answer has."""
_HALF_A_YEAR = 182 * 86400
_LAST_TIME = 0xFFFFFFFF
_EXTENSIONS = {
    b"posix-rename@openssh.com": b"1",
    b"statvfs@openssh.com": b"2",
    b"fstatvfs@openssh.com": b"2",
    b"hardlink@openssh.com": b"1",
    b"fsync@openssh.com": b"1",
    b"lsetstat@openssh.com": b"1",
    b"limits@openssh.com": b"1",
    b"expand-path@openssh.com": b"1",
}
Answer = tuple[int, bytes]
"""Kind of a packet and what comes after its id."""


def serve(account: accounts.Account, tell: int) -> None:
    """Serve on standard input and output until the client is gone. Does not return.

    Args:
        account: who this process is.
        tell: closed, to say that it is at work.
    """
    confine.hide("sftp-server")
    os.close(tell)
    try:
        _Server(account).work()
    except (BadPacket, OSError):
        # What is no SFTP cannot be answered.
        os._exit(1)
    os._exit(0)


class _Folder:
    """A folder that is being listed; links in it are not followed."""

    def __init__(self, path: bytes) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.entries = self._each()

    def close(self) -> None:
        self.entries.close()
        os.close(self._fd)

    def _each(self) -> Generator[tuple[bytes, os.stat_result], None, None]:
        for name in (".", ".."):
            yield name.encode(), os.stat(name, dir_fd=self._fd)
        with os.scandir(self._fd) as found:
            for entry in found:
                with suppress(FileNotFoundError):  # removed meanwhile
                    yield os.fsencode(entry.name), entry.stat(follow_symlinks=False)


class _Server:
    def __init__(self, account: accounts.Account) -> None:
        self._home = account.home
        self._buffer = bytearray()
        self._handles: dict[bytes, int | _Folder] = {}
        self._last_handle = 0
        self._names: tuple[dict[int, str], dict[int, str]] | None = None
        self._does: dict[int, Callable[[Fields], Answer | None]] = {
            packets.OPEN: self._open,
            packets.CLOSE: self._close,
            packets.READ: self._read,
            packets.WRITE: self._write,
            packets.LSTAT: lambda fields: _attributes(os.lstat(fields.path())),
            packets.FSTAT: lambda fields: _attributes(os.fstat(self._file(fields))),
            packets.SETSTAT: lambda fields: _set(fields.path(), fields.attributes()),
            packets.FSETSTAT: lambda fields: _set(self._file(fields), fields.attributes()),
            packets.OPENDIR: self._open_folder,
            packets.READDIR: self._read_folder,
            packets.REMOVE: lambda fields: os.unlink(fields.path()),
            packets.MKDIR: _make_folder,
            packets.RMDIR: lambda fields: os.rmdir(fields.path()),
            packets.REALPATH: lambda fields: _path(os.path.realpath(fields.path())),
            packets.STAT: lambda fields: _attributes(os.stat(fields.path())),
            packets.RENAME: _rename,
            packets.READLINK: lambda fields: _path(os.readlink(fields.path())),
            # OpenSSH has the two the other way round than the draft, and so have all others.
            packets.SYMLINK: lambda fields: os.symlink(fields.path(), fields.path()),
            packets.EXTENDED: self._extended,
        }

    def work(self) -> None:
        """Answer until the client is gone."""
        begun = False
        while (packet := self._packet()) is not None:
            if packet[0] == packets.INIT:
                begun = True
                known = b"".join(map(packets.text, _flat(_EXTENSIONS)))
                _send(packets.VERSION, struct.pack(">I", 3) + known)
                continue
            if not begun:
                raise BadPacket("it does not begin with INIT")
            fields = Fields(packet)
            fields.skip(1)
            number = struct.pack(">I", fields.number())
            kind, body = self._answer(packet[0], fields)
            _send(kind, number + body)

    def _answer(self, kind: int, fields: Fields) -> Answer:
        try:
            if kind not in self._does:
                return _status(packets.UNSUPPORTED, b"not supported")
            return self._does[kind](fields) or _status(packets.OK, b"")
        except BadPacket as error:
            return _status(packets.BAD_MESSAGE, str(error).encode())
        except (OverflowError, ValueError, RecursionError):
            return _status(packets.FAILURE, b"a number is too large, or a path too deep")
        except OSError as error:
            return _status(*packets.status(error))

    def _packet(self) -> bytes | None:
        """The next packet; None when the client is gone."""
        size = -1
        while size < 0 or len(self._buffer) < 4 + size:
            if size < 0 and len(self._buffer) >= 4:
                size = int.from_bytes(self._buffer[:4], "big")
                if not 5 <= size <= packets.MOST:
                    raise BadPacket("a packet of impossible size")
                continue
            chunk = os.read(0, packets.MOST)
            if not chunk:
                return None
            self._buffer += chunk
        packet = bytes(memoryview(self._buffer)[4 : 4 + size])
        del self._buffer[: 4 + size]
        return packet

    def _open(self, fields: Fields) -> Answer:
        path, flags, wanted = fields.path(), fields.number(), fields.attributes()
        mode = 0o666 if wanted.mode is None else wanted.mode & 0o7777
        return self._handle(os.open(path, _open_flags(flags), mode))

    def _open_folder(self, fields: Fields) -> Answer:
        return self._handle(_Folder(fields.path()))

    def _handle(self, what: int | _Folder) -> Answer:
        self._last_handle += 1
        handle = b"%d" % self._last_handle
        self._handles[handle] = what
        return packets.HANDLE, packets.text(handle)

    def _file(self, fields: Fields) -> int:
        found = self._handles.get(fields.text())
        if not isinstance(found, int):
            raise OSError(9, "no such handle")
        return found

    def _close(self, fields: Fields) -> None:
        handle = fields.text()
        if handle not in self._handles:
            raise OSError(9, "no such handle")
        what = self._handles.pop(handle)
        if isinstance(what, int):
            os.close(what)
        else:
            what.close()

    def _read(self, fields: Fields) -> Answer:
        file, offset, size = self._file(fields), fields.offset(), fields.number()
        data = os.pread(file, min(size, _CHUNK), offset)
        if not data and size:
            return _status(packets.EOF, b"end of file")
        return packets.DATA, packets.text(data)

    def _write(self, fields: Fields) -> None:
        file, offset, data = self._file(fields), fields.offset(), memoryview(fields.text())
        while data:
            written = os.pwrite(file, data, offset)
            data, offset = data[written:], offset + written

    def _read_folder(self, fields: Fields) -> Answer:
        found = self._handles.get(fields.text())
        if found is None or isinstance(found, int):
            raise OSError(9, "no such handle")
        entries = [self._entry(*one) for one in islice(found.entries, _ENTRIES)]
        if not entries:
            return _status(packets.EOF, b"end of folder")
        return packets.NAME, struct.pack(">I", len(entries)) + b"".join(entries)

    def _entry(self, name: bytes, what: os.stat_result) -> bytes:
        if self._names is None:
            self._names = accounts.names("/etc/passwd"), accounts.names("/etc/group")
        users, groups = self._names
        owner = users.get(what.st_uid, str(what.st_uid))
        group = groups.get(what.st_gid, str(what.st_gid))
        changed = min(max(what.st_mtime, 0), _LAST_TIME)
        old = abs(time.time() - changed) > _HALF_A_YEAR
        when = time.strftime("%b %e  %Y" if old else "%b %e %H:%M", time.gmtime(changed))
        line = f"{stat.filemode(what.st_mode)} {what.st_nlink:4} {owner:8} {group:8}"
        long = f"{line} {what.st_size:8} {when} ".encode(errors="replace") + name
        return packets.name(name, long, packets.attributes(what))

    def _extended(self, fields: Fields) -> Answer | None:
        asked = fields.text()
        if asked == b"posix-rename@openssh.com":
            os.replace(fields.path(), fields.path())
        elif asked == b"hardlink@openssh.com":
            os.link(fields.path(), fields.path(), follow_symlinks=False)
        elif asked == b"lsetstat@openssh.com":
            _set(fields.path(), fields.attributes(), follow=False)
        elif asked == b"fsync@openssh.com":
            os.fsync(self._file(fields))
        else:
            return self._told(asked, fields)
        return None

    def _told(self, asked: bytes, fields: Fields) -> Answer:
        """An extension that only asks."""
        if asked == b"statvfs@openssh.com":
            return _room(os.statvfs(fields.path()))
        if asked == b"fstatvfs@openssh.com":
            return _room(os.statvfs(self._file(fields)))
        if asked == b"limits@openssh.com":
            return packets.EXTENDED_REPLY, struct.pack(">4Q", packets.MOST, _CHUNK, _CHUNK, 0)
        if asked == b"expand-path@openssh.com":
            return _path(os.path.realpath(self._expanded(fields.path())))
        return _status(packets.UNSUPPORTED, b"not supported")

    def _expanded(self, path: bytes) -> bytes:
        if not path.startswith(b"~"):
            return path
        user, _, rest = path[1:].partition(b"/")
        home = self._home
        if user:
            try:
                home = accounts.user(user.decode(errors="replace")).home
            except accounts.NoAccount as error:
                raise OSError(2, str(error)) from None
        return posixpath.join(os.fsencode(home), rest)


def _open_flags(flags: int) -> int:
    reads, writes = flags & _FLAG_READ, flags & _FLAG_WRITE
    found = os.O_RDWR if reads and writes else os.O_WRONLY if writes else os.O_RDONLY
    for flag, own in (
        (_FLAG_APPEND, os.O_APPEND),
        (_FLAG_CREATE, os.O_CREAT),
        (_FLAG_CUT, os.O_TRUNC),
        (_FLAG_NEW, os.O_EXCL),
    ):
        found |= own if flags & flag else 0
    return found | os.O_NOCTTY | os.O_CLOEXEC


def _make_folder(fields: Fields) -> None:
    path, wanted = fields.path(), fields.attributes()
    os.mkdir(path, 0o777 if wanted.mode is None else wanted.mode & 0o7777)


def _rename(fields: Fields) -> Answer | None:
    """Version 3 replaces nothing."""
    old, new = fields.path(), fields.path()
    if os.path.lexists(new):
        return _status(packets.FAILURE, b"the new name is taken")
    os.rename(old, new)
    return None


def _set(what: bytes | int, wanted: packets.Attributes, *, follow: bool = True) -> None:
    if wanted.size is not None:
        os.truncate(what, wanted.size)
    if wanted.owner is not None:
        _set_owner(what, wanted.owner, follow=follow)
    if wanted.mode is not None and follow:
        os.chmod(what, wanted.mode & 0o7777)
    if wanted.times is not None:
        if isinstance(what, int):
            os.utime(what, wanted.times)
        else:
            os.utime(what, wanted.times, follow_symlinks=follow)


def _set_owner(what: bytes | int, owner: tuple[int, int], *, follow: bool) -> None:
    if isinstance(what, int):
        os.fchown(what, *owner)
    else:
        os.chown(what, *owner, follow_symlinks=follow)


def _room(found: os.statvfs_result) -> Answer:
    flags = found.f_flag & 3  # read-only and no set-user-id: the same numbers as ours
    return packets.EXTENDED_REPLY, struct.pack(
        ">11Q",
        found.f_bsize,
        found.f_frsize,
        found.f_blocks,
        found.f_bfree,
        found.f_bavail,
        found.f_files,
        found.f_ffree,
        found.f_favail,
        found.f_fsid & 0xFFFFFFFFFFFFFFFF,
        flags,
        found.f_namemax,
    )


def _attributes(what: os.stat_result) -> Answer:
    return packets.ATTRS, packets.attributes(what)


def _path(path: bytes) -> Answer:
    return packets.NAME, struct.pack(">I", 1) + packets.name(path)


def _status(code: int, words: bytes) -> Answer:
    return packets.STATUS, struct.pack(">I", code) + packets.text(words) + packets.text(b"en")


def _flat(pairs: dict[bytes, bytes]) -> Iterator[bytes]:
    for pair in pairs.items():
        yield from pair


def _send(kind: int, body: bytes) -> None:
    parts = [memoryview(struct.pack(">IB", 1 + len(body), kind)), memoryview(body)]
    while parts:
        written = os.writev(1, parts)
        while parts and written >= len(parts[0]):
            written -= len(parts[0])
            del parts[0]
        if parts:
            parts[0] = parts[0][written:]
