"""The store of a place, for the use cases that keep something or look at what is kept.

No other may import this: it takes as long to load as all that `grade` and `lint` do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from opsdrill.app.wiring import Place
from opsdrill.store.home import open_store
from opsdrill.store.schema import VERSIONS
from opsdrill.store.store import Store


def opener(place: Place) -> Callable[[], Store]:
    """What opens the store of a place, in this process or another."""
    return partial(open_store, place.home, place.settings.database_url)


@contextmanager
def opened_store(place: Place) -> Iterator[Store]:
    """The store of a place, closed in the end.

    Raises:
        StoreTooNew: a later OpsDrill wrote it.
        StoreError: it cannot be opened; says why.
    """
    store = opener(place)()
    try:
        yield store
    finally:
        store.close()


def upgraded_store(place: Place) -> str:
    """Make the store, or bring it up to date, as opening it does; gives its version.

    Raises:
        StoreTooNew, StoreError: as `opened_store`.
    """
    with opened_store(place):
        return VERSIONS[-1]
