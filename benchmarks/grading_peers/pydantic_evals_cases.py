"""pydantic-evals: a case for each stored record, an evaluator for each rule.

    pydantic_evals_cases.py RECORDS RUNS RESULT

`RECORDS` holds one JSON record a line, read with the standard library, which was faster than a data
set file of its own. The task that is evaluated only looks the record up.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.grading_peers.jobs import RULES, values
from pydantic_evals import Case, Dataset  # type: ignore[import-not-found]
from pydantic_evals.evaluators import (  # type: ignore[import-not-found]
    Evaluator,
    EvaluatorContext,
)

Values = dict[str, list[str]]


@dataclass
class Searched(Evaluator[int, Values, Any]):  # type: ignore[misc]
    where: str
    pattern: str
    negate: bool
    compiled: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.compiled = re.compile(self.pattern, re.IGNORECASE)

    def evaluate(self, ctx: EvaluatorContext[int, Values, Any]) -> bool:
        return any(map(self.compiled.search, ctx.output[self.where])) != self.negate


def main() -> None:
    count = int(sys.argv[2])
    with Path(sys.argv[1]).open("rb") as lines:
        stored = [values(json.loads(line)) for line in islice(lines, count)]

    async def look_up(number: int) -> Values:
        return stored[number]

    dataset = Dataset[int, Values, Any](
        name="slow-shop",
        cases=[Case(name=str(number), inputs=number) for number in range(count)],
        evaluators=[Searched(rule.where, rule.pattern, rule.negate) for rule in RULES],
    )
    report = dataset.evaluate_sync(look_up, progress=False)
    assert not report.failures
    passed = sum(found.value for case in report.cases for found in case.assertions.values())
    Path(sys.argv[3]).write_text(json.dumps({"passed": passed}))


if __name__ == "__main__":
    main()
