"""`opsdrill serve`: the pages and the REST API, for as long as the process lives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from opsdrill.app.safe_text import shown
from opsdrill.cli.front import INTERRUPTED, PASSED, Front, front
from opsdrill.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from fastapi import FastAPI

    from opsdrill.api.service import Service
    from opsdrill.api.serving import Serving
    from opsdrill.app.access import Made
    from opsdrill.app.runs import Brake

    Maker = Callable[[Service], FastAPI]

ADDRESS = "127.0.0.1:8420"
AT_ONCE_SECONDS = 10.0
"""After the second Ctrl-C the end comes, whatever is still under way."""
EXTRA = "serve"
"""The extra that has the libraries of a server."""


def serve(
    context: typer.Context,
    *,
    bind: Annotated[
        str, typer.Option("--bind", metavar="HOST:PORT", help="Where to listen.")
    ] = ADDRESS,
    host_name: Annotated[
        list[str] | None,
        typer.Option(
            "--host-name", metavar="NAME", help="A further name it is called by. Several."
        ),
    ] = None,
    proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--proxy", metavar="ADDRESS", help="A proxy whose word on the client is taken. Several."
        ),
    ] = None,
    https: Annotated[
        bool, typer.Option("--https", help="Browsers reach it by https, through a proxy.")
    ] = False,
    parallel: Annotated[
        int | None,
        typer.Option("--parallel", metavar="N", min=1, max=1000, help="How many runs at once."),
    ] = None,
    open_metrics: Annotated[
        bool, typer.Option("--open-metrics", help="/metrics takes no token.")
    ] = False,
) -> int:
    """Serve the pages and the REST API, and work off their runs.

    The first time it makes an admin's token and shows it, this once. Ctrl-C once starts nothing
    more, gives the hosts back and ends; twice ends at once.
    """
    told = front(context)
    try:
        import jinja2  # noqa: F401 (that it is there)

        from opsdrill.api.serving import Serving, reaches_others
        from opsdrill.web.application import make_site
    except ModuleNotFoundError as error:
        raise UsageError(
            f"`opsdrill serve` needs the module {error.name}, which is not installed",
            hint=f"install OpsDrill with its extra `{EXTRA}`: pip install 'opsdrill[{EXTRA}]'",
        ) from None
    asked = Serving(bind, host_name or (), proxy or (), https, parallel, open_metrics)
    if reaches_others(bind) and not https:
        told.out.warning("tokens pass the network unencrypted; put a proxy with https before it")
    return _serve(told, asked, make_site)


def _serve(told: Front, asked: Serving, maker: Maker) -> int:
    import asyncio

    from opsdrill.api.serving import Tell
    from opsdrill.api.serving import serve as serve_it
    from opsdrill.app.stores import opened_store
    from opsdrill.cli.drill import be_deaf
    from opsdrill.cli.log import log_to_stderr

    out = told.out
    log_to_stderr(told.debug)

    def serving(address: str, made: Made | None) -> None:
        out.line(f"serving at {address}")
        if made is not None:
            out.line(f"admin token: {made.secret}")
            out.note("the admin token is shown this once; `opsdrill token create` makes others")

    tell = Tell(serving, lambda line: out.note(shown(line)))
    with opened_store(told.place) as store:

        def started(brake: Brake) -> Coroutine[object, object, None]:
            return serve_it(told.place, store, asked, brake, tell, maker=maker)

        status = asyncio.run(_until_stopped(started, tell.note))
        be_deaf()
        return status


async def _until_stopped(
    start: Callable[[Brake], Coroutine[object, object, None]], note: Callable[[str], None]
) -> int:
    import asyncio
    import signal
    from contextlib import suppress

    from opsdrill.app.runs import Brake

    brake = Brake()
    serving = asyncio.ensure_future(start(brake))

    def stop() -> None:
        times = brake.pull()
        if times == 1:
            note("stopping: hosts are given back first; once more to stop at once")
        elif times == 2:
            note("stopping at once: what is left is found again at the next start")
            loop.call_later(AT_ONCE_SECONDS, serving.cancel)

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    with suppress(asyncio.CancelledError):
        await serving
    return INTERRUPTED if brake.times > 1 else PASSED
