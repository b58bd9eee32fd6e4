"""Tokens and sessions."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from opsdrill.wire.body import Asked, Told

Role = Literal["read", "run", "edit", "admin"]
"""What a token may do; each role may do all that those before it may."""


class TokenAsked(Asked):
    """A token to be made."""

    name: str = Field(min_length=1, max_length=100, examples=["nightly drills"])
    """For people; need not be unique."""
    role: Role = Field(examples=["run"])
    expires_in_days: int | None = Field(default=None, ge=1, le=3650, examples=[90])
    """Without it the token does not expire."""


class TokenTold(Told):
    """A token, without its secret."""

    id: str = Field(examples=["5f3a9c0d1e"])
    """The beginning of the secret, behind `od_`: enough to recognise it, not to use it."""
    name: str = Field(examples=["nightly drills"])
    role: Role = Field(examples=["run"])
    state: Literal["active", "expired", "revoked"]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    """To the minute."""
    by: str | None = Field(default=None, examples=["first"])
    """The name of the token that made it; none: it was made on the command line."""


class TokenMade(TokenTold):
    """A new token with its secret, which is shown this once."""

    secret: str = Field(examples=["od_5f3a9c0d1e_mJ0h3l1l6vXg2m3Kq8y5Zc7Qe9Rt1Wp4Ns6Ub0Vd2Fx"])


class TokenList(Told):
    """All tokens, the oldest first."""

    tokens: list[TokenTold]


class LoginAsked(Asked):
    """What a browser logs in with."""

    token: str = Field(
        max_length=200, examples=["od_5f3a9c0d1e_mJ0h3l1l6vXg2m3Kq8y5Zc7Qe9Rt1Wp4Ns6Ub0Vd2Fx"]
    )


class CallerTold(Told):
    """Who calls."""

    name: str = Field(examples=["nightly drills"])
    role: Role = Field(examples=["run"])
    token: str = Field(examples=["5f3a9c0d1e"])
    """The id of the caller's token."""
    csrf: str | None = None
    """In a browser's session: what every change must carry as `X-CSRF-Token`."""
