"""Bodies are read by our own readers, which say where a text is wrong."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from opsdrill.api.problems import Carried, Refused
from opsdrill.api.service import Service
from opsdrill.app.texts import decoded_text, plain_json
from opsdrill.errors import InvalidInput

_FORMS = ("multipart/form-data",)
_SHORT = 10_000
"""Characters of JSON that are read so quickly that no thread is worth it."""


class ToTheLetter(APIRoute):
    """A route whose body is a model: its JSON is read as strictly as that of a scenario.

    No key stands twice, since readers before us may have taken the other one, and there is no NaN.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answered = super().get_route_handler()

        async def handler(request: Request) -> Response:
            return await answered(_Request(request.scope, request.receive))

        return handler


class _Request(Request):
    async def json(self) -> Any:
        try:
            return await _plain(self)
        except InvalidInput as error:
            raise Carried(error) from None


async def text_body(request: Request) -> tuple[str, bool | None]:
    """The body as text, and whether it is JSON (None: its start decides).

    Raises:
        Refused: it is a form.
        InvalidInput: it is not UTF-8.
    """
    kind = _kind(request)
    if kind in _FORMS:
        raise Refused(
            415, f"a body of {kind} is not understood", hint="send the document itself as the body"
        )
    text = decoded_text(await request.body())
    if kind == "application/json" or kind.endswith("+json"):
        return text, True
    return text, False if kind.endswith("yaml") else None


async def json_body(request: Request) -> object:
    """The body as plain data.

    Raises:
        Refused: it says that it is something else than JSON.
        InvalidInput: it is no JSON; names line and column.
    """
    kind = _kind(request)
    if kind and kind != "application/json" and not kind.endswith("+json"):
        raise Refused(415, f"the body must be JSON, not {kind[:100]}")
    return await _plain(request)


async def _plain(request: Request) -> object:
    text = decoded_text(await request.body())
    if len(text) < _SHORT:
        return plain_json(text)
    service: Service = request.app.state.service
    return await service.call(plain_json, text)


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
