"""Write kept runs in the formats of other tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from opsdrill import __version__
from opsdrill.app import documents
from opsdrill.app.history import evidence_in, kept_runs, whole_id
from opsdrill.app.wiring import Place
from opsdrill.errors import UnknownName, UsageError
from opsdrill.evidence.exporters import atif
from opsdrill.model.job import JobRecord
from opsdrill.model.run import RunSpec
from opsdrill.store.store import Store


@dataclass(frozen=True, slots=True)
class Exported:
    """One run in another format.

    Args:
        name: of a file for it.
        content: the whole file.
    """

    name: str
    content: bytes


def _job(_spec: RunSpec, record: JobRecord) -> bytes:
    return documents.of_model(record)


def _atif(spec: RunSpec, record: JobRecord) -> bytes:
    made = atif.atif(record, session=spec.id, agent=str(spec.agent), version=__version__)
    return atif.written(made)


_FORMATS: dict[str, tuple[str, Callable[[RunSpec, JobRecord], bytes]]] = {
    "job": (".job.json", _job),
    "atif": (".atif.json", _atif),
}
FORMATS = tuple(_FORMATS)

Writer = Callable[[Place, Store, str], bytes]
"""Writes a run by its whole id."""


def export(
    place: Place, runs: Sequence[str], to: str, beside: Mapping[str, Writer] | None = None
) -> Iterator[Exported]:
    """Runs in a format, in the order named.

    Args:
        place: where they are kept.
        runs: their ids, or how they begin.
        to: the format.
        beside: further formats, each with what writes it; the name is that of its files too.

    Raises:
        UnknownName: there is no such format.
        UsageError: no run's id begins like this, or several do.
    """
    more = beside or {}
    if to not in _FORMATS and to not in more:
        raise UnknownName("export format", to, (*FORMATS, *more))
    with kept_runs(place) as store:
        for name in [whole_id(store, run) for run in runs]:
            file = re.sub(r"[^\w.-]", "_", name, flags=re.ASCII)
            if to in more:
                yield Exported(f"{file}.{to}", more[to](place, store, name))
                continue
            suffix, write = _FORMATS[to]
            content = write(store.get(name).spec, evidence_in(store, name))
            yield Exported(f"{file}{suffix}", content)


def write(made: Exported, folder: Path, *, over: bool) -> Path:
    """Write a run into a folder, which is made where it is not there; gives the file.

    Args:
        over: write over a file that is there already.

    Raises:
        UsageError: the file is there already, or the folder is none.
        OSError: it cannot be written.
    """
    path = folder / made.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError(
            f"{folder} is no folder, and is not written over", hint="name another --output DIR"
        ) from None
    try:
        with path.open("wb" if over else "xb") as file:
            file.write(made.content)
    except FileExistsError:
        raise UsageError(
            f"{path} is there already", hint="--force writes over it, or name another --output DIR"
        ) from None
    return path
