"""What all bodies of the API have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Asked(BaseModel):
    """What a caller sends: an unknown key is refused, and no value is taken for another kind."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Told(BaseModel):
    """What the server answers; a client takes keys that it does not know yet."""

    model_config = ConfigDict(frozen=True, extra="ignore")
