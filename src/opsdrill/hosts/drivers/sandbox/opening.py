"""A session with a sandbox host is opened."""

from __future__ import annotations

import asyncio
import os
from functools import partial

from opsdrill.errors import HostError, HostUnreachable
from opsdrill.hosts.drivers.sandbox.link import Link
from opsdrill.hosts.drivers.sandbox.messages import Begun, Failed, OpenSession, fits, memory
from opsdrill.hosts.drivers.sandbox.session import SandboxSession
from opsdrill.hosts.session import SessionRequest, variables, wrong_request

_BEGIN_SECONDS = 40.0


async def open_session(name: str, host: str, link: Link, request: SessionRequest) -> SandboxSession:
    """Open a session.

    Args:
        name: of the host.
        host: its id at the fork server.
        link: the fork server.
        request: what is to be started.

    Raises:
        HostError: it cannot be started; says why.
        HostUnreachable: the host is no more.
    """
    if (wrong := wrong_request(request)) is not None:
        raise HostError(name, wrong)
    message = _message(host, request)
    if not fits(message):
        raise HostError(name, "the environment of the session is too large")
    near, far = ([], []) if message.terminal else _pipes()
    try:
        # A lone surrogate has no bytes of its own; everything else arrives as written.
        text = (request.command or "").encode(errors="surrogatepass")
        with memory(text) as body:
            exchange = await link.request(message, (body, *far))
    except OSError:
        _close(near + far)
        raise HostUnreachable(name, "the host is no more") from None
    _close(far)
    try:
        async with asyncio.timeout(_BEGIN_SECONDS):
            came = await exchange.receive()
        begun = came[0] if came is not None else Failed("gone", "the host is no more")
        if came is not None and isinstance(begun, Begun):
            near += came[1]
            for fd in near:
                os.set_blocking(fd, False)
            return SandboxSession(exchange, near, partial(link.drains.take, host))
    except TimeoutError:
        begun = Failed("error", f"the session did not begin within {_BEGIN_SECONDS:g} s")
    except BaseException:
        exchange.close()
        _close(near)
        raise
    exchange.close()
    _close(near)
    reason = begun.reason if isinstance(begun, Failed) else "nobody knows what became of it"
    if isinstance(begun, Failed) and begun.kind == "gone":
        raise HostUnreachable(name, reason)
    raise HostError(name, f"the session cannot be started: {reason}")


def _message(host: str, request: SessionRequest) -> OpenSession:
    kind = "files" if request.files else "login" if request.command is None else "command"
    terminal = None
    if request.terminal is not None and not request.files:
        terminal = [max(request.terminal.columns, 0), max(request.terminal.rows, 0)]
    return OpenSession(host, request.user, kind, variables(request), terminal)


def _pipes() -> tuple[list[int], list[int]]:
    """Our ends and the program's, of standard input, output and error."""
    program_in, ours_in = os.pipe2(os.O_CLOEXEC)
    ours_out, program_out = os.pipe2(os.O_CLOEXEC)
    ours_err, program_err = os.pipe2(os.O_CLOEXEC)
    return [ours_in, ours_out, ours_err], [program_in, program_out, program_err]


def _close(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)
