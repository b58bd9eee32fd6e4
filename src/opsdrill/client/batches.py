"""Runs in numbers: batches, comparisons, trends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Unpack

from opsdrill.client.call import (
    LONG_SECONDS,
    Call,
    address,
    asked,
    get,
    model,
    of_model,
)
from opsdrill.client.runs import Filters, narrowed
from opsdrill.wire.batches import BatchCancelled, BatchList, BatchRetried, BatchTold
from opsdrill.wire.comparisons import ComparisonAsked, ComparisonTold, SetAsked, TrendTold


def list_batches(*, limit: int | None = None, cursor: str | None = None) -> Call[BatchList]:
    """Batches, the newest first, with their runs counted."""
    return get(address("/batches"), model(BatchList), limit=limit, cursor=cursor)


def read_batch(batch: str) -> Call[BatchTold]:
    """A batch with its runs counted by state and verdict."""
    return get(address("/batches/{}", batch), model(BatchTold))


def cancel_batch(batch: str) -> Call[BatchCancelled]:
    """Stops all runs of a batch that are not over; answers when their hosts are given back."""
    path = address("/batches/{}/cancel", batch)
    return Call("POST", path, model(BatchCancelled), again=True, seconds=LONG_SECONDS)


def retry_batch(batch: str) -> Call[BatchRetried]:
    """Plans all runs of a batch anew that ended in `error` or were interrupted."""
    return Call("POST", address("/batches/{}/retry", batch), model(BatchRetried))


def compare_runs(
    sets: Sequence[SetAsked | Mapping[str, Any]],
    *,
    by: Sequence[Literal["scenario", "agent"]] | None = None,
) -> Call[ComparisonTold]:
    """Two or more sets of runs, held against the first of them; regressions first.

    Args:
        sets: each has a `name` and the filters that make it.
        by: what a line of the grid stands for.
    """
    made = [each if isinstance(each, SetAsked) else asked(SetAsked, each) for each in sets]
    values = {"sets": made, "by": list(by) if by is not None else None}
    body = of_model(asked(ComparisonAsked, values))
    return Call(
        "POST", address("/comparisons"), model(ComparisonTold), body=body, again=True,
        seconds=LONG_SECONDS,
    )  # fmt: skip


def read_trend(
    *,
    by: Literal["hour", "day", "week", "month"] | None = None,
    **filters: Unpack[Filters],
) -> Call[TrendTold]:
    """What became of runs over time; errors have a share of their own."""
    query = {**narrowed(filters), "by": by}
    return Call("GET", address("/trends"), model(TrendTold), query, again=True)
