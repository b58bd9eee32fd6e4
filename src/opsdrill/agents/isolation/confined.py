"""A program in its room, from its start to its end, seen from outside."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import opsdrill
from opsdrill.agents.isolation.families import end_marked
from opsdrill.agents.isolation.room import Room

_BOOT = (
    "import sys; sys.path[:0] = sys.argv[3:]; "
    "from opsdrill.agents.isolation.main import main; main(*sys.argv[1:3])"
)
GOODBYE_SECONDS = 25.0
_REST_SECONDS = 30.0
_PART = 1 << 16
_TOKEN = "OPSDRILL_TICKET_TOKEN"  # noqa: S105 - the name of a variable that no other program has
_END_SECONDS = 10.0
_WAITING = 3
"""Threads of one program: for its end, its room, and what it leaves behind."""

Take = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Ending:
    """How a program ended.

    Args:
        status: its exit status, a signal as a negative number; None: it was ended, or nobody knows.
        cannot: why it could not be started.
        refused: why this machine could not give it the room.
        left: some of what it started could not be ended, or nobody knows.
    """

    status: int | None = None
    cannot: str | None = None
    refused: str | None = None
    left: bool = False


class Confined:
    """One program at work.

    Args:
        room: what it has.
        out, err: take what it writes, as it comes.
        kept: takes the archive of what it leaves behind, if it was started; runs in a thread.
    """

    def __init__(self, room: Room, out: Take, err: Take, kept: Callable[[IO[bytes]], None]) -> None:
        self._room = room
        self._takes = (out, err)
        self._kept = kept
        self._stopped = asyncio.Event()
        # They wait for as long as the program runs, so that they are nobody else's: those that all
        # share would soon be taken, and what is to be checked for one agent would wait for others.
        self._threads = ThreadPoolExecutor(_WAITING, thread_name_prefix="opsdrill-agent")

    def stop(self) -> None:
        """End the program and all that came of it; `run` goes on to its end. Repeatable."""
        self._stopped.set()

    async def run(self) -> Ending:
        """Run it to its end, of its own accord or by `stop`; nothing of it is left then.

        Raises:
            OSError: no process can be started at all.
        """
        pipes = [os.pipe() for _ in range(3)]
        (life, give), (report, say), (kept, send) = pipes
        try:
            process = subprocess.Popen(  # noqa: ASYNC220 - starting does not wait
                [sys.executable, "-I", "-S", "-c", _BOOT, str(say), str(send), *_import_path()],
                env={},
                cwd="/",
                stdin=life,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(say, send),
                start_new_session=True,
            )
        except BaseException:
            for fd in (give, report, kept):
                os.close(fd)
            raise
        finally:
            for fd in (life, say, send):
                os.close(fd)
        assert process.stdout is not None and process.stderr is not None
        loop, threads = asyncio.get_running_loop(), self._threads
        archive = loop.run_in_executor(threads, self._read_kept, kept)
        reads: list[Awaitable[None]] = [
            _drain(stream, take)
            for stream, take in zip((process.stdout, process.stderr), self._takes, strict=True)
        ]
        told: list[bytes] = []
        reads += [
            _drain(os.fdopen(report, "rb", 0), told.append),
            _give(threads, give, self._room.to_json()),
        ]
        reading = asyncio.gather(*reads)
        ended = loop.run_in_executor(threads, process.wait)
        stopper = asyncio.ensure_future(self._stop_at(give, process, ended))
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            self._stopped.set()
            await ended
            raise
        finally:
            self._stopped.set()
            await stopper
            unseen = process.returncode < 0 and not self._room.isolated
            if unseen:
                await loop.run_in_executor(threads, self._end_unseen)
            # What could not be ended may hold the pipes open.
            both: set[asyncio.Future[Any]] = {reading, archive}
            await asyncio.wait(both, timeout=_REST_SECONDS)
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading
        await archive
        threads.shutdown(wait=False)
        ending = _ending(b"".join(told))
        return replace(ending, left=True) if unseen else ending

    def _end_unseen(self) -> None:
        """A program that is not isolated can kill who looks after it; most of it is found yet."""
        token = self._room.environment.get(_TOKEN)
        if token is not None:
            end_marked(f"{_TOKEN}={token}".encode(), _END_SECONDS)

    def _read_kept(self, fd: int) -> None:
        with os.fdopen(fd, "rb") as stream:
            try:
                if stream.peek(1):  # one that was never started leaves nothing
                    self._kept(stream)
            finally:
                while stream.read(_PART):
                    pass

    async def _stop_at(
        self, give: int, process: subprocess.Popen[bytes], ended: asyncio.Future[int]
    ) -> None:
        """Close what it lives by; whoever does not heed that within some time is killed."""
        await self._stopped.wait()
        os.close(give)
        if not (await asyncio.wait({ended}, timeout=GOODBYE_SECONDS))[0]:
            process.kill()


async def _give(threads: ThreadPoolExecutor, fd: int, content: bytes) -> None:
    """Write all of it; the other end may be gone."""
    with suppress(OSError):
        await asyncio.get_running_loop().run_in_executor(threads, _write_all, fd, content)


def _write_all(fd: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


async def _drain(stream: IO[bytes], take: Take) -> None:
    reader = asyncio.StreamReader(limit=_PART)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), stream
    )
    try:
        while part := await reader.read(_PART):
            take(part)
    finally:
        transport.close()


def _ending(report: bytes) -> Ending:
    status = cannot = refused = None
    left = False
    for line in report.decode(errors="replace").splitlines():
        word, _, rest = line.partition(" ")
        if word == "ended":
            status = int(rest)
        elif word == "cannot":
            cannot = rest
        elif word == "refused":
            refused = rest
        left = left or word == "left"
    if not report:
        refused = "the process that was to start it ended without a word"
    return Ending(status, cannot, refused, left)


def _import_path() -> list[str]:
    """Where OpsDrill lies, and nothing else."""
    spec = importlib.util.find_spec("opsdrill")
    assert spec is not None and opsdrill.__file__ is not None
    return [str(Path(opsdrill.__file__).parents[1])]
