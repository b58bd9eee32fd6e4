"""Tokens and sessions that end with their process, for tests and trials."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from threading import RLock

from opsdrill.errors import Conflict, NotThere
from opsdrill.store.access import Session, Token


class MemoryAccess:
    """An `AccessBook` in memory."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._tokens: dict[str, Token] = {}
        self._hashes: dict[str, str] = {}
        self._sessions: dict[str, Session] = {}

    def add_token(self, token: Token, hash: str) -> None:
        with self._lock:
            if token.id in self._tokens or hash in self._hashes:
                raise Conflict(f"token {token.id!r} is there already")
            self._tokens[token.id] = token
            self._hashes[hash] = token.id

    def add_first(self, token: Token, hash: str) -> bool:
        with self._lock:
            if self._tokens:
                return False
            self.add_token(token, hash)
            return True

    def any_token(self) -> bool:
        with self._lock:
            return bool(self._tokens)

    def token_by_hash(self, hash: str) -> Token | None:
        with self._lock:
            id = self._hashes.get(hash)
            return None if id is None else self._tokens[id]

    def tokens(self) -> list[Token]:
        with self._lock:
            return sorted(self._tokens.values(), key=lambda token: (token.created_at, token.id))

    def token(self, id: str) -> Token:
        with self._lock:
            if id not in self._tokens:
                raise NotThere("token", id)
            return self._tokens[id]

    def revoke(self, id: str, at: datetime) -> Token:
        with self._lock:
            token = self.token(id)
            if token.revoked_at is None:
                token = self._tokens[id] = replace(token, revoked_at=at)
            self._sessions = {
                hash: session for hash, session in self._sessions.items() if session.token != id
            }
            return token

    def used(self, id: str, at: datetime) -> None:
        with self._lock:
            token = self._tokens.get(id)
            if token and (token.last_used_at is None or token.last_used_at < at):
                self._tokens[id] = replace(token, last_used_at=at)

    def add_session(self, session: Session, hash: str) -> None:
        with self._lock:
            self.token(session.token)
            if hash in self._sessions:
                raise Conflict("the session is there already")
            self._sessions[hash] = session

    def session_by_hash(self, hash: str, now: datetime) -> Session | None:
        with self._lock:
            session = self._sessions.get(hash)
            if session is None or session.expires_at <= now:
                return None
            return session if self._tokens[session.token].holds(now) else None

    def end_session(self, hash: str) -> None:
        with self._lock:
            self._sessions.pop(hash, None)

    def end_old_sessions(self, now: datetime) -> int:
        with self._lock:
            over = [hash for hash, session in self._sessions.items() if session.expires_at <= now]
            for hash in over:
                del self._sessions[hash]
            return len(over)
