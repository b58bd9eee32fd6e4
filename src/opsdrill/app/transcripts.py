"""Recorded jobs in files: our own job records, and whatever an importer knows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from opsdrill.errors import UsageError
from opsdrill.evidence.importers.importer import importer_for
from opsdrill.evidence.mask import Mask
from opsdrill.evidence.masking import masked
from opsdrill.evidence.transcripts.imported import Imported, Placing
from opsdrill.evidence.transcripts.source import Damaged, Source
from opsdrill.model.job import JobRecord
from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.load import load_record

OWN_FORMAT = "job"


def placing_for(scenario: Scenario | None, host: str | None, *, split_ssh: bool) -> Placing:
    """Where commands ran that name no host: where the caller says, else the only host there is.

    Raises:
        UsageError: the scenario has no such host.
    """
    names = scenario.host_names if scenario else ()
    if host is not None and names and host not in names:
        raise UsageError(
            f"the scenario has no host {host!r}", hint=f"its hosts: {', '.join(names)}"
        )
    only = names[0] if len(names) == 1 else None
    return Placing(host or only, split_ssh)


def recorded_jobs(path: Path, placing: Placing, mask: Mask) -> Iterator[Imported]:
    """Every job that a file tells of, without any secret in it.

    Args:
        path: a job record or a transcript.
        placing: where commands ran.
        mask: what is masked.

    Raises:
        UsageError: there is no such file, or nobody says on which host the agent worked.
        InvalidInput: the file is of no format that is known, or nothing of it can be read.
    """
    for imported in _jobs(path, placing):
        yield replace(
            imported,
            name=mask.text(imported.name),
            agent=None if imported.agent is None else mask.text(imported.agent),
            record=masked(mask, imported.record),
            warnings=tuple(map(mask.text, imported.warnings)),
        )


def _jobs(path: Path, placing: Placing) -> Iterator[Imported]:
    source = Source.of(path)
    found = source.glimpse.scalars.get("format")
    if isinstance(found, str) and found.startswith("opsdrill.job/"):
        yield Imported("", OWN_FORMAT, None, load_record(path))
        return
    _, importer = importer_for(source)
    count = 0
    try:
        for imported in importer.read(source, placing):
            count += 1
            yield imported
    except Damaged as error:
        # An importer tells damage in the record; this is a file that could not even be begun.
        raise source.broken(str(error)) from None
    if not count:
        raise source.broken(f"is a {importer.title} file without any job of an agent in it")


def strange_hosts(record: JobRecord, scenario: Scenario) -> list[str]:
    """A warning for each host of a record that the scenario does not have."""
    known = set(scenario.host_names)
    strange = dict.fromkeys(task.host for task in record.tasks if task.host not in known)
    return [f"the scenario has no host {name!r}, on which a task ran" for name in strange]
