"""What became of a call, where only the text of its result can tell."""

from __future__ import annotations

import re

from opsdrill.model.job import Outcome

_NEAR = 2_000
"""Characters at either end of a result that are looked at."""
_FIRST = re.compile(
    r"\s*(?:(?:Error: )?Exit code:? (-?\d{1,5})\b|<returncode>(-?\d{1,5})</returncode>)"
)
_LAST = re.compile(
    r"^\[exit_code\] (-?\d{1,5})$|\[The command completed with exit code (-?\d{1,5})\.|"
    r"\bProcess exited with code (-?\d{1,5})\b",
    re.MULTILINE,
)
_TIMED_OUT = re.compile(
    r"(?:Error: )?Command timed out after |\[The command timed out after |"
    r"\[The command has no new output after "
)


def outcome_in(result: str, *, shell: bool) -> tuple[Outcome, int | None]:
    """The outcome of a call and the exit status of a command, as its result tells them.

    Nothing is taken for refused: whoever can choose what a command prints could hide it so.
    """
    first, last = result[:_NEAR], result[-_NEAR:]
    if not shell:
        failed = last.rstrip().endswith("[error] tool reported failure")
        return ("failed" if failed else "ran"), None
    if _TIMED_OUT.match(first) or _TIMED_OUT.search(last):
        return "timed_out", None
    told = _FIRST.match(first)
    for match in _LAST.finditer(last) if told is None else ():
        told = match
    code = next((group for group in told.groups() if group), None) if told else None
    return "ran", int(code) if code is not None else None
