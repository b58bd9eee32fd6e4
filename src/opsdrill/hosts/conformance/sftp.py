"""Files over SFTP: sessions that are asked for `files`."""

from __future__ import annotations

import asyncio
import hashlib
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from opsdrill.errors import HostError
from opsdrill.hosts.conformance.asking import (
    FOLDER,
    expect,
    expect_equal,
    expect_printed,
    other_user,
    printed,
)
from opsdrill.hosts.conformance.check import NotApplicable, on_host
from opsdrill.hosts.driver import Host
from opsdrill.hosts.session import Session, SessionRequest

_ANSWER_SECONDS = 30.0
# Packets of SFTP, version 3: draft-ietf-secsh-filexfer-02.
_INIT, _OPEN, _CLOSE, _READ, _WRITE, _MKDIR, _REALPATH, _STAT, _RENAME = (
    1,
    3,
    4,
    5,
    6,
    14,
    16,
    17,
    18,
)
_OPENDIR, _READDIR, _REMOVE, _SYMLINK = 11, 12, 13, 20
_VERSION, _STATUS, _HANDLE, _DATA, _NAME, _ATTRS = 2, 101, 102, 103, 104, 105
_FOR_READING, _FOR_WRITING = 0x01, 0x1A
_PART = 32_000
_AHEAD = 32


class _Client:
    """As much of an SFTP client as it takes to ask."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._unread = b""
        self._number = 0

    async def begin(self) -> None:
        await self._send(_INIT, struct.pack(">I", 3))
        kind, body = await self._packet()
        expect_equal((kind, body[:4]), (_VERSION, struct.pack(">I", 3)), "the answer to INIT")

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
        expect_equal(answer, _STATUS, f"the kind of the answer to {kind}")
        return int.from_bytes(body[:4], "big")

    async def opened(self, path: str, flags: int) -> bytes:
        """The handle of a file, as a field."""
        kind, body = await self.ask(_OPEN, _text(path), struct.pack(">II", flags, 0))
        expect_equal(kind, _HANDLE, f"the kind of the answer to opening {path} ({body!r})")
        return body

    async def put(self, path: str, content: bytes) -> None:
        handle = await self.opened(path, _FOR_WRITING)
        places = range(0, len(content), _PART)
        for number, place in enumerate(places):
            part = content[place : place + _PART]
            await self.send(_WRITE, handle, struct.pack(">QI", place, len(part)), part)
            if number >= _AHEAD:
                await self._expect_done()
        for _ in range(min(len(places), _AHEAD)):
            await self._expect_done()
        expect_equal(await self.done(_CLOSE, handle), 0, "the status of closing")

    async def get(self, path: str, size: int) -> bytes:
        handle = await self.opened(path, _FOR_READING)
        places = range(0, size, _PART)
        asked = 0
        parts = []
        for number in range(len(places)):
            while asked < min(number + _AHEAD, len(places)):
                await self.send(_READ, handle, struct.pack(">QI", places[asked], _PART))
                asked += 1
            kind, body = await self.answer()
            expect_equal(kind, _DATA, "the kind of the answer to reading")
            parts.append(body[4:])
        expect_equal(await self.done(_CLOSE, handle), 0, "the status of closing")
        return b"".join(parts)

    async def _expect_done(self) -> None:
        kind, body = await self.answer()
        expect_equal((kind, body[:4]), (_STATUS, bytes(4)), "the answer to writing")

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


@asynccontextmanager
async def _files(host: Host, user: str = "root") -> AsyncIterator[_Client]:
    try:
        session = await host.open(SessionRequest(user=user, files=True))
    except HostError as error:
        if "SFTP" in str(error):
            raise NotApplicable(str(error)) from None
        raise
    try:
        client = _Client(session)
        await client.begin()
        yield client
    finally:
        await session.close()


def _text(text: str) -> bytes:
    return struct.pack(">I", len(text.encode())) + text.encode()


@on_host()
async def files_pass_both_ways(host: Host) -> None:
    """A file of some megabytes arrives whole over SFTP, both ways."""
    content = bytes(range(251)) * 16_000
    async with _files(host) as client:
        await client.put(f"{FOLDER}/file", content)
        asked = await printed(host, f"sha256sum < {FOLDER}/file")
        expect_equal(asked.split()[0], hashlib.sha256(content).hexdigest(), "what arrived")
        expect(
            await client.get(f"{FOLDER}/file", len(content)) == content, "it comes back otherwise"
        )


@on_host()
async def sftp_starts_at_home(host: Host) -> None:
    """A relative path starts at the user's home."""
    async with _files(host) as client:
        kind, body = await client.ask(_REALPATH, _text("."))
    expect_equal((kind, body[4:][: 4 + 5]), (_NAME, _text("/root")), "where it starts")


