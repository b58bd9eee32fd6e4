"""Our ends of a program's pipes: nothing is read or written but what is asked for."""

from __future__ import annotations

import asyncio
import os

import pytest

from opsdrill.hosts.pipes import Inlet, Outlet, end_of_file, resize


def ends() -> tuple[int, int]:
    reader, writer = os.pipe2(os.O_CLOEXEC)
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    return reader, writer


async def test_read_waits_and_comes_to_the_end() -> None:
    reader, writer = ends()
    outlet = Outlet(reader)
    reading = asyncio.ensure_future(outlet.read(100))
    await asyncio.sleep(0.01)
    assert not reading.done()
    os.write(writer, b"abc")
    assert await reading == b"abc"
    os.close(writer)
    assert [await outlet.read(100), await outlet.read(100)] == [b"", b""]
    outlet.release()
    outlet.release()


async def test_rest_of_a_program_that_ended() -> None:
    """What it wrote is read; what others write to its pipe later is not its own."""
    reader, writer = ends()
    outlet = Outlet(reader)
    os.write(writer, b"own")
    outlet.ended()
    os.write(writer, b"other")
    assert [await outlet.read(2), await outlet.read(100), await outlet.read(1)] == [
        b"ow",
        b"n",
        b"",
    ]
    kept: list[bytes] = []
    outlet.release(lambda fd: kept.append(os.read(fd, 100)))
    assert kept == [b"other"]
    os.close(writer)


@pytest.mark.parametrize("how", ["ended", "release"])
async def test_who_waits_is_told_of_the_end(how: str) -> None:
    reader, writer = ends()
    outlet = Outlet(reader)
    reading = asyncio.ensure_future(outlet.read(100))
    await asyncio.sleep(0.01)
    getattr(outlet, how)()
    assert await reading == b""
    outlet.release()
    os.close(writer)


async def test_write_waits_for_room_and_gives_up_with_the_reader() -> None:
    reader, writer = ends()
    inlet = Inlet(writer)
    writing = asyncio.ensure_future(inlet.write(bytes(1_000_000)))
    await asyncio.sleep(0.05)
    assert not writing.done()
    assert len(os.read(reader, 1000)) == 1000
    os.close(reader)
    await writing
    await inlet.write(b"more")
    inlet.release()


async def test_release_ends_a_write() -> None:
    reader, writer = ends()
    inlet = Inlet(writer)
    writing = asyncio.ensure_future(inlet.write(bytes(1_000_000)))
    await asyncio.sleep(0.05)
    inlet.release()
    await writing
    os.close(reader)


async def test_one_that_never_stops_leaves_others_their_turn() -> None:
    """Reading what never ends goes on beside everything else in the loop."""
    zero = Outlet(os.open("/dev/zero", os.O_RDONLY | os.O_NONBLOCK))
    turns = 0

    async def read() -> None:
        while True:
            await zero.read(65536)

    reading = asyncio.ensure_future(read())
    for _ in range(20):
        await asyncio.sleep(0)
        turns += 1
    reading.cancel()
    await asyncio.wait([reading])
    zero.release()
    assert turns == 20


def test_terminal_has_a_size_and_an_end_of_file() -> None:
    ours, theirs = os.openpty()
    try:
        resize(ours, 132, 99_999_999)
        assert os.get_terminal_size(theirs) == (132, 65535)
        resize(ours, -1, 43)
        assert os.get_terminal_size(theirs) == (0, 43)
        assert end_of_file(ours) == b"\x04"
    finally:
        os.close(ours)
        os.close(theirs)


def test_what_is_no_terminal_has_neither() -> None:
    reader, writer = ends()
    resize(reader, 1, 1)
    assert end_of_file(reader) == b""
    os.close(reader)
    os.close(writer)
