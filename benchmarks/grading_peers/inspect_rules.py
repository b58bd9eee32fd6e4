"""The twelve rules as a scorer of Inspect AI, one number for each: 1 where the rule holds."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.grading_peers.jobs import RULES
from inspect_ai.model import ChatMessageAssistant  # type: ignore[import-not-found]
from inspect_ai.scorer import (  # type: ignore[import-not-found]
    Score,
    Scorer,
    Target,
    mean,
    scorer,
)
from inspect_ai.solver import TaskState  # type: ignore[import-not-found]

COMPILED = [(rule, re.compile(rule.pattern, re.IGNORECASE)) for rule in RULES]


@scorer(metrics={"*": [mean()]})  # type: ignore[untyped-decorator]
def rules() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:  # noqa: ARG001
        said = [each for each in state.messages if isinstance(each, ChatMessageAssistant)]
        found = {
            "executed_commands": [
                call.arguments["cmd"] for each in said for call in each.tool_calls or ()
            ],
            "agent_messages": [each.text for each in said if not each.tool_calls],
        }
        return Score(
            value={
                f"rule_{number}": int(any(map(compiled.search, found[rule.where])) != rule.negate)
                for number, (rule, compiled) in enumerate(COMPILED)
            }
        )

    return score
