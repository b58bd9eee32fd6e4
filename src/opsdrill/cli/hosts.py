"""`opsdrill hosts`: the machines of a lab, and who holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from opsdrill.app.safe_text import shown
from opsdrill.cli.choices import PageFormat
from opsdrill.cli.findings import show_findings
from opsdrill.cli.front import ERROR, FAILED, INVALID, PASSED, front
from opsdrill.cli.table import Column

if TYPE_CHECKING:
    from opsdrill.app.conformance import ConformanceReport
    from opsdrill.app.hosts import HostReport, LabReport
    from opsdrill.cli.output import Output

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look at the hosts of a lab.")

Lab = Annotated[
    str | None,
    typer.Option("--lab", metavar="LAB", help="A lab file, a lab's name, or a driver's name."),
]
Driver = Annotated[
    str | None,
    typer.Option(
        "--driver", metavar="DRIVER", help="A driver; the lab file here counts if it is for it."
    ),
]

COLUMNS = ("connection", "login", "shell", "clock")
"""The findings that have a column of their own."""


@app.command()
def check(
    context: typer.Context,
    *,
    lab: Lab = None,
    driver: Driver = None,
    format: Annotated[
        PageFormat, typer.Option("--format", help="How the findings are written.")
    ] = "table",
) -> int:
    """Log in to every host of a lab and tell what works there.

    Nothing is changed on the hosts. Exits with 3 when one of them does not answer, with 2 when
    the lab cannot work here at all.
    """
    from opsdrill.app import hosts as use_case

    told = front(context)
    found = use_case.check(told.place, lab, driver)
    if format == "json":
        told.out.document(use_case.document(found))
    else:
        _show(told.out, found)
    if found.go_on is not None:
        told.out.note("there is no lab file here, so no machine to log in to")
        told.out.hint(f"for machines of your own: {shown(found.go_on)}")
    if not found.usable:
        return INVALID
    return PASSED if all(host.answers for host in found.hosts) else ERROR


def _show(out: Output, found: LabReport) -> None:
    if not found.hosts:
        lab = "by default" if found.go_on is not None else f"lab {shown(found.lab.name)}"
        made = ", hosts are made for each run" if found.made and found.usable else ""
        out.line(f"{lab}, driver {shown(found.lab.driver)}{made}:")
        show_findings(out, found)
        return
    findings = (Column(name.upper(), "shorten") for name in COLUMNS)
    out.table(
        [
            Column("HOST"),
            Column("ADDRESS", "shorten"),
            Column("ANSWERS"),
            *findings,
            Column("MISSING", "drop"),
        ],
        [_row(host) for host in found.hosts],
        none="no hosts",
    )
    for host in found.hosts:
        for finding in host.findings:
            if not finding.good:
                out.line(f"{shown(host.name)}: {finding.what}: {shown(finding.detail)}")
                if finding.remedy:
                    out.line(f"  to mend it: {shown(finding.remedy)}")


def _row(host: HostReport) -> list[str]:
    cells = dict.fromkeys(COLUMNS, "-")
    missing = []
    for finding in host.findings:
        if finding.what in cells:
            cells[finding.what] = (finding.detail or "ok") if finding.good else "no"
        elif not finding.good:
            missing.append(finding.what)
    answers = "yes" if host.answers else "no"
    return [host.name, host.address, answers, *cells.values(), ", ".join(missing) or "-"]


@app.command()
def leases(
    context: typer.Context,
    format: Annotated[
        PageFormat, typer.Option("--format", help="How the list is written.")
    ] = "table",
) -> None:
    """List which runs hold lasting hosts, and which wait for them."""
    from opsdrill.app import hosts as use_case

    told = front(context)
    found = use_case.leases(told.place)
    if format == "json":
        told.out.document(use_case.leases_document(found))
        return
    told.out.table(
        [
            Column("HOSTS", "shorten"),
            Column("RUN"),
            Column("STATE"),
            Column("SINCE"),
            Column("HOLDER", "drop"),
        ],
        [
            [
                ", ".join(lease.hosts.values()),
                lease.run,
                use_case.state(lease),
                f"{lease.since:%Y-%m-%d %H:%M:%S}Z",
                lease.holder,
            ]
            for lease in found
        ],
        none="no host is held",
    )


@app.command()
def conformance(
    context: typer.Context,
    *,
    lab: Lab = None,
    driver: Driver = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Hosts that last may be written to; all is undone.")
    ] = False,
    format: Annotated[
        PageFormat, typer.Option("--format", help="How the outcomes are written.")
    ] = "table",
) -> int:
    """Try on a lab's driver what every driver must keep.

    For those who write a driver. Hosts that are made for it are broken and thrown away; hosts that
    last take --yes. Exits with 1 when a check failed.
    """
    from opsdrill.app import conformance as use_case

    told = front(context)
    with told.out.console().status("the driver is looked at") as status:
        found = use_case.conformance(
            told.place, lab, driver, confirmed=yes, tell=lambda line: status.update(shown(line))
        )
    if format == "json":
        told.out.document(use_case.document(found))
    else:
        _show_outcomes(told.out, found)
    return PASSED if found.kept else FAILED


def _show_outcomes(out: Output, found: ConformanceReport) -> None:
    out.table(
        [Column("CHECK"), Column("OUTCOME"), Column("SENTENCE", "shorten")],
        [[outcome.check.id, outcome.result, outcome.check.sentence] for outcome in found.outcomes],
        none="no checks",
    )
    out.line()
    reasons: dict[str, int] = {}
    for outcome in found.outcomes:
        if outcome.result == "failed":
            out.line(f"{outcome.check.id}: {shown(outcome.seen, limit=1000)}")
        elif outcome.result == "not applicable":
            reasons[outcome.seen] = reasons.get(outcome.seen, 0) + 1
    for reason, count in reasons.items():
        out.line(f"not applicable, {count} checks: {shown(reason, limit=1000)}")
    counts = ", ".join(
        f"{found.count(result)} {result}" for result in ("passed", "failed", "not applicable")
    )
    hosts = shown(", ".join(found.hosts))
    out.line(f"driver {shown(found.lab.driver)} on {hosts}: {counts}")
