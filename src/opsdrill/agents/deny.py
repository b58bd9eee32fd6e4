"""The deny-list: patterns of commands that are refused before they run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from opsdrill.patterns import BoundedSearcher, compile_pattern


class DenyList:
    """Refuses commands. Close it after use.

    Args:
        patterns: in the dialect of the rules; each is searched in the whole command.

    Raises:
        InvalidPattern: one of them does not compile.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = [compile_pattern(text) for text in patterns]
        self._searcher = BoundedSearcher(1.0)

    async def refuses(self, command: str) -> str | None:
        """Why a command may not run, or None. What cannot be decided in time may not run."""
        for pattern in self._patterns:
            searched = await asyncio.to_thread(self._searcher.search, pattern, (command,))
            if searched.exhausted:
                return f"it took too long to see whether {pattern.text} forbids it"
            if searched.spans[0] is not None:
                return f"forbidden by the operator: {pattern.text}"
        return None

    def close(self) -> None:
        self._searcher.close()
