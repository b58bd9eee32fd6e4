"""The folders of this machine, which nobody from afar is told: kept out of sentences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import opsdrill
from opsdrill.app.wiring import Place
from opsdrill.model.result import Phase, Result
from opsdrill.store.store import RunRow


def own_folders(place: Place) -> list[str]:
    """What the folders are called that a sentence of ours might name; the longest first."""
    return folder_names(named_folders(place))


def named_folders(place: Place) -> list[Path]:
    """The folders that a sentence of ours might name: a place's, and where its database listens."""
    named = [place.folder / Path(folder).expanduser() for folder in place.settings.scenarios or ()]
    named += _sockets(place.settings.database_url or "")
    return [place.home, place.folder, Path(opsdrill.__file__).parent, *named]


def _sockets(url: str) -> list[Path]:
    try:
        hosts = parse_qs(urlsplit(url).query).get("host", [])
    except ValueError:
        return []
    return [Path(host) for given in hosts for host in given.split(",") if host.startswith("/")]


def folder_names(folders: Sequence[Path]) -> list[str]:
    """What folders are called in sentences, by any way that leads there; the longest first."""
    found = {str(way).rstrip("/") for folder in folders for way in (folder, folder.resolve())}
    return sorted(found - {""}, key=len, reverse=True)


def without_paths(text: str, names: Sequence[str]) -> str:
    """A sentence in which no folder of this machine is named; what is in them keeps its name."""
    for name in names:
        if name in text:
            text = re.sub(rf"(?<![\w./-]){re.escape(name)}/", "", text)
            text = re.sub(
                rf"(?<![\w./-]){re.escape(name)}(?![\w-])", "a folder of the server", text
            )
    return text


def told_phase(phase: Phase, names: Sequence[str]) -> Phase:
    """A phase as those from afar are told of it."""
    if phase.reason is None:
        return phase
    return phase.model_copy(update={"reason": without_paths(phase.reason, names)})


def told_row(row: RunRow, names: Sequence[str]) -> RunRow:
    """A row of a listing as those from afar are told of it."""
    reason = without_paths(row.reason, names)
    return row if reason == row.reason else replace(row, reason=reason)


def told_result(result: Result, names: Sequence[str]) -> Result:
    """A result as those from afar are told of it. What hosts and agents said stays as it is."""
    return result.model_copy(
        update={
            "reason": without_paths(result.reason, names),
            "warnings": tuple(without_paths(line, names) for line in result.warnings),
            "phases": tuple(told_phase(phase, names) for phase in result.phases),
        }
    )
