"""Templates: what they may call, how hostile text is shown, the headers of every page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import HTTPConnection

from opsdrill.app.access import Caller, Role
from opsdrill.app.safe_text import UNSAFE_IN_BLOCK
from opsdrill.web.assets import address

HERE = Path(__file__).parent
CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": CSP,
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class MenuItem:
    """One entry of the menu."""

    name: str
    title: str
    href: str


MENU = (
    MenuItem("runs", "Runs", "/runs"),
    MenuItem("scenarios", "Scenarios", "/scenarios"),
    MenuItem("batches", "Batches", "/batches"),
    MenuItem("trends", "Trends", "/trends"),
    MenuItem("hosts", "Hosts", "/hosts"),
    MenuItem("settings", "Settings", "/settings"),
)


def page(
    request: HTTPConnection,
    template: str,
    values: Mapping[str, object],
    *,
    here: str = "",
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> HTMLResponse:
    """A page, or a part of one that a script asked for.

    Args:
        request: who asks; its `state.caller` is there behind a gate.
        template: its file under `templates/`.
        values: what the template shows.
        here: the entry of the menu that it belongs to.
        status: of HTTP.
        headers: more headers.
    """
    caller: Caller | None = getattr(request.state, "caller", None)
    known = {
        "caller": caller,
        "csrf": caller.csrf if caller else None,
        "here": here,
        "pages": MENU if caller else (),
        "theme": _theme(request),
        "may": caller.may if caller else _nothing,
    }
    text = templates().get_template(template).render({**known, **values})
    return HTMLResponse(text, status, headers={**_HEADERS, **(headers or {})})


def _theme(request: HTTPConnection) -> str | None:
    wanted = request.cookies.get("opsdrill-theme")
    return wanted if wanted in ("light", "dark") else None


def _nothing(_role: Role) -> bool:
    return False


@cache
def templates() -> Environment:
    """The templates. A name that a page forgot to give is an error, not an empty place; text that
    a template forgot to hand to `shown` goes through it all the same."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_final,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(
        shown=shown,
        said=said,
        ago=ago,
        moment=moment,
        seconds=seconds,
        percent=percent,
        marked=marked,
    )
    made.globals.update(static=address)
    return made


_SIGNS = {code: chr(0x2400 + code) for code in range(32)} | {127: "\u2421"}
"""Control characters have pictures in Unicode."""


def _sign(match: re.Match[str]) -> str:
    code = ord(match.group())
    return _SIGNS.get(code) or f"\u27e6U+{code:04X}\u27e7"


def shown(text: object) -> str:
    """Anybody's text as it can be seen: what would hide, turn round or move text has a sign.

    Line breaks and tabs stay. The template escapes it like any other text.
    """
    return UNSAFE_IN_BLOCK.sub(_sign, str(text).replace("\r\n", "\n"))


_NAMED = re.compile("`([^`\n]+)`")


def said(sentence: str, *, capital: bool = False) -> Markup:
    """A sentence of ours, such as a reason, in which backticks stand around what is named.

    Args:
        sentence: may hold anybody's text.
        capital: whether it begins a line.
    """
    if capital:
        sentence = sentence[:1].upper() + sentence[1:]
    parts = _NAMED.split(shown(sentence))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if place % 2 else part
        for place, part in enumerate(parts)
    )


def _final(value: object) -> object:
    return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def marked(value: str, span: tuple[int, int] | None) -> Markup:
    """A value with the place marked where a pattern was found; `span` counts code points."""
    if span is None:
        return escape(shown(value))
    start, end = span
    inside = shown(value[start:end]) or "\N{OPEN BOX}"
    return Markup("{}<mark>{}</mark>{}").format(shown(value[:start]), inside, shown(value[end:]))


def moment(when: datetime | None) -> Markup:
    """A time as a `<time>` that scripts show in the reader's own zone."""
    if when is None:
        return Markup("")
    utc = when.astimezone(UTC)
    return Markup('<time datetime="{}">{}</time>').format(
        utc.isoformat(), f"{utc:%Y-%m-%d %H:%M:%S} UTC"
    )


def ago(when: datetime | None) -> Markup:
    """How long ago, in the largest unit that fits, as a `<time>` that tells the moment too."""
    if when is None:
        return Markup("")
    utc = when.astimezone(UTC)
    return Markup('<time datetime="{}" title="{}" data-ago>{} ago</time>').format(
        utc.isoformat(), f"{utc:%Y-%m-%d %H:%M:%S} UTC", seconds(_since(when))
    )


def _since(when: datetime) -> float:
    return (datetime.now(UTC) - when).total_seconds()


def seconds(length: float | None) -> str:
    """A length of time in words as short as a table wants them."""
    if length is None:
        return ""
    if length < 10:
        return f"{max(length, 0):.1f} s"
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if length >= 2 * size:
            return f"{length / size:.0f} {unit}"
    return f"{length:.0f} s"


def percent(part: float, whole: float) -> str:
    """A share, rounded only here; nothing where there is no whole."""
    return f"{100 * part / whole:.0f} %" if whole else "\N{EN DASH}"
