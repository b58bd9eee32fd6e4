"""What runs can be started with: agents and labs by name; the health of hosts, and leases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path, Response

from opsdrill.api.answers import told
from opsdrill.api.entry import needs
from opsdrill.api.problems import answers
from opsdrill.api.service import Served, Service
from opsdrill.app import agent_list, hosts, labs
from opsdrill.app.history import waiting_runs
from opsdrill.app.hosts import HostReport, LabReport
from opsdrill.app.labs import NamedLab
from opsdrill.app.own_folders import own_folders, without_paths
from opsdrill.errors import NotThere
from opsdrill.hosts.driver import Finding
from opsdrill.wire.labs import (
    AgentList,
    AgentTold,
    FindingTold,
    HostHealth,
    LabHealth,
    LabList,
    LabTold,
    LeaseList,
    LeaseTold,
)

router = APIRouter(tags=["labs"])


@router.get(
    "/agents",
    response_model=AgentList,
    operation_id="list_agents",
    summary="List agents",
    description="The agents that runs can be started with: those that the server's file of agents "
    "names, and the controls `noop` and `reference`.",
    responses=answers(422),
    **needs("read"),
)
async def list_agents(service: Served) -> Response:
    rows = await service.call(agent_list.by_name, service.place)
    agents = [AgentTold(name=row.name, adapter=row.needs, means=row.means) for row in rows]
    return told(AgentList(agents=agents))


@router.get(
    "/labs",
    response_model=LabList,
    operation_id="list_labs",
    summary="List labs",
    description="The labs that runs can be started in: those that are kept on the server, and the "
    "drivers that make hosts.",
    **needs("read"),
)
async def list_labs(service: Served) -> Response:
    found = await service.call(labs.all_named, service.place)
    default = await service.call(_default, service)
    return told(LabList(labs=[_lab(service, one, default) for one in found]))


def _default(service: Service) -> str:
    return labs.named_only(None, service.place).name


def _lab(service: Service, found: NamedLab, default: str) -> LabTold:
    choice = found.choice
    lab = choice.lab if choice else None
    return LabTold(
        name=found.name,
        driver=choice.driver if choice else "",
        hosts=list(lab.hosts) if lab else [],
        images=list(lab.images) if lab else [],
        pools={name: pool.size for name, pool in lab.pools.items()} if lab else {},
        default=found.name == default,
        problem=shown(service, found.problem) if found.problem else None,
    )


@router.get(
    "/labs/{lab}/health",
    response_model=LabHealth,
    operation_id="check_lab",
    summary="Check a lab",
    description="Tries just now whether the lab's driver works here, and whether each of its "
    "machines answers. Nothing is changed there.",
    responses=answers(404, 422, 503),
    **needs("run"),
)
async def check_lab(
    lab: Annotated[str, Path(max_length=200, examples=["sandbox"])], service: Served
) -> Response:
    if lab not in await service.call(labs.names, service.place):
        raise NotThere("lab", lab)
    return told(_health(service, await service.engine.check_lab(lab)))


def _health(service: Service, report: LabReport) -> LabHealth:
    return LabHealth(
        lab=report.lab.name,
        driver=report.lab.driver,
        usable=report.usable,
        made=report.made,
        findings=_findings(service, report.findings),
        hosts=[_host(service, host) for host in report.hosts],
    )


def _host(service: Service, host: HostReport) -> HostHealth:
    findings = _findings(service, host.findings)
    return HostHealth(name=host.name, answers=host.answers, findings=findings)


def _findings(service: Service, found: Sequence[Finding]) -> list[FindingTold]:
    return [
        FindingTold(
            what=one.what,
            good=one.good,
            detail=shown(service, one.detail),
            remedy=shown(service, one.remedy) if one.remedy else None,
            blocks=one.blocks,
            host=one.host,
        )
        for one in found
    ]


@router.get(
    "/leases",
    response_model=LeaseList,
    operation_id="list_leases",
    summary="List leases",
    description="Which run holds which lasting hosts, and which runs wait for them, in the order "
    "asked.",
    **needs("read"),
)
async def list_leases(service: Served) -> Response:
    def found() -> LeaseList:
        waiting = waiting_runs(service.store)
        return LeaseList(
            leases=[
                LeaseTold(
                    run=lease.run,
                    attempt=lease.attempt,
                    hosts=list(lease.hosts.values()),
                    state=hosts.state(lease),
                    since=lease.since,
                    expires_at=lease.expires_at,
                    waits_for=None if lease.held else waiting.get(lease.run),
                )
                for lease in hosts.leases_in(service.store)
            ]
        )

    return told(await service.call(found))


def shown(service: Service, text: str) -> str:
    return without_paths(text, own_folders(service.place))
