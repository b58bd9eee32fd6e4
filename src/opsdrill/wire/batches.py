"""Batches: runs that were started together."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from opsdrill.wire.body import Told


class BatchTold(Told):
    """A batch: its runs, counted."""

    id: str = Field(examples=["20261130-231217-0a1b2c3d"])
    created_at: datetime
    runs: int
    states: dict[str, int] = Field(examples=[{"done": 8, "running": 2}])
    verdicts: dict[str, int] = Field(examples=[{"passed": 6, "failed": 1, "error": 1}])
    scenarios: list[str]
    agents: list[str]
    by: str | None = Field(default=None, examples=["nightly"])
    """The name of the token that started it; null: it was not started over the API."""


class BatchList(Told):
    """Some batches, the newest first, and the cursor of the next page; null at the end."""

    batches: list[BatchTold]
    cursor: str | None = None


class BatchCancelled(Told):
    """The runs that were stopped."""

    batch: str
    cancelled: list[str]


class BatchRetried(Told):
    """The runs that repeat those that errored."""

    batch: str
    runs: list[str]
