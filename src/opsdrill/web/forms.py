"""What a browser's form sends: names and texts, several times the same name perhaps."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl

from starlette.requests import Request

from opsdrill.api.problems import Refused

MOST_FIELDS = 5000
KIND = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a form, in the order sent."""

    fields: tuple[tuple[str, str], ...] = ()

    def one(self, name: str) -> str:
        """The first value of a name without blanks around it; empty where there is none."""
        return next((value.strip() for known, value in self.fields if known == name), "")

    def all(self, name: str) -> list[str]:
        """Every value of a name that is not blank, in order."""
        return [value.strip() for known, value in self.fields if known == name and value.strip()]

    def number(self, name: str) -> int | None:
        """A whole number; None for an empty field.

        Raises:
            Refused: it is none.
        """
        text = self.one(name)
        if not text:
            return None
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise Refused(422, f"{name}: must be a whole number, not {text[:40]!r}")
        return int(text)


async def sent(request: Request) -> Form:
    """The form of a request, read once.

    Raises:
        Refused: the body is no form.
    """
    known: Form | None = getattr(request.state, "form", None)
    if known is None:
        known = request.state.form = _parsed(request, await request.body())
    return known


def _parsed(request: Request, body: bytes) -> Form:
    if not body:
        return Form()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != KIND:
        raise Refused(415, f"a form is sent as {KIND}")
    try:
        text = body.decode("ascii")
        pairs = parse_qsl(
            text, keep_blank_values=True, errors="replace", max_num_fields=MOST_FIELDS
        )
    except ValueError:
        raise Refused(400, "the form cannot be read") from None
    return Form(tuple((name, value.replace("\r\n", "\n")) for name, value in pairs))
