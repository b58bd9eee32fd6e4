"""One serving process from its start to its end: the address, the engine, the server."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass

from anyio import CapacityLimiter
from fastapi import FastAPI
from uvicorn import Config, Server

from opsdrill.api.application import make_application
from opsdrill.api.connection import Connection
from opsdrill.api.guard import HEAD_BYTES
from opsdrill.api.service import LOOPBACK, Service
from opsdrill.app.access import Access, Made
from opsdrill.app.live import LiveEngine
from opsdrill.app.runs import Brake
from opsdrill.app.wiring import Place
from opsdrill.errors import UsageError
from opsdrill.store.store import Store

THREADS = 16
"""Calls of the store at once."""
ENDING_SECONDS = 3.0
"""How long answers under way may take when the server ends."""
BACKLOG = 512
"""Connections that wait to be taken."""
IDLE_SECONDS = 15
"""How long a connection may wait for its next request."""

_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?|\[[0-9a-f:.]{2,45}\]")


@dataclass(frozen=True, slots=True)
class Serving:
    """How a process serves.

    Args:
        bind: `HOST:PORT` or `[ADDRESS]:PORT`; port 0: any that is free.
        host_names: further names that it may be called by.
        proxies: addresses, or networks, of proxies whose word on the client is taken.
        https: browsers reach it by https, through a proxy.
        parallel: runs at once; None: what the settings say.
        open_metrics: `/metrics` takes no token.
    """

    bind: str
    host_names: Sequence[str] = ()
    proxies: Sequence[str] = ()
    https: bool = False
    parallel: int | None = None
    open_metrics: bool = False


@dataclass(frozen=True, slots=True)
class Tell:
    """Where a serving process says what happens.

    Args:
        serving: told its address once it can be reached, and the admin's token if it made one.
        note: told one line for people.
    """

    serving: Callable[[str, Made | None], None]
    note: Callable[[str], None]


async def serve(
    place: Place,
    store: Store,
    asked: Serving,
    brake: Brake,
    tell: Tell,
    *,
    maker: Callable[[Service], FastAPI] = make_application,
) -> None:
    """Serve until the brake is pulled: once, hosts are given back first; twice, at once.

    Args:
        place: where it works.
        store: open until the end.
        asked: how it serves.
        brake: ends it.
        tell: told what happens.
        maker: makes what is served.

    Raises:
        UsageError: an address, a name or a proxy that cannot be.
        StoreError: the store cannot be used.
    """
    host, _ = parsed_address(asked.bind)
    names, proxies = _names(host, asked.host_names), _proxies(asked.proxies)
    with _bound(asked.bind) as listening:
        starting = LiveEngine.started(place, store, parallel=asked.parallel, notify=tell.note)
        async with starting as engine:
            access = Access(store.access())
            service = Service(
                place,
                store,
                access,
                engine,
                CapacityLimiter(THREADS),
                hosts=names,
                https=asked.https,
                open_metrics=asked.open_metrics,
            )
            server = _Ending(_config(maker(service), proxies))
            made = await service.call(access.first)
            working = asyncio.create_task(server.serve([listening]), name="server")
            listening.listen(BACKLOG)
            tell.serving(_address(host, listening), made)
            try:
                await _until_braked(working, engine, server, brake)
            finally:
                for end in service.endings:
                    await asyncio.to_thread(end)


async def _until_braked(
    working: asyncio.Task[None], engine: LiveEngine, server: _Ending, brake: Brake
) -> None:
    """Wait for the brake, give hosts back while the server still answers, then end it."""
    try:
        await _first(working, brake.wait(1))
        if not working.done():
            await _first(asyncio.create_task(engine.close()), brake.wait(2))
    finally:
        if brake.times > 1:
            await engine.close(at_once=True)
        server.should_exit, server.force_exit = True, brake.times > 1
        await working


async def _first(task: asyncio.Task[None], braked: Coroutine[None, None, None]) -> None:
    waiting = asyncio.create_task(braked)
    await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    with suppress(asyncio.CancelledError):
        await waiting


class _Ending(Server):
    """The server, whose signals are somebody else's, and which waits for nobody for ever."""

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        await self._serve(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        seconds = 0.0 if self.force_exit else ENDING_SECONDS
        timer = asyncio.get_running_loop().call_later(seconds, self._abort)
        try:
            await super().shutdown(sockets)
        finally:
            timer.cancel()

    def _abort(self) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def _config(application: FastAPI, proxies: Sequence[str]) -> Config:
    return Config(
        application,
        http=Connection,
        ws="none",
        lifespan="off",
        backlog=BACKLOG,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=int(ENDING_SECONDS) * 3,
        h11_max_incomplete_event_size=HEAD_BYTES,
    )


def parsed_address(bind: str) -> tuple[str, int]:
    """The host, without brackets, and the port of an address to listen at. Raises UsageError."""
    host, _, port = bind.rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    good = bool(bare) and port.isascii() and port.isdigit() and int(port) < 65536
    if not good or (":" in bare and bare == host):
        raise UsageError(
            f"{bind!r} is no address to listen at",
            hint="give HOST:PORT, such as 127.0.0.1:8420, or [ADDRESS]:PORT for IPv6",
        )
    return bare, int(port)


def reaches_others(bind: str) -> bool:
    """Whether other machines can reach this address."""
    host, _ = parsed_address(bind)
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host != "localhost"


def _bound(bind: str) -> socket.socket:
    """A socket that listens nowhere yet, at its address. Raises UsageError."""
    host, port = parsed_address(bind)
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        family, kind, protocol, _, address = found[0]
        # Only of a socket that says it is TCP does asyncio send small answers without delay.
        listening = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise UsageError(f"{host!r} is no address of this machine: {_why(error)}") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except OSError as error:
        listening.close()
        raise UsageError(
            f"nothing can listen at {bind}: {_why(error)}", hint="give another one with --bind"
        ) from None
    return listening


def _why(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error).lower()


def _address(host: str, listening: socket.socket) -> str:
    """Where a browser on this machine finds it."""
    port = listening.getsockname()[1]
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 (not bound here)
    return f"http://{f'[{shown}]' if ':' in shown else shown}:{port}"


def _names(host: str, further: Sequence[str]) -> frozenset[str]:
    names = [f"[{host}]" if ":" in host else host, *further]
    for name in names:
        if not _NAME.fullmatch(name.lower()):
            raise UsageError(
                f"{name!r} is no host name", hint="give it without scheme and port, one by one"
            )
    return LOOPBACK | {name.lower() for name in names}


def _proxies(asked: Sequence[str]) -> Sequence[str]:
    for proxy in asked:
        try:
            ipaddress.ip_network(proxy)
        except ValueError:
            raise UsageError(
                f"{proxy!r} is no address of a proxy",
                hint="give an address such as 10.0.0.5, or a network such as 10.0.0.0/24",
            ) from None
    return asked
