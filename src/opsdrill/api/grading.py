"""Grading without running anything: recorded jobs graded and kept, patterns tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from opsdrill.api.answers import received, told, with_body
from opsdrill.api.bodies import ToTheLetter
from opsdrill.api.entry import needs
from opsdrill.api.known import Known, heavy, scenario_named
from opsdrill.api.parameters import wrong
from opsdrill.api.problems import answers, item
from opsdrill.api.service import Served, Service
from opsdrill.app import grade_orders, markdown, pattern_trial, records
from opsdrill.app.grade import Graded
from opsdrill.app.grade_orders import GradeOrder
from opsdrill.app.library import Library
from opsdrill.app.own_folders import own_folders, told_result, without_paths
from opsdrill.app.pattern_trial import Trial
from opsdrill.app.texts import below, sent_model
from opsdrill.app.uploads import Upload, check_entries, told_as
from opsdrill.errors import InvalidInput
from opsdrill.scenarios.load import LoadedScenario
from opsdrill.wire.grading import (
    JOB,
    FlipsFound,
    FlipTold,
    GradeAsked,
    JobGraded,
    PatternAsked,
    PatternTried,
    RecordGraded,
    RecordKept,
    RecordKnown,
    RecordsKept,
    ValueMatched,
)
from opsdrill.wire.scenarios import EXAMPLE

router = APIRouter(tags=["grading"], route_class=ToTheLetter)

GRADE_BYTES = 64 * 1024 * 1024
RECORD_BYTES = 256 * 1024 * 1024

ScenarioKey = Annotated[str | None, Query(max_length=100, examples=["disk-full"])]
Host = Annotated[str | None, Query(max_length=200, description="The host of whatever names none.")]
SplitSsh = Annotated[
    bool,
    Query(alias="split-ssh", description="Take `ssh HOST COMMAND` for a command of that host."),
]


@router.post(
    "/grade",
    operation_id="grade_record",
    summary="Grade a recorded job",
    description=(
        "Grades a recorded job by a scenario's rules; nothing is kept. The body is a JSON object "
        "with scenario, record and host answers. With `scenario` in the query it is the file "
        "itself, a job record or whatever an importer reads, without host answers. The results "
        "hold what `opsdrill grade` tells: each rule's reason, and matches with their spans; the "
        "report says the same in Markdown."
    ),
    response_model=RecordGraded,
    responses=answers(422),
    **with_body(
        needs("read", upload=GRADE_BYTES),
        "application/json",
        "application/octet-stream",
        description="What is graded, or the file itself.",
        schema=GradeAsked.model_json_schema(),
        example={
            "scenario": EXAMPLE,
            "record": JOB,
            "answers": [{"on": "web-01", "run": "test ! -e /srv/full/core", "exit_code": 0}],
        },
    ),
)
async def grade_record(
    *,
    request: Request,
    library: Known,
    service: Served,
    scenario: ScenarioKey = None,
    host: Host = None,
    split_ssh: SplitSsh = False,
) -> Response:
    async with received(request, service) as upload:
        if scenario is None:
            found = await _graded_request(request, service, library, upload)
        else:
            loaded = await scenario_named(service, library, scenario, "query.scenario")
            _check_host(loaded, host, "query.host")
            order = GradeOrder(loaded, upload.path, (), host, split_ssh)
            found = await heavy(request, _graded_file, service, upload, order)
    return told(await service.call(_graded, found, own_folders(service.place)))


def _graded(found: Sequence[Graded], names: Sequence[str]) -> RecordGraded:
    results = [told_result(each.result, names) for each in found]
    return RecordGraded(
        results=[
            JobGraded(
                job=each.imported.name,
                format=each.imported.format,
                commands=each.commands,
                coverage=each.imported.record.coverage,
                result=result,
            )
            for each, result in zip(found, results, strict=True)
        ],
        report=markdown.results(results).decode(),
    )


async def _graded_request(
    request: Request, service: Service, library: Library, upload: Upload
) -> Sequence[Graded]:
    asked = await heavy(request, sent_model, upload.path, GradeAsked)
    if isinstance(asked.scenario, str):
        loaded = await scenario_named(service, library, asked.scenario, "scenario")
    else:
        loaded = await heavy(request, _scenario, library, asked.scenario)
    _check_host(loaded, asked.host, "host")
    return await heavy(request, _graded_asked, service, loaded, asked, upload)


def _check_host(loaded: LoadedScenario, host: str | None, path: str) -> None:
    """Refuse a host that the scenario does not have. Raises Refused, with the host's path."""
    names = loaded.scenario.host_names
    if host is not None and names and host not in names:
        raise wrong(path, "is no host of the scenario", hint=f"its hosts: {', '.join(names)}")


def _scenario(library: Library, data: dict[str, object]) -> LoadedScenario:
    try:
        return library.read_data(data)
    except InvalidInput as error:
        raise below(error, "scenario") from None


