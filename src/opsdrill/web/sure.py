"""What cannot be taken back is asked first: by a dialog where scripts run, else by a page."""

from __future__ import annotations

from fastapi.responses import Response
from starlette.requests import Request

from opsdrill.web.forms import sent
from opsdrill.web.render import page

FIELD = "sure"


async def confirmed(request: Request) -> bool:
    """Whether whoever sent the form was asked and is sure."""
    return (await sent(request)).one(FIELD) == "yes"


def question(request: Request, asked: str, button: str, *, back: str) -> Response:
    """The page that asks, and sends the same again.

    Args:
        request: what was sent.
        asked: one sentence.
        button: what the button says that does it.
        back: where to go instead.
    """
    values = {"asked": asked, "button": button, "back": back, "action": request.url.path}
    return page(request, "sure.html", values)
