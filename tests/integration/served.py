"""A real server on this machine, in the test's own loop, as `opsdrill serve` runs it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from opsdrill.api.application import make_application
from opsdrill.api.service import Service
from opsdrill.api.serving import Serving, Tell, serve
from opsdrill.app.access import Made
from opsdrill.app.runs import Brake
from opsdrill.app.stores import opened_store
from opsdrill.app.wiring import Place
from opsdrill.store.store import Store

HANGS = 15.0
"""Seconds after which whatever a test waits for counts as hanging."""


@dataclass
class Served:
    """A server that can be reached."""

    address: str
    secret: str
    """Of the admin's token that the first start made."""
    brake: Brake
    store: Store
    notes: list[str] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    async def said(self, content: bytes) -> bytes:
        """Everything that the server answers to some bytes, until it ends the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(content)
            return await to_the_end(reader)
        finally:
            writer.close()


async def to_the_end(reader: asyncio.StreamReader) -> bytes:
    """What comes until the connection is ended, politely or not."""
    got = b""
    async with asyncio.timeout(HANGS):
        try:
            while piece := await reader.read(65536):
                got += piece
        except ConnectionError:
            pass
    return got


def empty_place(folder: Path) -> Place:
    """A data folder and a working folder, both empty."""
    (folder / "work").mkdir()
    return Place(folder / "home", folder / "work")


@asynccontextmanager
async def served(
    folder: Path,
    *,
    asked: Callable[[str], Serving] = Serving,
    maker: Callable[[Service], FastAPI] = make_application,
    placed: Callable[[Path], Place] = empty_place,
) -> AsyncIterator[Served]:
    """A server at a free port; in the end it is stopped as by one Ctrl-C.

    Args:
        folder: empty; data and working folder are made in it.
        asked: how it serves, given the address.
        maker: makes what is served.
        placed: makes the place below the folder.
    """
    place = placed(folder)
    brake, notes = Brake(), list[str]()
    ready: asyncio.Future[tuple[str, Made | None]] = asyncio.get_running_loop().create_future()
    tell = Tell(lambda address, made: ready.set_result((address, made)), notes.append)
    with opened_store(place) as store:
        working = asyncio.create_task(
            serve(place, store, asked("127.0.0.1:0"), brake, tell, maker=maker)
        )
        async with asyncio.timeout(HANGS):
            either: set[asyncio.Future[Any]] = {working, ready}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
            address, made = ready.result()
            assert made is not None
            try:
                yield Served(address, made.secret, brake, store, notes)
            finally:
                if not brake.times:
                    brake.pull()
                await working
