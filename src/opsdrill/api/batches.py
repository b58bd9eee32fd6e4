"""Batches: runs that were started together."""

from __future__ import annotations

from fastapi import APIRouter

from opsdrill.api.entry import needs
from opsdrill.api.parameters import BatchId, Cursor, Limit
from opsdrill.api.problems import answers
from opsdrill.api.run_shapes import batch_told
from opsdrill.api.service import Served
from opsdrill.wire.batches import BatchCancelled, BatchList, BatchRetried, BatchTold

router = APIRouter(tags=["batches"])


@router.get(
    "/batches",
    operation_id="list_batches",
    summary="List batches",
    description="Batches, the newest first, with their runs counted by state and verdict.",
    responses=answers(400, 422),
    **needs("read"),
)
async def list_batches(service: Served, limit: Limit = 50, cursor: Cursor = None) -> BatchList:
    found = await service.call(service.store.batches, limit=limit, cursor=cursor)
    return BatchList(batches=[batch_told(row) for row in found.rows], cursor=found.cursor)


@router.get(
    "/batches/{batch}",
    operation_id="read_batch",
    summary="Read a batch",
    description="A batch with its runs counted; `GET /runs?batch=...` lists them.",
    responses=answers(404),
    **needs("read"),
)
async def read_batch(batch: BatchId, service: Served) -> BatchTold:
    return batch_told(await service.call(service.store.batch, batch))


@router.post(
    "/batches/{batch}/cancel",
    operation_id="cancel_batch",
    summary="Cancel a batch",
    description="Stops all its runs that are not over, and answers when their hosts are given "
    "back.",
    responses=answers(404, 409),
    **needs("run"),
)
async def cancel_batch(batch: BatchId, service: Served) -> BatchCancelled:
    return BatchCancelled(batch=batch, cancelled=await service.engine.cancel_batch(batch))


@router.post(
    "/batches/{batch}/retry",
    status_code=202,
    operation_id="retry_batch",
    summary="Retry what errored",
    description="Plans all its runs anew that ended in `error` or were interrupted and were not "
    "retried yet.",
    responses=answers(404, 409, 503),
    **needs("run"),
)
async def retry_batch(batch: BatchId, service: Served) -> BatchRetried:
    return BatchRetried(batch=batch, runs=await service.engine.retry_batch(batch))
