"""Files over SFTP: sessions that are asked for `files`."""

from __future__ import annotations

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
from opsdrill.hosts.conformance.sftp_client import (
    ATTRS,
    FOR_READING,
    FOR_WRITING,
    HANDLE,
    MKDIR,
    NAME,
    OPEN,
    OPENDIR,
    READDIR,
    REALPATH,
    REMOVE,
    RENAME,
    STAT,
    SYMLINK,
    Client,
    text,
)
from opsdrill.hosts.driver import Host
from opsdrill.hosts.session import SessionRequest


@asynccontextmanager
async def _files(host: Host, user: str = "root") -> AsyncIterator[Client]:
    try:
        session = await host.open(SessionRequest(user=user, files=True))
    except HostError as error:
        if "SFTP" in str(error):
            raise NotApplicable(str(error)) from None
        raise
    try:
        client = Client(session)
        await client.begin()
        yield client
    finally:
        await session.close()


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
        kind, body = await client.ask(REALPATH, text("."))
    expect_equal((kind, body[4:][: 4 + 5]), (NAME, text("/root")), "where it starts")


@on_host()
async def folders_links_and_names(host: Host) -> None:
    """Folders are made and listed, links made, files renamed and removed, whatever their names."""
    name = f"{FOLDER}/sftp 日'\n"
    async with _files(host) as client:
        expect_equal(await client.done(MKDIR, text(name), bytes(4)), 0, "making a folder")
        await client.put(f"{name}/one", b"x")
        moved = text(f"{name}/one"), text(f"{name}/two")
        expect_equal(await client.done(RENAME, *moved), 0, "renaming")
        link = text("two"), text(f"{name}/link")
        expect_equal(await client.done(SYMLINK, *link), 0, "making a link")
        expect_equal(await client.get(f"{name}/link", 1), b"x", "what a link leads to")
        kind, handle = await client.ask(OPENDIR, text(name))
        expect_equal(kind, HANDLE, "the answer to opening a folder")
        kind, listed = await client.ask(READDIR, handle)
        for found in ("link", "two"):
            expect(text(found) in listed, f"{found} is not listed")
        await expect_printed(host, f"cd {FOLDER}/sftp*; ls; readlink link", "link\ntwo\ntwo\n")
        expect_equal(await client.done(REMOVE, text(f"{name}/two")), 0, "removing")
        await expect_printed(host, f"cd {FOLDER}/sftp*; ls", "link\n")


@on_host()
async def what_is_not_there(host: Host) -> None:
    """A file that is not there is status 2, and the session goes on."""
    async with _files(host) as client:
        for kind in (STAT, REMOVE):
            expect_equal(await client.done(kind, text(f"{FOLDER}/none")), 2, "the status")
        kind, _ = await client.ask(STAT, text("/"))
        expect_equal(kind, ATTRS, "the answer to asking for /")


@on_host("users")
async def sftp_of_another_user(host: Host) -> None:
    """Over SFTP a user may do what that user may, and files are that user's."""
    name, _ = await other_user(host)
    await printed(
        host, f"mkdir -m 777 {FOLDER}/open; echo x > {FOLDER}/own; chmod 600 {FOLDER}/own"
    )
    async with _files(host, name) as client:
        for flags, path in ((FOR_READING, "own"), (FOR_WRITING, "other")):
            asked = text(f"{FOLDER}/{path}"), struct.pack(">II", flags, 0)
            expect_equal(await client.done(OPEN, *asked), 3, f"the status of opening {path}")
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
