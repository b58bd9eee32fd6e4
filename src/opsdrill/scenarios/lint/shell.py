"""Just enough of the shell's grammar for checks: quotes, comments, here-documents, pipes."""

from __future__ import annotations

import re

_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|(?:^|(?<=\s))#[^\n]*", re.DOTALL)
_HERE = re.compile(r"<<-?[ \t]*\w")
_PIPE = re.compile(r"(?<![|>])\|&?(?!\|)")
_WATCHED = re.compile(r"\bpipefail\b|\bPIPESTATUS\b|\[\[")
_CASE, _IN = re.compile(r"\bcase\b"), re.compile(r"\bin\b")
_WORD = re.compile(r"\s*(?:[A-Za-z_]\w*=\S*\s+|sudo\s+|!\s+)*(\S+)")


def unquoted(run: str) -> str:
    """The text with everything quoted, escaped or commented out replaced by as many `_`."""
    return _QUOTED.sub(lambda found: "_" * len(found.group()), run)


def last_of_pipe(run: str) -> str | None:
    """The command behind the last pipe of a shell text; None where no pipe decides.

    Quotes, comments and here-documents are looked past; where the text watches the pipe itself
    (`pipefail`, `PIPESTATUS`), or `|` may be something else (`case`, `[[`), nothing is said.
    """
    case = _CASE.search(run)
    if _WATCHED.search(run) or (case is not None and _IN.search(run, case.end())):
        return None
    bare = unquoted(run)
    here = _HERE.search(bare)
    if here is not None and "\n" in bare[here.end() :]:
        bare = bare[: bare.index("\n", here.end())]
    pipes = list(_PIPE.finditer(bare))
    if not pipes:
        return None
    word = _WORD.match(run, pipes[-1].end())
    return word[1] if word else None