def _graded_asked(
    service: Service, loaded: LoadedScenario, asked: GradeAsked, upload: Upload
) -> Sequence[Graded]:
    answered = grade_orders.given_answers(asked.answers)
    part = grade_orders.written_record(
        upload.path, record=asked.record, text=asked.text, packed=asked.base64
    )
    order = GradeOrder(loaded, upload.path, answered, asked.host, asked.split_ssh)
    try:
        return _graded_file(service, upload, order, part)
    except InvalidInput as error:
        raise below(error, part) from None


def _graded_file(
    service: Service, upload: Upload, order: GradeOrder, name: str = "the record"
) -> Sequence[Graded]:
    with told_as(upload, name):
        check_entries(upload.path)
        return grade_orders.worked_off(service.place, order)


@router.post(
    "/records",
    status_code=201,
    operation_id="keep_records",
    summary="Keep recorded jobs as runs",
    description=(
        "Keeps every job of a file as a run: a job record, or another tool's transcript, whose "
        "format is found by looking at it. With `scenario` they are graded by its rules. The same "
        "file read in the same way is kept once: its runs are told as known. A file that breaks "
        "off is kept as far as it can be read, and the rest is told as refused."
    ),
    response_model=RecordsKept,
    responses={
        200: {"model": RecordsKept, "description": "All of it was kept before"},
        **answers(422),
    },
    **with_body(
        needs("run", upload=RECORD_BYTES),
        "application/octet-stream",
        "application/json",
        description="The file.",
        example=JOB,
    ),
)
async def keep_records(
    *,
    request: Request,
    library: Known,
    service: Served,
    scenario: ScenarioKey = None,
    host: Host = None,
    split_ssh: SplitSsh = False,
    name: Annotated[
        str, Query(max_length=200, description="What the file is called; kept as a label.")
    ] = "upload",
    again: Annotated[bool, Query(description="Keep once more what was kept before.")] = False,
) -> Response:
    loaded = None
    if scenario is not None:
        loaded = await scenario_named(service, library, scenario, "query.scenario")
        _check_host(loaded, host, "query.host")
    said = records.Told(name, host, split_ssh, again)
    async with received(request, service) as upload:
        found = await heavy(
            request, records.keep_upload, service.place, service.store, upload, loaded, said
        )
    return told(_kept(found, own_folders(service.place)), 201 if found.kept else 200)


@router.post(
    "/patterns/try",
    operation_id="try_pattern",
    summary="Try a pattern",
    description=(
        "The values of the last runs of a scenario in which a pattern is found, with spans, and "
        "with `validation` how many of their verdicts would flip under those rules. Nothing is "
        "kept. Bounded in runs, values and time: `limits` says what was not looked at."
    ),
    response_model=PatternTried,
    responses=answers(422),
    **needs("read"),
)
async def try_pattern(
    asked: PatternAsked, request: Request, library: Known, service: Served
) -> Response:
    rules = None
    if asked.validation is not None:
        await scenario_named(service, library, asked.scenario, "scenario")
        rules = await heavy(request, library.with_rules, asked.scenario, asked.validation)
    wish = pattern_trial.Wish(
        asked.scenario, asked.pattern, asked.where, asked.negate, rules, asked.runs
    )
    found = await heavy(request, pattern_trial.tried, service.place, service.store, wish)
    return told(_tried(found, own_folders(service.place), negate=asked.negate))


def _kept(found: records.KeptRecords, names: Sequence[str]) -> RecordsKept:
    return RecordsKept(
        batch=found.batch,
        runs=[
            RecordKept(
                run=one.result.run or "",
                job=one.job,
                format=one.format,
                verdict=one.result.verdict,
                reason=one.result.reason,
                commands=one.commands,
                warnings=[without_paths(line, names) for line in one.result.warnings],
            )
            for one in found.kept
        ],
        known=[
            RecordKnown(run=one.run, job=one.job, format=one.format, other_rules=one.other_rules)
            for one in found.known
        ],
        refused=found.refused,
    )


def _tried(found: Trial, names: Sequence[str], *, negate: bool) -> PatternTried:
    flips = None
    if found.flipped is not None:
        flips = FlipsFound(
            graded=found.flipped.graded,
            verdicts=found.flipped.verdicts,
            flips=[FlipTold(**asdict(flip)) for flip in found.flipped.flips],
            notes=[without_paths(line, names) for line in found.flipped.notes],
        )
    return PatternTried(
        runs=found.runs,
        holds=found.runs - found.runs_matched if negate else found.runs_matched,
        values=found.values,
        matched=found.matched,
        exhausted=found.exhausted,
        matches=[ValueMatched(**asdict(match)) for match in found.matches],
        flips=flips,
        limits=list(found.limits),
        warnings=[item(problem, ()) for problem in found.warnings],
    )
