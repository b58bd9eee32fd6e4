"""OD014: a pipe in a check, whose exit status is that of its last command alone.

`curl -s URL | cat` succeeds when curl fails. Where the last command is one that decides
(`grep`, `test`, ...) the pipe is usually meant, and only a note is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opsdrill.model.problem import Location
from opsdrill.model.rules import HostState
from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint.check import Finding

_DECIDES = frozenset(
    {"grep", "egrep", "fgrep", "rg", "awk", "diff", "cmp", "test", "[", "jq", "python3", "perl"}
)
_WORD = re.compile(r"\s*(?:[A-Za-z_]\w*=\S*\s+|sudo\s+|!\s+)*(\S+)")
_QUOTED = re.compile(r"'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|(?:^|(?<=\s))#[^\n]*", re.DOTALL)
_PIPE = re.compile(r"(?<![|>])\|&?(?!\|)")
_SEES = re.compile(r"\bpipefail\b|\bPIPESTATUS\b|\bcase\b.*\bin\b|\[\[", re.DOTALL)
_HERE = re.compile(r"(<<-?[ \t]*\w+[^\n]*)\n.*", re.DOTALL)


class PipeInCheck:
    code = "OD014"

    def __call__(self, scenario: Scenario) -> Iterator[Finding]:
        for location, run in _checks(scenario):
            last = last_of_pipe(run)
            if last is not None:
                decides = last in _DECIDES
                yield Finding(
                    location,
                    f"has a pipe: only the exit status of `{last}` counts, whatever becomes of the "
                    "commands before it",
                    "run them one after the other, or start with `set -o pipefail;` where the "
                    "host has bash",
                    severity="note" if decides else "warning",
                )


def last_of_pipe(run: str) -> str | None:
    """The command behind the last pipe of a shell text; None where no pipe decides.

    Quotes, comments and here-documents are looked past; where the text watches the pipe itself
    (`pipefail`, `PIPESTATUS`), or `|` may be something else (`case`, `[[`), nothing is said.
    """
    if _SEES.search(run):
        return None
    bare = _HERE.sub(r"\1", _QUOTED.sub(lambda found: "_" * len(found.group()), run))
    pipes = list(_PIPE.finditer(bare))
    if not pipes:
        return None
    end = pipes[-1].end()
    word = _WORD.match(run[end:])
    return word[1] if word else None


def _checks(scenario: Scenario) -> Iterator[tuple[Location, str]]:
    for index, check in enumerate(scenario.ready):
        yield ("ready", index, "run"), check.run
    for index, rule in enumerate(scenario.validation):
        if isinstance(rule, HostState):
            yield ("validation", index, "run"), rule.run
