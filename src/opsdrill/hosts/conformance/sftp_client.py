"""As much of an SFTP client as it takes to ask: version 3, draft-ietf-secsh-filexfer-02."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Iterable

from opsdrill.hosts.conformance.asking import expect, expect_equal
from opsdrill.hosts.session import Session

_ANSWER_SECONDS = 30.0
INIT, OPEN, CLOSE, READ, WRITE, OPENDIR, READDIR, REMOVE, MKDIR = 1, 3, 4, 5, 6, 11, 12, 13, 14
REALPATH, STAT, RENAME, SYMLINK = 16, 17, 18, 20
VERSION, STATUS, HANDLE, DATA, NAME, ATTRS = 2, 101, 102, 103, 104, 105
FOR_READING, FOR_WRITING = 0x01, 0x1A
PART = 32_000
"""Bytes that are read or written with one request."""
_AHEAD = 32


def text(content: str) -> bytes:
    """A text as a field of a packet."""
    return struct.pack(">I", len(content.encode())) + content.encode()


class Client:
    """Asks over a session that serves files."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._unread = b""
        self._number = 0

    async def begin(self) -> None:
        await self._send(INIT, struct.pack(">I", 3))
        kind, body = await self._packet()
        expect_equal((kind, body[:4]), (VERSION, struct.pack(">I", 3)), "the answer to INIT")

    async def ask(self, kind: int, *fields: bytes) -> tuple[int, bytes]:
        """The kind and the rest of the answer to one request."""
        await self.send(kind, *fields)
        return await self.answer()

    async def send(self, kind: int, *fields: bytes) -> None:
        self._number += 1
        await self._send(kind, struct.pack(">I", self._number) + b"".join(fields))

    async def answer(self) -> tuple[int, bytes]:
        kind, body = await self._packet()
        return kind, body[4:]

    async def done(self, kind: int, *fields: bytes) -> int:
        """The status that a request is answered with; 0: it was done."""
        answer, body = await self.ask(kind, *fields)
        expect_equal(answer, STATUS, f"the kind of the answer to {kind}")
        return int.from_bytes(body[:4], "big")

    async def opened(self, path: str, flags: int) -> bytes:
        """The handle of a file, as a field."""
        kind, body = await self.ask(OPEN, text(path), struct.pack(">II", flags, 0))
        expect_equal(kind, HANDLE, f"the kind of the answer to opening {path} ({body!r})")
        return body

    async def put(self, path: str, content: bytes) -> None:
        handle = await self.opened(path, FOR_WRITING)
        parts = (content[place : place + PART] for place in range(0, len(content), PART))
        await self.write(handle, parts)
        expect_equal(await self.done(CLOSE, handle), 0, "the status of closing")

    async def get(self, path: str, size: int) -> bytes:
        handle = await self.opened(path, FOR_READING)
        content = b"".join([part async for part in self.read(handle, size)])
        expect_equal(await self.done(CLOSE, handle), 0, "the status of closing")
        return content

    async def write(self, handle: bytes, parts: Iterable[bytes]) -> None:
        """Write a file, some requests ahead of their answers."""
        place = waiting = 0
        for part in parts:
            await self.send(WRITE, handle, struct.pack(">QI", place, len(part)), part)
            place += len(part)
            waiting += 1
            if waiting > _AHEAD:
                await self._expect_done()
                waiting -= 1
        for _ in range(waiting):
            await self._expect_done()

    async def read(self, handle: bytes, size: int) -> AsyncIterator[bytes]:
        """Read a file of this size, some requests ahead of their answers."""
        places = range(0, size, PART)
        asked = 0
        for number in range(len(places)):
            while asked < min(number + _AHEAD, len(places)):
                await self.send(READ, handle, struct.pack(">QI", places[asked], PART))
                asked += 1
            kind, body = await self.answer()
            expect_equal(kind, DATA, "the kind of the answer to reading")
            yield body[4:]

    async def _expect_done(self) -> None:
        kind, body = await self.answer()
        expect_equal((kind, body[:4]), (STATUS, bytes(4)), "the answer to writing")

    async def _send(self, kind: int, body: bytes) -> None:
        await self._session.write(struct.pack(">IB", 1 + len(body), kind) + body)

    async def _packet(self) -> tuple[int, bytes]:
        head = await self._exactly(5)
        size, kind = struct.unpack(">IB", head)
        return kind, await self._exactly(size - 1)

    async def _exactly(self, size: int) -> bytes:
        async with asyncio.timeout(_ANSWER_SECONDS):
            while len(self._unread) < size:
                part = await self._session.read("stdout")
                expect(bool(part), "SFTP ends where an answer should come")
                self._unread += part
        found, self._unread = self._unread[:size], self._unread[size:]
        return found
