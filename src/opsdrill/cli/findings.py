"""One thing that a driver found out, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opsdrill.cli.text import shown

if TYPE_CHECKING:
    from opsdrill.cli.output import Output
    from opsdrill.hosts.driver import Finding


def show_finding(out: Output, finding: Finding) -> None:
    """A line about it, and one about what mends it."""
    unsaid = finding.lab_line is not None
    mark = "ok     " if finding.good else "unsaid " if unsaid else "missing"
    detail = f": {finding.detail}" if finding.detail else ""
    out.line(f"  {mark}  {shown(finding.what + detail)}")
    if finding.remedy and not finding.good:
        way = "to say it" if unsaid else "to get it"
        out.line(f"           {way}: {shown(finding.remedy, limit=1000)}")
