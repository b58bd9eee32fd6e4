"""The store of a place, for the use cases that keep something or look at what is kept.

No other may import this: it takes as long to load as all that `grade` and `lint` do.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opsdrill.app.wiring import Place
from opsdrill.store.home import open_store
from opsdrill.store.schema import VERSIONS
from opsdrill.store.store import Store


@contextmanager
def opened_store(place: Place) -> Iterator[Store]:
    """The store of the data folder, closed in the end.

    Raises:
        StoreTooNew: a later OpsDrill wrote it.
        StoreError: it cannot be opened; says why.
    """
    store = open_store(place.home)
    try:
        yield store
    finally:
        store.close()


def upgrade(place: Place) -> str:
    """Bring the store up to date, or make it; returns its version. Raises as `opened_store`."""
    with opened_store(place):
        return VERSIONS[-1]