@on_host()
async def folders_links_and_names(host: Host) -> None:
    """Folders are made and listed, links made, files renamed and removed, whatever their names."""
    name = f"{FOLDER}/a 日'\n"
    async with _files(host) as client:
        expect_equal(await client.done(_MKDIR, _text(name), bytes(4)), 0, "making a folder")
        await client.put(f"{name}/one", b"x")
        moved = _text(f"{name}/one"), _text(f"{name}/two")
        expect_equal(await client.done(_RENAME, *moved), 0, "renaming")
        link = _text("two"), _text(f"{name}/link")
        expect_equal(await client.done(_SYMLINK, *link), 0, "making a link")
        expect_equal(await client.get(f"{name}/link", 1), b"x", "what a link leads to")
        kind, handle = await client.ask(_OPENDIR, _text(name))
        expect_equal(kind, _HANDLE, "the answer to opening a folder")
        kind, listed = await client.ask(_READDIR, handle)
        for found in ("link", "two"):
            expect(_text(found) in listed, f"{found} is not listed")
        await expect_printed(host, f"cd {FOLDER}/a*; ls; readlink link", "link\ntwo\ntwo\n")
        expect_equal(await client.done(_REMOVE, _text(f"{name}/two")), 0, "removing")
        await expect_printed(host, f"cd {FOLDER}/a*; ls", "link\n")


@on_host()
async def what_is_not_there(host: Host) -> None:
    """A file that is not there is status 2, and the session goes on."""
    async with _files(host) as client:
        for kind in (_STAT, _REMOVE):
            expect_equal(await client.done(kind, _text(f"{FOLDER}/none")), 2, "the status")
        kind, _ = await client.ask(_STAT, _text("/"))
        expect_equal(kind, _ATTRS, "the answer to asking for /")


@on_host("users")
async def sftp_of_another_user(host: Host) -> None:
    """Over SFTP a user may do what that user may, and files are that user's."""
    name, _ = await other_user(host)
    await printed(
        host, f"mkdir -m 777 {FOLDER}/open; echo x > {FOLDER}/own; chmod 600 {FOLDER}/own"
    )
    async with _files(host, name) as client:
        for flags, path in ((_FOR_READING, "own"), (_FOR_WRITING, "other")):
            asked = _text(f"{FOLDER}/{path}"), struct.pack(">II", flags, 0)
            expect_equal(await client.done(_OPEN, *asked), 3, f"the status of opening {path}")
        await client.put(f"{FOLDER}/open/mine", b"x")
    await expect_printed(host, f"stat -c %U {FOLDER}/open/mine", f"{name}\n")


@on_host("throw-away")
async def links_stay_on_the_host(host: Host) -> None:
    """An absolute link leads to the host's own file, not to one of the machine that asks."""
    await printed(host, f"ln -s /etc/hostname {FOLDER}/name")
    name = host.facts.name.encode()
    async with _files(host) as client:
        found = await client.get(f"{FOLDER}/name", len(name))
    expect_equal(found.strip(), name, "what a link leads to")
