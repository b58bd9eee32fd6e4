"""How much work a pattern's sets make for the compiler of `re`, told before it compiles them."""

from __future__ import annotations

import re
import re._constants as op  # type: ignore[import-not-found]
import re._parser as re_parser  # type: ignore[import-not-found]
from typing import Any

_LAST = 0xFFFF  # the compiler takes ranges beyond it as a whole


def set_weight(text: str) -> int:
    """The characters that the ranges of all sets name; the compiler goes through them one by one.

    Raises:
        re.error: and whatever else the parser of `re` raises for a pattern that is none.
    """
    weight = 0
    left: list[Any] = [re_parser.parse(text, re.IGNORECASE)]
    while left:
        node = left.pop()
        if isinstance(node, re_parser.SubPattern):
            left.append(node.data)
        elif isinstance(node, tuple) and len(node) == 2 and node[0] is op.RANGE:
            low, high = node[1]
            weight += max(0, min(high, _LAST) - low + 1)
        elif isinstance(node, (list, tuple)):
            left.extend(node)
    return weight
