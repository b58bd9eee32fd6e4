"""What is kept of a run: results, grades, evidence, record, files, phases, hosts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import StreamingResponse

from opsdrill.api.answers import told
from opsdrill.api.entry import needs
from opsdrill.api.known import KnownRecords
from opsdrill.api.parameters import Cursor, Limit, RunId
from opsdrill.api.problems import answers
from opsdrill.api.run_shapes import differences_told, grade_told, item_told
from opsdrill.api.service import Served, Service
from opsdrill.app import documents, history
from opsdrill.app.evidence_items import Item, Items, Kind, Wanted, item, items
from opsdrill.app.own_folders import own_folders, told_phase, told_result
from opsdrill.errors import NotThere
from opsdrill.evidence.stories import differences
from opsdrill.model.job import JobRecord
from opsdrill.model.result import PHASES, Grade, Result
from opsdrill.wire.runs import (
    DifferencesTold,
    EvidenceItem,
    EvidencePage,
    GradeList,
    HostChanges,
    HostTold,
    PhaseList,
    RunFiles,
    RunHosts,
    ScenarioRan,
    StepsTold,
    SupportFileTold,
)

router = APIRouter(tags=["runs"])

_CHUNK = 64 * 1024
_Text = Annotated[str | None, Query(max_length=500)]


@router.get(
    "/runs/{run}/results",
    response_model=Result,
    operation_id="read_results",
    summary="Read a run's results",
    description="The result, `opsdrill.result/1`: the verdict, the completion check, and each "
    "rule with its reason and the values that matched.",
    responses=answers(404),
    **needs("read"),
)
async def read_results(run: RunId, service: Served) -> Response:
    def found() -> bytes:
        with history.there(run):
            kept = service.store.get(run)
        result = kept.result or history.unfinished(kept.spec, kept.state)
        told_so = told_result(result, own_folders(service.place))
        return documents.of_model(told_so, indented=False)

    return _json(await service.call(found))


@router.get(
    "/runs/{run}/grades",
    response_model=GradeList,
    operation_id="list_grades",
    summary="List a run's grades",
    description="Every grade that the run ever got, in short. The last one counts.",
    responses=answers(404),
    **needs("read"),
)
async def list_grades(run: RunId, service: Served) -> Response:
    def found() -> GradeList:
        with history.there(run):
            return GradeList(grades=[grade_told(one) for one in service.store.grades(run)])

    return told(await service.call(found))


@router.get(
    "/runs/{run}/grades/{number}",
    response_model=Grade,
    operation_id="read_grade",
    summary="Read one grade",
    description="One grade whole, with every rule.",
    responses=answers(404, 422),
    **needs("read"),
)
async def read_grade(
    run: RunId, number: Annotated[int, Path(ge=1, le=10**6)], service: Served
) -> Response:
    def found() -> bytes:
        with history.there(run):
            for one in service.store.grades(run):
                if one.number == number:
                    return documents.of_model(one.grade, indented=False)
        raise NotThere("grade", str(number))

    return _json(await service.call(found))


@router.get(
    "/runs/{run}/phases",
    response_model=PhaseList,
    operation_id="list_phases",
    summary="List a run's phases",
    description="The phases of the latest attempt that began, in order.",
    responses=answers(404),
    **needs("read"),
)
async def list_phases(run: RunId, service: Served) -> Response:
    def found() -> PhaseList:
        with history.there(run):
            phases = service.store.get(run).phases
        folders = own_folders(service.place)
        return PhaseList(phases=[told_phase(phase, folders) for phase in phases])

    return told(await service.call(found))


@router.get(
    "/runs/{run}/hosts",
    response_model=RunHosts,
    operation_id="list_run_hosts",
    summary="List a run's hosts",
    description="What the hosts were made of, what they answered to the rules, and what became of "
    "the commands of each phase.",
    responses=answers(404),
    **needs("read"),
)
async def list_run_hosts(run: RunId, service: Served) -> Response:
    def found() -> RunHosts:
        store = service.store
        with history.there(run):
            hosts = [
                HostTold(facts=facts, changed_files=None if changed is None else len(changed))
                for facts, changed in store.hosts(run)
            ]
            steps = [StepsTold(phase=name, answers=store.steps(run, name)) for name in PHASES]
            return RunHosts(
                hosts=hosts,
                answers=store.answers(run),
                steps=[phase for phase in steps if phase.answers],
            )

    return told(await service.call(found))


@router.get(
    "/runs/{run}/evidence",
    response_model=EvidencePage,
    operation_id="list_evidence",
    summary="List a run's evidence",
    description="The job record piece by piece: ticket, plan, tasks, tool calls, messages, "
    "resolution. Long texts are cut and counted in `cut`; each piece is whole under its number.",
    responses=answers(400, 404, 422),
    **needs("read"),
)
async def list_evidence(
    run: RunId,
    service: Served,
    records: KnownRecords,
    *,
    kind: Kind | None = None,
    task: _Text = None,
    host: _Text = None,
    text: Annotated[_Text, Query(description="Anywhere in a piece, in capitals or not.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    wanted = Wanted(kind, task, host, text)

    def looked() -> Items:
        return items(records.lines(run, fresh=True), wanted, limit=limit, cursor=cursor)

    found = await service.call(looked)
    body = EvidencePage(
        items=[item_told(one) for one in found.items],
        cursor=found.cursor,
        coverage=found.coverage,
        sealed=found.sealed,
    )
    return told(body)


@router.get(
    "/runs/{run}/evidence/{number}",
    response_model=EvidenceItem,
    operation_id="read_evidence",
    summary="Read one piece of evidence",
    description="One piece of the job record, whole.",
    responses=answers(404, 422),
    **needs("read"),
)
async def read_evidence(
    run: RunId,
    number: Annotated[int, Path(ge=0, le=10**9)],
    service: Served,
    records: KnownRecords,
) -> Response:
    def looked() -> Item:
        return item(records.lines(run, fresh=True), number)

    return told(item_told(await service.call(looked)))


@router.get(
    "/runs/{run}/differences",
    response_model=DifferencesTold,
    operation_id="read_differences",
    summary="Read where two stories differ",
    description="What the agent reported and never ran, and what it ran and did not report; empty "
    "where only one of the two stories is known.",
    responses=answers(404),
    **needs("read"),
)
async def read_differences(run: RunId, service: Served) -> Response:
    def found() -> DifferencesTold:
        with history.there(run):
            record = service.store.record(run)
        return differences_told(differences(record) if record else None)

    return told(await service.call(found))


@router.get(
    "/runs/{run}/record",
    response_model=JobRecord,
    operation_id="read_record",
    summary="Download a run's job record",
    description="The whole job record, `opsdrill.job/1`; of a run that goes on or was killed, what "
    "was recorded.",
    responses=answers(404),
    **needs("read"),
)
async def read_record(run: RunId, service: Served) -> Response:
    def found() -> bytes:
        with history.there(run):
            return documents.of_model(history.evidence_in(service.store, run), indented=False)

    content = await service.call(found)
    name = re.sub(r"[^A-Za-z0-9._-]", "_", run)[:100]
    headers = {
        "content-disposition": f'attachment; filename="record-{name}.json"',
        "content-length": str(len(content)),
    }
    return StreamingResponse(_chunks(content), media_type="application/json", headers=headers)


@router.get(
    "/runs/{run}/files",
    response_model=RunFiles,
    operation_id="list_run_files",
    summary="List a run's files",
    description="The files that changed on its hosts since setup, and the support files that its "
    "hosts got.",
    responses=answers(404),
    **needs("read"),
)
async def list_run_files(run: RunId, service: Served) -> Response:
    def found() -> RunFiles:
        with history.there(run):
            spec = service.store.get(run).spec
            changed = [
                HostChanges(host=facts.name, changes=None if files is None else list(files))
                for facts, files in service.store.hosts(run)
            ]
        support = [SupportFileTold(**file.model_dump()) for file in spec.files]
        return RunFiles(changed=changed, support=support)

    return told(await service.call(found))


@router.get(
    "/runs/{run}/files/{digest}",
    response_class=Response,
    operation_id="read_run_file",
    summary="Download a support file",
    description="A support file of the run by its digest, secrets masked.",
    responses={
        200: {
            "description": "The content.",
            "content": {"application/octet-stream": {"schema": {"type": "string"}}},
        },
        **answers(404, 422),
    },
    **needs("read"),
)
async def read_run_file(
    run: RunId, digest: Annotated[str, Path(pattern=r"^[0-9a-f]{64}$")], service: Served
) -> Response:
    content = await service.call(_support_file, service, run, digest)
    headers = {"content-disposition": f'attachment; filename="{digest[:16]}.bin"'}
    return Response(content, media_type="application/octet-stream", headers=headers)


def _support_file(service: Service, run: str, digest: str) -> bytes:
    """The content of a file of this run; one of another run is not there."""
    with history.there(run):
        spec = service.store.get(run).spec
    if digest not in {file.digest for file in spec.files}:
        raise NotThere("support file", digest)
    try:
        return service.store.file(digest)
    except KeyError:
        raise NotThere("support file", digest) from None


@router.get(
    "/runs/{run}/scenario",
    response_model=ScenarioRan,
    operation_id="read_run_scenario",
    summary="Read the scenario that a run ran",
    description="The exact version of the scenario, with its rules; secrets are masked.",
    responses=answers(404),
    **needs("read"),
)
async def read_run_scenario(run: RunId, service: Served) -> Response:
    def found() -> ScenarioRan:
        with history.there(run):
            spec = service.store.get(run).spec
        scenario = spec.scenario.model_dump(mode="json", by_alias=True, exclude_none=True)
        return ScenarioRan(version=spec.scenario_version, scenario=scenario)

    return told(await service.call(found))


def _json(content: bytes) -> Response:
    return Response(content, media_type="application/json")


def _chunks(content: bytes) -> Iterator[bytes]:
    view = memoryview(content)
    for at in range(0, len(content), _CHUNK):
        yield bytes(view[at : at + _CHUNK])
