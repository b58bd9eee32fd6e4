"""Who may do what: tokens and the sessions of browsers. Neither is kept but as a hash."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

Role = Literal["read", "run", "edit", "admin"]
"""What a token may do; each may do all that those before it may."""


@dataclass(frozen=True, slots=True)
class Token:
    """A token without its secret."""

    id: str
    name: str
    role: Role
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    by: str | None = None
    """Who made it."""

    def holds(self, now: datetime) -> bool:
        """Whether it is good for anything at that moment."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that logged in with a token."""

    id: str
    token: str
    """The token's id."""
    csrf: str
    """What the browser must send along with a change."""
    created_at: datetime
    expires_at: datetime


class AccessBook(Protocol):
    """Tokens and sessions. Every call raises StoreError where the store cannot be used."""

    def add_token(self, token: Token, hash: str) -> None:
        """Keep a token by the hash of its secret.

        Raises:
            Conflict: its id or its hash is there already.
        """

    def add_first(self, token: Token, hash: str) -> bool:
        """As `add_token`, only where no token was ever made; whether it was kept.

        Of several processes that try it at once, one succeeds.
        """

    def any_token(self) -> bool:
        """Whether a token was ever made, be it over by now."""

    def token_by_hash(self, hash: str) -> Token | None:
        """The token with this hash, be it over by now: see `Token.holds`."""

    def tokens(self) -> list[Token]:
        """All tokens, the oldest first."""

    def token(self, id: str) -> Token:
        """One token. Raises NotThere."""

    def revoke(self, id: str, at: datetime) -> Token:
        """End a token and its sessions; one that is revoked already stays so. Raises NotThere."""

    def used(self, id: str, at: datetime) -> None:
        """Note when a token was last used; the latest moment stays. Nothing for one not there."""

    def add_session(self, session: Session, hash: str) -> None:
        """Keep a session by the hash of what the browser holds.

        Raises:
            NotThere: there is no such token.
            Conflict: its hash is there already.
        """

    def session_by_hash(self, hash: str, now: datetime) -> Session | None:
        """The session, if it and its token hold at that moment."""

    def end_session(self, hash: str) -> None:
        """End a session; nothing for one that is not there."""

    def end_old_sessions(self, now: datetime) -> int:
        """Forget the sessions that are over; how many."""
