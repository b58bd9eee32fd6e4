"""Tokens, and the caller's own name."""

from __future__ import annotations

from opsdrill.client.call import Call, address, asked, get, model, nothing, of_model
from opsdrill.wire.tokens import (
    CallerTold,
    LoginAsked,
    Role,
    TokenAsked,
    TokenList,
    TokenMade,
    TokenTold,
)

TOKENS, SESSION = address("/tokens"), address("/session")


def list_tokens() -> Call[TokenList]:
    """All tokens without their secrets, the oldest first."""
    return get(TOKENS, model(TokenList))


def create_token(name: str, role: Role, *, expires_in_days: int | None = None) -> Call[TokenMade]:
    """A new token; its secret is in this answer and nowhere else."""
    values = {"name": name, "role": role, "expires_in_days": expires_in_days}
    return Call("POST", TOKENS, model(TokenMade), body=of_model(asked(TokenAsked, values)))


def read_token(token: str) -> Call[TokenTold]:
    """One token by its id."""
    return get(address("/tokens/{}", token), model(TokenTold))


def revoke_token(token: str) -> Call[TokenTold]:
    """Ends a token, by its id, and every session begun with it."""
    return Call("DELETE", address("/tokens/{}", token), model(TokenTold), again=True)


def log_in(token: str) -> Call[CallerTold]:
    """Begins a browser's session for the holder of a token."""
    body = of_model(asked(LoginAsked, {"token": token}))
    return Call("POST", SESSION, model(CallerTold), body=body)


def read_session() -> Call[CallerTold]:
    """Who calls: the token's name and role."""
    return get(SESSION, model(CallerTold))


def log_out() -> Call[None]:
    """Ends a browser's session; with a token nothing happens."""
    return Call("DELETE", SESSION, nothing)
