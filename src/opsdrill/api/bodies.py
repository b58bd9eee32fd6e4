"""Bodies that are read by our own readers, which say where a text is wrong."""

from __future__ import annotations

from fastapi import Request

from opsdrill.api.problems import Refused
from opsdrill.app.texts import decoded_text, plain_json

_FORMS = ("multipart/form-data",)


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
    return plain_json(decoded_text(await request.body()))


def _kind(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
