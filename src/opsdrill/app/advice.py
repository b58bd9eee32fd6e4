"""What a lab still has to say, and the command that has it say so."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import replace

from opsdrill.app.labs import FILE, blocks
from opsdrill.app.wiring import Place
from opsdrill.hosts.driver import Finding
from opsdrill.model.run import LabChoice


def unsaid(finding: Finding) -> bool:
    """What is missing is a lab's word, and nothing of this machine."""
    return blocks(finding) and finding.lab_line is not None


def advised(place: Place, lab: LabChoice, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings about a lab, where a lab's word is missing with the command that adds it."""
    return tuple(
        replace(finding, remedy=command(place, lab, finding.lab_line))
        if finding.lab_line is not None and not finding.good
        else finding
        for finding in findings
    )


def own_machines(place: Place) -> str:
    """The command that begins a lab of machines that exist."""
    return command(place, LabChoice(name="ssh", driver="ssh"), "hosts: {web-01: ADDRESS}")


def command(place: Place, lab: LabChoice, line: str) -> str:
    """The command that has a lab say one thing more."""
    if lab.lab is not None:
        return f"add `{line}` to the lab file"
    # Neither is a lab file of another driver written over, nor is one written that is not read.
    free = place.settings.lab is None and not (place.folder / FILE).exists()
    name = FILE if free else f"{lab.driver}-{FILE}"
    more = "" if free else f", then `--lab {name}`"
    text = f"driver: {lab.driver}\\n{line}\\n".replace("%", "%%")
    return f"printf {shlex.quote(text)} >{name}{more}"
