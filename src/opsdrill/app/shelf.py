"""The scenarios that are kept in the store, as scenarios like those of files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from opsdrill.app.stores import opened_store
from opsdrill.app.wiring import Place
from opsdrill.errors import StoreDamaged
from opsdrill.model.run import StoredFile
from opsdrill.scenarios.document import Document
from opsdrill.scenarios.load import LoadedScenario
from opsdrill.scenarios.text import as_data
from opsdrill.store.shelf import KeptScenario
from opsdrill.store.store import Store


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A support file that lies in the store."""

    store: Store
    stored: StoredFile

    @property
    def source(self) -> str:
        return self.stored.source

    @property
    def digest(self) -> str:
        return self.stored.digest

    @property
    def size(self) -> int:
        return self.stored.size

    def read(self) -> bytes:
        """The content. Raises StoreDamaged where it is lost."""
        try:
            return self.store.file(self.stored.digest)
        except KeyError:
            raise StoreDamaged(f"the support file {self.source!r} is lost") from None


def loaded(store: Store, kept: KeptScenario) -> LoadedScenario:
    """A kept scenario; all files that are kept with it are its support files."""
    return LoadedScenario(
        kept.scenario, None, None, Document(as_data(kept.scenario)), files_of(store, kept)
    )


def files_of(store: Store, kept: KeptScenario) -> dict[str, KeptFile]:
    """The files that are kept with a scenario, by their path in its folder."""
    return {file.source: KeptFile(store, file) for file in kept.files}


def kept_scenarios(store: Store) -> Iterator[LoadedScenario]:
    """The latest version of every scenario in a store."""
    return (loaded(store, kept) for kept in store.shelf().all())


def kept_here(place: Place) -> list[LoadedScenario]:
    """The scenarios in the store of a place, to be looked at: their files cannot be read.

    Raises:
        StoreError: it cannot be opened.
    """
    with opened_store(place) as store:
        return list(kept_scenarios(store))
