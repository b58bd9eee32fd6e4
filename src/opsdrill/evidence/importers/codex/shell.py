"""Words of a command that only start a shell."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SHELL = re.compile(r"(?:.*/)?(?:ba|z|da|k)?sh")


def shell_text(words: Sequence[str]) -> str | None:
    """The text that a shell is started with; None: the words do something else."""
    starts = len(words) == 3 and _SHELL.fullmatch(words[0]) and words[1] in ("-lc", "-c")
    return words[2] if starts else None
