"""The table of operations in the API's page, from the OpenAPI document."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from opsdrill.api.application import PREFIX, make_application
from opsdrill.api.entry import ROLE_KEY
from opsdrill.api.service import Service
from opsdrill.app.wiring import Place

START, END = "<!-- operations -->\n", "<!-- end of operations -->"
NOWHERE = Path("/nonexistent")


@cache
def openapi() -> dict[str, Any]:
    """The OpenAPI document, of an application that serves nobody."""
    service = SimpleNamespace(place=Place(NOWHERE, NOWHERE))
    return make_application(cast("Service", service)).openapi()


def page(text: str) -> str:
    """The page with the table as it should be; the rest of it stays."""
    table = "\n".join(_table())
    made = f"{START}{table}\n\n{END}"
    return re.sub(f"{re.escape(START)}.*?{re.escape(END)}", lambda _: made, text, flags=re.DOTALL)


def _table() -> list[str]:
    sections: dict[str, list[str]] = {}
    for path, item in openapi()["paths"].items():
        for method, operation in item.items():
            short = path.removeprefix(PREFIX)
            role = operation.get(ROLE_KEY)
            sections.setdefault(operation["tags"][0], []).append(
                f"| `{method.upper()} {short}` | {role or '-'} | {operation['summary']} "
                f"| `{operation['operationId']}` |"
            )
    found: list[str] = []
    for name, rows in sections.items():
        found += ["", f"### {name.capitalize()}", "", "| address | role | | method |"]
        found += ["|---|---|---|---|", *rows]
    return found
