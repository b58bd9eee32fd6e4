"""The link to the fork server: starts it, sends requests, waits for replies without blocking."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import opsdrill
from opsdrill.errors import DriverUnavailable
from opsdrill.hosts.drains import Drains
from opsdrill.hosts.drivers.sandbox.messages import (
    Done,
    Failed,
    Message,
    Release,
    memory_file,
    read_memory_file,
    receive,
    send,
)

_BOOT = (
    "import sys; sys.path[:0] = sys.argv[3:]; "
    "from opsdrill.hosts.drivers.sandbox.forkserver.main import main; main(*sys.argv[1:3])"
)
_GOODBYE_SECONDS = 10.0
START_SECONDS = 20.0


class Exchange:
    """One request and its replies. Leaving it as a context tells the fork server that it is over.

    Attributes:
        socket: our end; the fork server, or a fork of it, has the other.
    """

    def __init__(self) -> None:
        self.socket, self.far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.setblocking(False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """It is over. Repeatable."""
        self.socket.close()
        self.far.close()

    def hang_up(self) -> None:
        """Say that nothing more will be sent; replies can still come."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)

    async def receive(self) -> tuple[Message, list[int]] | None:
        """The next reply and the file descriptors with it; None when nobody will reply any more."""
        await readable(self.socket.fileno())
        return receive(self.socket)

    def send(self, message: Message, fds: Sequence[int] = ()) -> None:
        """Tell the process that works on the request something; a process that is gone is not."""
        try:
            send(self.socket, message, tuple(fds))
        except OSError:
            return


async def readable(fd: int) -> None:
    """Wait until `fd` can be read or its other side is closed."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, _settle, ready)
    try:
        await ready
    finally:
        loop.remove_reader(fd)


def _settle(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


class Link:
    """A running fork server.

    Attributes:
        notes: what it can do here: `root`, `users`, `pids`, `memory`, `filter`, each yes or no.
        drains: reads what its hosts' commands leave behind.
    """

    def __init__(self, process: subprocess.Popen[bytes], near: socket.socket, log: int) -> None:
        self._process = process
        self._near = near
        self._log = log
        self.notes: Mapping[str, str] = {}
        self.drains = Drains()

    @classmethod
    async def start(cls) -> Link:
        """Start a fork server.

        Raises:
            DriverUnavailable: it cannot work here; says why.
        """
        _allow_descriptors()
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        log = memory_file()
        with far:
            process = subprocess.Popen(  # noqa: ASYNC220 - starting does not wait
                [sys.executable, "-I", "-S", "-c", _BOOT, str(far.fileno()), "0", *_import_path()],
                env={},
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                pass_fds=(far.fileno(),),
                start_new_session=True,
            )
        link = cls(process, near, log)
        try:
            async with asyncio.timeout(START_SECONDS):
                await readable(near.fileno())
            link._greet(receive(near))
        except TimeoutError:
            await link.close()
            raise DriverUnavailable(
                f"the sandbox did not start within {START_SECONDS:g} s", hint="try again"
            ) from None
        except BaseException:
            await link.close()
            raise
        near.setblocking(False)
        return link

    def _greet(self, came: tuple[Message, list[int]] | None) -> None:
        message = came[0] if came else Failed("error", self.last_words())
        if not isinstance(message, Done):
            reason = message.reason if isinstance(message, Failed) else "it said nothing"
            raise DriverUnavailable(
                f"the sandbox cannot work here: {reason}",
                hint="`opsdrill doctor` says what to change, or use `--lab container`",
            )
        self.notes = message.notes

    async def request(self, message: Message, fds: Sequence[int] = ()) -> Exchange:
        """Send a request; the reply socket goes with it.

        Raises:
            OSError: the fork server is gone.
        """
        exchange = Exchange()
        try:
            while True:
                try:
                    send(self._near, message, (exchange.far.fileno(), *fds))
                    break
                except BlockingIOError:
                    await asyncio.sleep(0.002)
        except BaseException:
            exchange.__exit__(None, None, None)
            raise
        exchange.far.close()
        return exchange

    def release_later(self, hosts: Sequence[str]) -> None:
        """Ask for the end of hosts without waiting; for when there is no time to wait."""
        with Exchange() as exchange:
            try:
                send(self._near, Release(list(hosts)), (exchange.far.fileno(),))
            except OSError:
                return

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def last_words(self) -> str:
        """The last line it wrote about its own trouble."""
        lines = read_memory_file(self._log)[-4096:].decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "the process ended without a word"

    async def close(self) -> None:
        """End it and all its hosts. Repeatable."""
        if self._near.fileno() < 0:
            return
        self._near.close()
        waiting = 0.001
        waited = 0.0
        while self._process.poll() is None:
            await asyncio.sleep(waiting)
            waited += waiting
            waiting = min(0.05, waiting * 1.5)
            if waited > _GOODBYE_SECONDS:
                self._process.kill()
        os.close(self._log)
        self.drains.close()


def _allow_descriptors() -> None:
    """Raise this process's bound of open files as far as it may.

    It also bounds the descriptors on their way between all processes of a user (unix(7),
    ETOOMANYREFS), and the hosts of an ordinary user are his processes: what they have on its way
    must not keep us from passing ours.
    """
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _import_path() -> list[str]:
    """Where the fork server finds this package and, if it must, pyroute2."""
    folders = [str(Path(opsdrill.__file__).resolve().parent.parent)]
    for name in ("pyroute2",):
        found = importlib.util.find_spec(name)
        if found is not None and found.origin is not None:
            folders.append(str(Path(found.origin).resolve().parent.parent))
    return list(dict.fromkeys(folders))
