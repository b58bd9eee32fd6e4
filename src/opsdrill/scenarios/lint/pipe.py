"""OD014: a pipe in a check, whose exit status is that of its last command alone.

`curl -s URL | cat` succeeds when curl fails. Where the last command is one that decides
(`grep`, `test`, ...) the pipe is usually meant, and only a note is given.
"""

from __future__ import annotations

from collections.abc import Iterator

from opsdrill.model.problem import Location
from opsdrill.model.rules import HostState
from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint.check import Finding
from opsdrill.scenarios.lint.shell import last_of_pipe

_DECIDES = frozenset(
    {"grep", "egrep", "fgrep", "rg", "awk", "diff", "cmp", "test", "[", "jq", "python3", "perl"}
)


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


def _checks(scenario: Scenario) -> Iterator[tuple[Location, str]]:
    for index, check in enumerate(scenario.ready):
        yield ("ready", index, "run"), check.run
    for index, rule in enumerate(scenario.validation):
        if isinstance(rule, HostState):
            yield ("validation", index, "run"), rule.run
