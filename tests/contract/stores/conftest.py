"""Every store that must keep the contract. Another one is one line here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from opsdrill.store.home import open_store
from opsdrill.store.memory import MemoryStore
from opsdrill.store.store import Store

STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda _: MemoryStore(),
    "sqlite": open_store,
}


@pytest.fixture(params=sorted(STORES))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    opened = STORES[request.param](tmp_path / "home")
    yield opened
    opened.close()
