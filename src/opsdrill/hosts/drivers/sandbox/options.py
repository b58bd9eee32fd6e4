"""The lab's options for the sandbox."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from opsdrill.errors import UsageError

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_SIZE = re.compile(r"([0-9]{1,15})([KMG]?)")
_SMALLEST = 4 << 20


@dataclass(frozen=True, slots=True)
class Options:
    """How much one host may take.

    Attributes:
        size: bytes for its files, which lie in memory.
        processes: how many it may have at once.
        memory: bytes of memory of its processes and files, where the kernel lets it be bounded.
    """

    size: int = 128 << 20
    processes: int = 512
    memory: int = 1 << 30


def parse_options(given: Mapping[str, str]) -> Options:
    """The options as numbers.

    Raises:
        UsageError: an option that does not exist, or a value that cannot be.
    """
    for name in sorted(given):
        if name not in ("size", "processes", "memory"):
            raise UsageError(
                f"the sandbox driver has no option {name!r}", hint="it has: size, processes, memory"
            )
    default = Options()
    return Options(
        size=_bytes("size", given) if "size" in given else default.size,
        processes=_count(given["processes"]) if "processes" in given else default.processes,
        memory=_bytes("memory", given) if "memory" in given else default.memory,
    )


def _bytes(name: str, given: Mapping[str, str]) -> int:
    match = _SIZE.fullmatch(given[name].strip().upper())
    size = int(match[1]) * _UNITS[match[2]] if match else 0
    if size < _SMALLEST:
        raise UsageError(
            f"sandbox option {name}: {given[name]!r} is no size of at least 4M",
            hint="write it like 128M or 1G",
        )
    return size


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 7 and int(text) >= 8):
        raise UsageError(f"sandbox option processes: {text!r} is no number of at least 8")
    return int(text)
