"""The files that a client changes over SFTP, read off the packets as they pass.

Packets of version 3: draft-ietf-secsh-filexfer-02, and OpenSSH's PROTOCOL for the extensions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator

from opsdrill.agents.gateway.watch import Lasts, Malformed
from opsdrill.agents.gateway.witness import Call, Witness
from opsdrill.hosts.session import Stream
from opsdrill.model.job import Outcome, ToolKind

TOOL = "sftp"

_OPEN, _WRITE, _SETSTAT = 3, 6, 9
_REMOVE, _MKDIR, _RMDIR, _RENAME, _SYMLINK = 13, 14, 15, 18, 20
_STATUS, _HANDLE, _DATA = 101, 102, 103
_EXTENDED = 200
_FLAG_WRITE, _FLAG_APPEND, _FLAG_CREATE, _FLAG_CUT = 0x2, 0x4, 0x8, 0x10
_HAS_SIZE = 0x1
_ALONE = {_REMOVE: "remove", _MKDIR: "mkdir", _RMDIR: "rmdir"}
_LINKS = {b"hardlink@openssh.com": "hardlink"}

PACKET = 1024 * 1024
"""Bytes of a packet at most."""
_LOOKED_AT = 64 * 1024
"""Bytes of a request at most that carries no content."""
_BEGINNING = 5
"""Bytes of a packet's length and its kind."""
_UNDER_WAY = 4096
"""Requests without an answer at most."""


class Packets:
    """A stream of packets, of which what carries content is passed over."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._skip = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The packets that are whole now, without their length; not those of content.

        Raises:
            Malformed: these are no packets.
        """
        rest = memoryview(data)
        while rest:
            passed = min(self._skip, len(rest))
            self._skip -= passed
            rest = rest[passed:]
            wanted = self._wanted()
            took = min(wanted - len(self._head), len(rest))
            self._head += rest[:took]
            rest = rest[took:]
            if len(self._head) < _BEGINNING or len(self._head) < self._wanted():
                continue
            size = 4 + self._size()
            packet = bytes(self._head[4:])
            self._skip = size - len(self._head)
            self._head.clear()
            if not self._skip:
                yield packet

    def _wanted(self) -> int:
        """Bytes that are to be kept of the packet under way, with its length."""
        if len(self._head) < _BEGINNING:
            return _BEGINNING
        size = self._size()
        if self._head[4] in (_WRITE, _DATA):
            return _BEGINNING
        if size > _LOOKED_AT:
            if self._head[4] < _STATUS or self._head[4] == _EXTENDED:
                raise Malformed("an SFTP request is too long")
            return _BEGINNING
        return 4 + size

    def _size(self) -> int:
        size = int.from_bytes(self._head[:4], "big")
        if not 1 <= size <= PACKET:
            raise Malformed("an SFTP packet has an impossible size")
        return size


class _Fields:
    """The fields of a packet, one after the other."""

    def __init__(self, packet: bytes, at: int = 1) -> None:
        self._packet = packet
        self._at = at

    def number(self) -> int:
        if self._at + 4 > len(self._packet):
            raise Malformed("an SFTP packet ends too early")
        found: int = struct.unpack_from(">I", self._packet, self._at)[0]
        self._at += 4
        return found

    def text(self) -> bytes:
        size = self.number()
        end = self._at + size
        if end > len(self._packet):
            raise Malformed("a text in an SFTP packet is longer than the packet")
        text = self._packet[self._at : end]
        self._at = end
        return text

    def path(self) -> str:
        path = self.text()
        if b"\0" in path:
            raise Malformed("a path in an SFTP packet has a NUL character")
        return path.decode(errors="replace")


