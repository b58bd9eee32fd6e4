"""Tokens of a place, for whoever has its data folder: there nobody is asked for a token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict

from opsdrill.app import documents
from opsdrill.app.access import Access, Made, Role, Token
from opsdrill.app.stores import opened_store
from opsdrill.app.wiring import Place


def create(place: Place, name: str, role: Role, days: int | None) -> Made:
    """Make a token, with its secret for the only time.

    Raises:
        InvalidInput: a name that cannot be.
    """
    with _access(place) as access:
        return access.create(name, role, days=days, by=None)


def listed(place: Place) -> list[tuple[Token, str]]:
    """All tokens, the oldest first, each with its state."""
    with _access(place) as access:
        return [(token, access.state(token)) for token in access.tokens()]


def revoke(place: Place, id: str) -> Token:
    """End a token and its sessions. Raises NotThere."""
    with _access(place) as access:
        return access.revoke(id)


def document(found: Sequence[tuple[Token, str]]) -> bytes:
    """Tokens for programs."""
    return documents.document(
        "tokens", "tokens", [{**asdict(token), "state": state} for token, state in found]
    )


def document_of_one(made: Made) -> bytes:
    """A new token with its secret, for programs."""
    return documents.document(
        "tokens", "tokens", [{**asdict(made.token), "state": "active", "secret": made.secret}]
    )


@contextmanager
def _access(place: Place) -> Iterator[Access]:
    with opened_store(place) as store:
        yield Access(store.access())
