"""What a run works with: everything that is not part of the run itself."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from opsdrill.agents.adapter import ADAPTERS, Adapter
from opsdrill.evidence.mask import Mask
from opsdrill.hosts.driver import Driver
from opsdrill.model.run import LabChoice
from opsdrill.patterns import Searcher
from opsdrill.runner.archive import Archive
from opsdrill.runner.engine import RunEvent
from opsdrill.runner.leases import LeaseKeeper
from opsdrill.store.store import Owner


def new_run_id() -> str:
    """An id for a new run: the moment, so that ids sort by age, and eight random digits."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(4)}"


def _unheard(_event: RunEvent) -> None:
    """Nobody listens."""


def only_tokens(_lab: LabChoice) -> Mask:
    """The mask where no secret is known by name."""
    return Mask()


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class RunTools:
    """What a run works with.

    Args:
        archive: the store, from its worker thread.
        driver: the driver of a lab; made once for a process, so the same lab gives the same one.
        searcher: finds patterns in evidence, with bounds; used from several threads.
        owner: this process, as the store remembers it.
        adapter: the class of an adapter by name; raises UnknownName.
        publish: told what happens, on the loop's thread; must be quick and must not raise.
        clock: the present moment, with an offset.
        new_id: gives ids for runs that the runner plans itself.
        leases: keeps lasting hosts for one run at a time; None where nobody else uses them.
        mask: what is masked in all that is kept of a lab's runs.
        files: support files that the store has in their masked form only, by the digest of
            their true content, which is what hosts are given.
        home: the data folder, which agents on this machine must not see; what they leave behind
            is kept in it. None: there is none, and nothing of that is kept.
    """

    archive: Archive
    driver: Callable[[LabChoice], Driver]
    searcher: Searcher
    owner: Owner
    adapter: Callable[[str], type[Adapter]] = ADAPTERS.get
    publish: Callable[[RunEvent], None] = _unheard
    clock: Callable[[], datetime] = _now
    new_id: Callable[[], str] = new_run_id
    leases: LeaseKeeper | None = None
    mask: Callable[[LabChoice], Mask] = only_tokens
    files: Mapping[str, bytes] = field(default_factory=dict)
    home: Path | None = None