class SftpWatch:
    """One SFTP session, and each file opened, renamed or cut in it.

    Args:
        witness: who reports.
        host: the host's name.
        user: who the files belong to, as far as permissions go.
    """

    lasts: Lasts = "job"

    def __init__(self, witness: Witness, host: str, user: str) -> None:
        self._witness = witness
        self._host = host
        self._user = user
        self._session: Call | None = None
        self._requests = Packets()
        self._answers = Packets()
        self._asked: dict[int, Call] = {}
        self._does: dict[int, Callable[[_Fields], Call | None]] = {
            _OPEN: self._open,
            _SETSTAT: lambda fields: self._set(fields.path(), fields),
            _RENAME: lambda fields: self._rename("write_file", fields),
            _SYMLINK: lambda fields: self._link("symlink", fields),
            _EXTENDED: self._extended,
        }

    def begin(self) -> None:
        self._session = self._witness.begin(
            self._host, "other", "ssh", {"request": "sftp", "user": self._user}
        )

    async def sent(self, data: bytes) -> bytes:
        for packet in self._requests.feed(data):
            self._look(packet)
        return data

    async def sent_all(self) -> bytes:
        """A packet that is not whole does nothing."""
        return b""

    def came(self, stream: Stream, data: bytes) -> bytes:
        if stream == "stdout":
            for packet in self._answers.feed(data):
                if packet[0] in (_STATUS, _HANDLE):
                    self._answered(packet)
        return data

    def over(self, outcome: Outcome, exit_code: int | None, reason: str | None) -> None:
        for asked in self._asked.values():
            asked.returned("failed", output="the session ended before the answer")
        if self._session is not None:
            self._session.returned(outcome, exit_code=exit_code, output=reason)

    def _look(self, packet: bytes) -> None:
        kind = packet[0]
        if kind not in self._does and kind not in _ALONE:
            return
        fields = _Fields(packet)
        number = fields.number()
        if len(self._asked) >= _UNDER_WAY or number in self._asked:
            raise Malformed("too many SFTP requests at once, or two of one number")
        if kind in _ALONE:
            self._asked[number] = self._other({"operation": _ALONE[kind], "path": fields.path()})
        elif (asked := self._does[kind](fields)) is not None:
            self._asked[number] = asked

    def _answered(self, packet: bytes) -> None:
        fields = _Fields(packet)
        asked = self._asked.pop(fields.number(), None)
        if asked is None:
            return
        good = packet[0] == _HANDLE or fields.number() == 0
        why = None if good or packet[0] == _HANDLE else fields.text().decode(errors="replace")
        asked.returned("ran" if good else "failed", output=why)

    def _open(self, fields: _Fields) -> Call:
        path, flags = fields.path(), fields.number()
        # A host makes or cuts a file on request, though it is opened to be read alone.
        if not flags & (_FLAG_WRITE | _FLAG_APPEND | _FLAG_CREATE | _FLAG_CUT):
            return self._other({"operation": "open", "path": path})
        # `scp` writes a file anew without cutting it first; to edit one is to open what is there.
        anew = flags & (_FLAG_CREATE | _FLAG_CUT) and not flags & _FLAG_APPEND
        return self._begin("write_file" if anew else "update_file", {"path": path})

    def _set(self, path: str, fields: _Fields) -> Call:
        if fields.number() & _HAS_SIZE:
            return self._truncate(path)
        return self._other({"operation": "setstat", "path": path})

    def _truncate(self, path: str) -> Call:
        return self._begin("update_file", {"path": path, "operation": "truncate"})

    def _rename(self, kind: ToolKind, fields: _Fields) -> Call:
        old, new = fields.path(), fields.path()
        return self._begin(kind, {"path": new, "renamed_from": old})

    def _link(self, operation: str, fields: _Fields) -> Call:
        # OpenSSH has the two the other way round than the draft, and so have all others.
        to, path = fields.path(), fields.path()
        return self._other({"operation": operation, "path": path, "to": to})

    def _extended(self, fields: _Fields) -> Call | None:
        asked = fields.text()
        if asked == b"posix-rename@openssh.com":
            return self._rename("update_file", fields)
        if asked in _LINKS:
            return self._link(_LINKS[asked], fields)
        return None

    def _other(self, arguments: dict[str, str]) -> Call:
        return self._begin("other", arguments)

    def _begin(self, kind: ToolKind, arguments: dict[str, str]) -> Call:
        return self._witness.begin(self._host, kind, TOOL, {**arguments, "user": self._user})
