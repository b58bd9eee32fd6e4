"""`/runs/{id}`: one run whole: its verdict and why, what was done, live while it goes on."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi import Path as InPath
from fastapi.responses import JSONResponse, RedirectResponse, Response

from opsdrill.api.known import Known, KnownRecords, heavy
from opsdrill.api.parameters import RunId
from opsdrill.api.service import Served, Service
from opsdrill.app import history
from opsdrill.app.lines import MOST_FOUND, OpenRecords
from opsdrill.app.regrade import regrading_in
from opsdrill.app.whole_run import WholeRun, whole_run
from opsdrill.errors import NotThere, StoreDamaged
from opsdrill.grading.flips import Flip
from opsdrill.model.host import HostAnswer
from opsdrill.runner.regrader import Edited
from opsdrill.web import report as reports
from opsdrill.web.entry import needs
from opsdrill.web.forms import sent
from opsdrill.web.lines import WHOLE, LineShown, Text, shown_line
from opsdrill.web.render import page
from opsdrill.web.run_shown import run_values
from opsdrill.web.sure import confirmed, question

FIRST = 60
"""Lines that come with the page."""
MOST_LINES = 200

router = APIRouter(include_in_schema=False)

From = Annotated[int, Query(alias="from", ge=0, le=10**9)]


@router.get("/runs/{run}", **needs("read"))
async def run(
    *,
    request: Request,
    run: RunId,
    service: Served,
    records: KnownRecords,
    first: From = 0,
    wait: bool = False,
) -> Response:
    """The page; without `wait` one whose record takes long to read comes without it at first."""
    values = await service.call(_values, service, records, run, first, wait=wait)
    return page(request, "run.html", values, here="runs")


def _values(
    service: Service, known: OpenRecords, run: str, first: int, *, wait: bool
) -> dict[str, object]:
    whole = whole_run(service.place, service.store, run)
    try:
        found = known.lines(run, fresh=True) if wait else known.at_hand(run)
    except StoreDamaged:
        if wait:
            raise
        found = None  # the script asks again, and says it below the verdict
    lines = () if found is None else found.all[first : first + FIRST]
    shown = [shown_line(line) for line in lines]
    more = {"lines": shown, "first": first, "page": FIRST, "report": False}
    return run_values(whole, found) | more


@router.get("/runs/{run}/lines", **needs("read"))
async def lines(
    *,
    request: Request,
    run: RunId,
    service: Served,
    records: KnownRecords,
    first: From = 0,
    count: Annotated[int, Query(ge=1, le=MOST_LINES)] = 100,
) -> Response:
    """Some lines of the transcript, for the script that shows it."""
    found = await service.call(records.lines, run)
    shown = [shown_line(line) for line in found.all[first : first + count]]
    values = {"lines": shown, "total": len(found), "report": False, "run_id": run}
    return page(request, "parts/lines.html", values)


@router.get("/runs/{run}/find", **needs("read"))
async def find(
    request: Request,
    run: RunId,
    records: KnownRecords,
    text: Annotated[str, Query(min_length=1, max_length=500)],
) -> Response:
    """The numbers of the lines that hold a text."""

    def look() -> list[int]:
        return records.lines(run).found(text)

    numbers = await heavy(request, look)
    return JSONResponse({"numbers": numbers[:MOST_FOUND], "more": len(numbers) > MOST_FOUND})


@router.get("/runs/{run}/whole/{what}/{number}", **needs("read"))
async def whole(
    *,
    request: Request,
    run: RunId,
    what: Annotated[str, InPath(max_length=40)],
    number: Annotated[int, InPath(ge=0, le=10**9)],
    service: Served,
    records: KnownRecords,
) -> Response:
    """One line of the transcript, or one answer of a host, uncut."""
    shown = await service.call(_whole, service, records, run, what, number)
    values = {"line": shown, "run_id": run, "report": True, "what": what}
    template = "parts/whole.html" if "part" in request.query_params else "whole.html"
    return page(request, template, values, here="runs")


def _whole(service: Service, known: OpenRecords, run: str, what: str, number: int) -> LineShown:
    if what == "line":
        found = known.lines(run)
        if number < len(found):
            return shown_line(found.all[number], WHOLE)
        raise NotThere("line", str(number))
    kept = whole_run(service.place, service.store, run)
    answers = kept.answers if what == "rules" else kept.steps.get(what, ())
    if number >= len(answers):
        raise NotThere("answer of a host", f"{what} {number}")
    return _answer(number, what, answers[number])


def _answer(number: int, what: str, answer: HostAnswer) -> LineShown:
    said = (("command", answer.run), ("output", answer.stdout), ("standard error", answer.stderr))
    texts = tuple(Text(name, text[:WHOLE], len(text)) for name, text in said if text)
    status = "no exit status" if answer.exit_code is None else f"exit {answer.exit_code}"
    tone = "" if answer.exit_code == 0 else "failed"
    return LineShown(
        number, "answer", what, answer.on, answer.run[:240], status, tone, texts, (),
        answer.started_at,
    )  # fmt: skip


@router.get("/runs/{run}/report", **needs("read"))
async def report(request: Request, run: RunId, service: Served, records: KnownRecords) -> Response:
    """The run as one file, to be sent on."""

    def made() -> bytes:
        whole = whole_run(service.place, service.store, run)
        return reports.made(whole, records.lines(run))

    headers = {
        "content-disposition": f'attachment; filename="{reports.file_name(run)}"',
        "content-security-policy": "sandbox",
        "cache-control": "no-store",
        "x-content-type-options": "nosniff",
    }
    content = await heavy(request, made)
    return Response(content, media_type="text/html; charset=utf-8", headers=headers)


# what can be done with it


@router.post("/runs/{run}/cancel", **needs("run"))
async def cancel(request: Request, run: RunId, service: Served) -> Response:
    if not await confirmed(request):
        return question(request, "Stop this run?", "Stop it", back=f"/runs/{run}")
    await service.engine.cancel(run)
    return RedirectResponse(f"/runs/{run}", 303)


@router.post("/runs/{run}/retry", **needs("run"))
async def retry(run: RunId, service: Served) -> Response:
    return RedirectResponse(f"/runs/{await service.engine.retry(run)}", 303)


@router.post("/runs/{run}/delete", **needs("edit"))
async def delete(request: Request, run: RunId, service: Served, records: KnownRecords) -> Response:
    if not await confirmed(request):
        asked = "Delete this run with its evidence and its grades?"
        return question(request, asked, "Delete it", back=f"/runs/{run}")
    await service.call(history.delete_in, service.place, service.store, run)
    records.forget(run)
    return RedirectResponse("/runs", 303)


RULES = ("present", "own")


@router.get("/runs/{run}/regrade", **needs("read"))
async def regrade(
    request: Request, run: RunId, service: Served, library: Known, rules: str = "present"
) -> Response:
    """What would flip if the run were graded again; nothing is kept."""
    kept = await service.call(whole_run, service.place, service.store, run)
    edited = await _edited(service, library, kept, rules)
    flips, notes = await heavy(request, _regraded, service, run, edited, None)
    values = {
        "run": kept.run, "result": kept.result, "scenario": kept.run.spec.scenario,
        "flips": flips, "notes": notes, "edited": edited, "own": rules == "own",
        "going": kept.going,
    }  # fmt: skip
    return page(request, "regrade.html", values, here="runs")


@router.post("/runs/{run}/regrade", **needs("edit"))
async def regrade_now(request: Request, run: RunId, service: Served, library: Known) -> Response:
    """Grade the run again, and keep the grade."""
    rules = (await sent(request)).one("rules")
    kept = await service.call(whole_run, service.place, service.store, run)
    edited = await _edited(service, library, kept, rules)
    by = request.state.caller.name
    await heavy(request, _regraded, service, run, edited, by)
    return RedirectResponse(f"/runs/{run}#grades", 303)


async def _edited(service: Service, library: Known, kept: WholeRun, rules: str) -> Edited | None:
    """The present rules of the run's scenario; None where its own are meant, or there are none."""
    if rules == "own":
        return None
    try:
        loaded = (await service.call(library.get, kept.run.spec.scenario.key)).loaded
    except NotThere:
        return None
    return Edited(loaded.scenario, loaded.version)


def _regraded(
    service: Service, run: str, edited: Edited | None, by: str | None
) -> tuple[list[Flip], list[str]]:
    """Flips and notes; with `by` the grade is kept."""
    work = regrading_in(service.place, service.store, [run], edited, preview=by is None, by=by)
    with work as found:
        flips = [flip for chunk in found for flip in chunk]
        return flips, found.notes()
