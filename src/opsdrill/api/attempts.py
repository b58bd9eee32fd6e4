"""How often an address tried a secret that lets nobody in; past a number it has to wait."""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable

FAILURES = 10
"""Secrets that an address may get wrong within `SECONDS`."""
SECONDS = 60.0
ADDRESSES = 10_000
"""Addresses that are remembered; past them the one that failed longest ago is forgotten."""

MOST_NAME = 100
"""Characters of what is no address, as a proxy may say."""


class Attempts:
    """Counts failures by address, in bounded memory. Used on the loop's thread alone.

    A token that was right from an address goes on there, whatever else fails from it: behind one
    address there may be many, and one of them shall not shut out the others.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._right: OrderedDict[tuple[str, str], None] = OrderedDict()

    def wait(self, address: str) -> int:
        """Whole seconds until the address may try a secret again; 0: it may."""
        failures = self._failures.get(address)
        if failures is None:
            return 0
        now = self._clock()
        while failures and failures[0] <= now - SECONDS:
            failures.popleft()
        if not failures:
            del self._failures[address]
        if len(failures) < FAILURES:
            return 0
        return max(1, math.ceil(failures[0] + SECONDS - now))

    def failed(self, address: str) -> None:
        """The address tried a secret that nobody has."""
        failures = self._failures.setdefault(address, deque(maxlen=FAILURES))
        failures.append(self._clock())
        self._failures.move_to_end(address)
        if len(self._failures) > ADDRESSES:
            self._failures.popitem(last=False)

    def right(self, address: str, secret: str) -> None:
        """A secret, by its hash, was right from this address."""
        self._right[address, secret] = None
        self._right.move_to_end((address, secret))
        if len(self._right) > ADDRESSES:
            self._right.popitem(last=False)

    def was_right(self, address: str, secret: str) -> bool:
        """Whether a secret, by its hash, was right from this address before."""
        return (address, secret) in self._right


def counted_address(host: str | None) -> str:
    """The address that failures are counted for: of IPv6 the network that one site is given."""
    try:
        address = ipaddress.ip_address(host or "")
    except ValueError:
        return (host or "")[:MOST_NAME]
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((int(address), 64), strict=False))
