"""Static files: read once, served under an address that changes with their content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import Response

from opsdrill.errors import NotThere

STATIC = Path(__file__).parent / "static"
KINDS = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".md": "text/plain; charset=utf-8",
}
FOR_GOOD = "public, max-age=31536000, immutable"

router = APIRouter(include_in_schema=False)


@cache
def files() -> Mapping[str, bytes]:
    """Every static file by its path below `static/`; there is nothing else to ask for."""
    return {
        path.relative_to(STATIC).as_posix(): path.read_bytes()
        for path in sorted(STATIC.rglob("*"))
        if path.is_file() and path.suffix in KINDS
    }


@cache
def digest() -> str:
    """Of all static files together: scripts import each other by relative addresses."""
    found = hashlib.sha256()
    for name, content in files().items():
        found.update(f"{name}\0{len(content)}\0".encode())
        found.update(content)
    return found.hexdigest()[:16]


def address(name: str) -> str:
    """Where a static file is found. Raises KeyError for one that there is not."""
    if name not in files():
        raise KeyError(name)
    return f"/static/{digest()}/{name}"


@router.get("/static/{version}/{name:path}")
async def static(version: str, name: str) -> Response:
    """A file; kept by browsers for good where the address has its present digest."""
    content = files().get(name)
    if content is None:
        raise NotThere("file", name)
    kept = FOR_GOOD if version == digest() else "no-cache"
    return Response(
        content,
        media_type=KINDS[Path(name).suffix],
        headers={"Cache-Control": kept},
    )
