"""OD028: a must-not pattern that matches nothing anywhere in recorded runs.

If no agent ever did what it forbids, that is as it should be; else the pattern is wrong, and only
a run that breaks the rule on purpose can tell.
"""

from __future__ import annotations

from collections.abc import Iterator

from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint.check import Finding, RecordedRuns
from opsdrill.scenarios.lint.sought import sought


class NeverSeen:
    code = "OD028"

    def __call__(self, scenario: Scenario, recorded: RecordedRuns) -> Iterator[Finding]:
        for pattern in sought(scenario):
            if not pattern.negate:
                continue
            seen = recorded.seen(pattern.where, pattern.text)
            if seen.values and not seen.matched and seen.known:
                runs = "1 run" if seen.runs == 1 else f"{seen.runs} runs"
                values = "1 value" if seen.values == 1 else f"{seen.values} values"
                yield Finding(
                    pattern.location,
                    f"forbids what was in none of {values} of `{pattern.where}` in the last {runs}",
                    suggestion="run an agent that does it on purpose, to see the rule fail once",
                    severity="note",
                )
