"""Who may use the API, and for what: tokens, and the sessions of browsers that log in with one.

A secret is shown once, where it is made; the store has its SHA-256 alone. That is enough for a
secret of 256 random bits, which nobody can guess: a slow hash protects secrets that people chose.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import get_args

from opsdrill.errors import InvalidInput, Problem, StoreError
from opsdrill.store.access import AccessBook, Role, Session, Token

__all__ = ["ROLES", "Access", "Admitted", "Caller", "Denied", "LoggedIn", "Made", "Role", "Token"]

ROLES: tuple[Role, ...] = get_args(Role)
"""From the least to the most: a role may do all that those before it may."""

SESSION = timedelta(hours=12)
"""How long a browser stays logged in, whatever it does meanwhile."""
USED_EVERY = timedelta(minutes=1)
"""How often at most it is noted that a token was used."""
MOST_DAYS = 3650
MOST_NAME = 100
FIRST = "admin"
"""The name of the admin's token that the first start makes."""

_UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Also what turns the direction of a line: a name stands in logs, tables and pages."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: the holder of a token, by the token itself or in a browser's session.

    Args:
        name: of the token.
        role: what it may do.
        token: its id.
        csrf: of a browser's session: what must come along with every change.
    """

    name: str
    role: Role
    token: str
    csrf: str | None = field(default=None, repr=False)

    @property
    def session(self) -> bool:
        """Whether a browser's cookie vouches for the caller."""
        return self.csrf is not None

    def may(self, role: Role) -> bool:
        """Whether this role, or a lower one, is among what the caller may do."""
        return ROLES.index(self.role) >= ROLES.index(role)

    def sent(self, csrf: str) -> bool:
        """Whether this is the session's own CSRF token; compared in constant time."""
        return self.csrf is not None and hmac.compare_digest(
            self.csrf.encode(), csrf.encode("utf-8", "replace")
        )


@dataclass(frozen=True, slots=True)
class Denied:
    """A secret that lets nobody in; `guess`: it is none that was ever given out."""

    why: str
    guess: bool = False


Admitted = Caller | Denied


@dataclass(frozen=True, slots=True)
class Made:
    """A new token, with its secret for the only time."""

    token: Token
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """A new session, with what its cookie holds for the only time."""

    caller: Caller
    session: Session = field(repr=False)
    secret: str = field(repr=False)


class Access:
    """Tokens and sessions over a store's book. Calls are short and may come from many threads."""

    def __init__(
        self, book: AccessBook, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._book = book
        self._clock = clock

    # tokens

    def first(self) -> Made | None:
        """The admin's token of a store in which none was ever made; None in any other."""
        if self._book.any_token():
            return None
        made = self._new(FIRST, "admin", None, None)
        return made if self._book.add_first(made.token, digest(made.secret)) else None

    def create(self, name: str, role: Role, *, days: int | None, by: str | None) -> Made:
        """A new token.

        Args:
            name: for people; need not be unique.
            days: until it expires; None: never.
            by: who makes it.

        Raises:
            InvalidInput: a name or a time that cannot be.
        """
        problems = [*_name_problems(name), *_days_problems(days)]
        if problems:
            raise InvalidInput("token", problems)
        made = self._new(name, role, days, by)
        self._book.add_token(made.token, digest(made.secret))
        return made

    def tokens(self) -> list[Token]:
        """All tokens, those that are over too, the oldest first."""
        return self._book.tokens()

    def token(self, id: str) -> Token:
        """One token. Raises NotThere."""
        return self._book.token(id)

    def revoke(self, id: str) -> Token:
        """End a token, and every session that was begun with it. Raises NotThere."""
        return self._book.revoke(id, self._clock())

    def state(self, token: Token) -> str:
        """`active`, `expired` or `revoked`."""
        if token.revoked_at is not None:
            return "revoked"
        return "active" if token.holds(self._clock()) else "expired"

    # callers

    def by_token(self, secret: str) -> Admitted:
        """Who holds this secret."""
        found = self._book.token_by_hash(digest(secret))
        if found is None:
            return Denied("there is no such token", guess=True)
        now = self._clock()
        if not found.holds(now):
            over = "was revoked" if found.revoked_at else "has expired"
            return Denied(f"the token {found.name} {over}")
        self._note_use(found, now)
        return Caller(found.name, found.role, found.id)

    def log_in(self, secret: str) -> LoggedIn | Denied:
        """Begin a browser's session for the holder of a token."""
        caller = self.by_token(secret)
        if isinstance(caller, Denied):
            return caller
        now = self._clock()
        self._book.end_old_sessions(now)
        held = secrets.token_urlsafe(32)
        session = Session(
            id=digest(held),
            token=caller.token,
            csrf=secrets.token_urlsafe(32),
            created_at=now,
            expires_at=now + SESSION,
        )
        self._book.add_session(session, digest(held))
        return LoggedIn(_in_session(caller, session), session, held)

    def by_session(self, held: str) -> Admitted:
        """Who is logged in with what a cookie holds; over with its token."""
        now = self._clock()
        session = self._book.session_by_hash(digest(held), now)
        if session is None:
            return Denied("the session is over")
        token = self._book.token(session.token)
        if not token.holds(now):
            return Denied("the session is over")
        self._note_use(token, now)
        return _in_session(Caller(token.name, token.role, token.id), session)

    def log_out(self, held: str) -> None:
        """End the session of what a cookie holds; nothing for one that is not there."""
        self._book.end_session(digest(held))

    def _new(self, name: str, role: Role, days: int | None, by: str | None) -> Made:
        now, id = self._clock(), secrets.token_hex(5)
        expires = now + timedelta(days=days) if days is not None else None
        token = Token(id, name, role, now, expires_at=expires, by=by)
        return Made(token, f"od_{id}_{secrets.token_urlsafe(32)}")

    def _note_use(self, token: Token, now: datetime) -> None:
        if token.last_used_at is not None and now - token.last_used_at < USED_EVERY:
            return
        try:
            self._book.used(token.id, now)
        except StoreError as error:  # who only reads may do so on a store that is full
            log.warning("when a token was used could not be kept: %s", error)


def digest(secret: str) -> str:
    """What the store keeps of a secret: its SHA-256 in hex."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _in_session(caller: Caller, session: Session) -> Caller:
    return Caller(caller.name, caller.role, caller.token, session.csrf)


def _name_problems(name: str) -> list[Problem]:
    if not name.strip():
        return [Problem("name", "must not be empty")]
    if len(name) > MOST_NAME:
        return [Problem("name", f"must have at most {MOST_NAME} characters")]
    if _UNPRINTABLE.search(name):
        return [Problem("name", "must have no control characters")]
    return []


def _days_problems(days: int | None) -> list[Problem]:
    if days is None or 1 <= days <= MOST_DAYS:
        return []
    return [Problem("expires_in_days", f"must be from 1 to {MOST_DAYS}")]
