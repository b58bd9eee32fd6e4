"""Keep the recorded jobs of a file that a caller sent as runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from opsdrill.app.imports import Kept, Known, Order, Refused, keep_in
from opsdrill.app.patience import patient
from opsdrill.app.uploads import Upload, check_entries, told, told_as
from opsdrill.app.wiring import Place
from opsdrill.errors import InvalidInput, Problem
from opsdrill.runner.tools import new_run_id
from opsdrill.scenarios.load import LoadedScenario
from opsdrill.store.store import Store

SECONDS = 300.0
"""How long a caller waits for slow patterns."""


@dataclass(frozen=True, slots=True)
class Told:
    """How a file is read.

    Args:
        name: what the sender calls it; kept as the label `file`.
        host: the host of whatever names none.
        split_ssh: take `ssh HOST COMMAND` for a command of that host.
        again: keep once more what was kept before.
    """

    name: str
    host: str | None = None
    split_ssh: bool = False
    again: bool = False


@dataclass(frozen=True, slots=True)
class KeptRecords:
    """What became of a file.

    Args:
        batch: what the new runs have in common.
        kept: the jobs that are runs now.
        known: those that were runs already.
        refused: why the rest could not be read.
    """

    batch: str
    kept: list[Kept] = field(default_factory=list)
    known: list[Known] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


def keep_upload(
    place: Place, store: Store, upload: Upload, loaded: LoadedScenario | None, said: Told
) -> KeptRecords:
    """Keep every job of a file as a run.

    Args:
        loaded: the scenario that they are graded by; None: they are kept without rules.

    Raises:
        InvalidInput: nothing of the file can be read.
        UsageError: the scenario has no such host.
    """
    order = Order(
        [upload.path],
        host=said.host,
        split_ssh=said.split_ssh,
        again=said.again,
        name=said.name,
    )
    found = KeptRecords(new_run_id())
    with told_as(upload, said.name):
        check_entries(upload.path)
        with patient(SECONDS, "grading") as searcher:
            for one in keep_in(
                place, order, loaded, store=store, searcher=searcher, batch=found.batch
            ):
                _add(found, one, upload, said.name)
    if not found.kept and not found.known:
        before = f"transcript: {said.name}: "
        problems = [Problem("", why.removeprefix(before)) for why in found.refused]
        raise InvalidInput(f"{said.name} is refused", problems)
    return found


def _add(found: KeptRecords, one: Kept | Known | Refused, upload: Upload, name: str) -> None:
    if isinstance(one, Kept):
        found.kept.append(one)
    elif isinstance(one, Known):
        found.known.append(one)
    else:
        found.refused.append(told(one.reason, upload, name))
