"""What a reader of a grade should know that no rule says."""

from __future__ import annotations

from opsdrill.grading.explain import counted
from opsdrill.grading.gaps import all_gaps
from opsdrill.model.rules import PatternMatch
from opsdrill.model.scenario import Scenario
from opsdrill.model.sealed import AnyRecord


def warnings_of(scenario: Scenario, record: AnyRecord) -> tuple[str, ...]:
    """One sentence each, in a fixed order."""
    return (*_claimed(record), *all_gaps(record.coverage), *_isolation(record), *_plans(scenario))


def _claimed(record: AnyRecord) -> list[str]:
    claimed = [
        call.kind for task in record.tasks for call in task.tool_calls if call.outcome == "claimed"
    ]
    commands = claimed.count("shell")
    found = []
    if commands:
        was = "was" if commands == 1 else "were"
        found.append(f"{counted(commands, 'command')} {was} claimed but never seen")
    if others := len(claimed) - commands:
        was = "was" if others == 1 else "were"
        found.append(f"{counted(others, 'other tool call')} {was} claimed but never seen")
    return found


def _isolation(record: AnyRecord) -> list[str]:
    if record.isolation != "none":
        return []
    return ["the agent was not isolated from this machine: it may have seen the rules"]


def _plans(scenario: Scenario) -> list[str]:
    return [
        f"rule {index} looks at `task_plan`, which never has a value"
        for index, rule in enumerate(scenario.validation)
        if isinstance(rule, PatternMatch) and rule.where == "task_plan"
    ]
