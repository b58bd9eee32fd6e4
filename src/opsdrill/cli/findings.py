"""What drivers found out, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opsdrill.app.safe_text import shown

if TYPE_CHECKING:
    from opsdrill.app.doctor import DriverReport
    from opsdrill.app.hosts import LabReport
    from opsdrill.cli.output import Output


def show_findings(out: Output, report: DriverReport | LabReport) -> None:
    """A line about each thing that a driver as a whole found, and one about what mends it."""
    for finding in report.findings:
        unsaid = finding.lab_line is not None
        mark = "ok     " if finding.good else "unsaid " if unsaid else "missing"
        detail = f": {finding.detail}" if finding.detail else ""
        out.line(f"  {mark}  {shown(finding.what + detail)}")
        if finding.remedy and not finding.good:
            way = "to say it" if unsaid else "to get it"
            out.line(f"           {way}: {shown(finding.remedy, limit=1000)}")
