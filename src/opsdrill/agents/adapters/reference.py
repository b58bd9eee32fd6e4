"""`reference`: runs the scenario's known right fix, so that what asks hosts must pass.

Rules about how the work is done, such as `turns` at the same time or what is told to the requester,
are not for steps to keep: a script by the book shows those.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from opsdrill.agents.adapter import AdapterContext, Assignment
from opsdrill.agents.task import TaskWork
from opsdrill.errors import AgentUnavailable, InvalidInput, Problem, UsageError
from opsdrill.evidence.recorder import Recorder
from opsdrill.model.event import JobCreated, JobEnded, Planned, Posted, Resolved
from opsdrill.model.host import HostAnswer
from opsdrill.model.scenario import Step

_Numbered = tuple[int, Step]


class ReferenceAdapter:
    """Runs the reference steps in order and stops at the first that does not end as it should.

    Consecutive steps on one host are one task, and every task is a turn of its own. All steps
    right resolves the job with `success`, else with `agentic_failure`.
    """

    name = "reference"

    def __init__(self, context: AdapterContext) -> None:
        if context.argument is not None:
            raise UsageError(
                "the agent `reference` takes no argument", hint="write it as reference"
            )
        self._steps = context.reference

    async def preflight(self, hosts: tuple[str, ...]) -> None:
        if not self._steps:
            raise AgentUnavailable(
                "the scenario has no reference steps to run",
                hint="add `reference` to the scenario, or choose another agent",
            )
        known = f"its hosts: {', '.join(hosts)}" if hosts else "it has no hosts"
        wrong = [
            Problem(
                f"reference[{index}].on", f"{step.on or 'the default host'} is no host; {known}"
            )
            for index, step in enumerate(self._steps)
            if not hosts or (step.on is not None and step.on not in hosts)
        ]
        if wrong:
            raise InvalidInput("the reference does not fit the hosts", wrong)

    async def work(self, assignment: Assignment, recorder: Recorder) -> None:
        recorder.record(JobCreated(job="job-1"))
        recorder.record(Planned(plan="Run the scenario's reference steps in their order."))
        failure = await self._all(assignment, recorder)
        said = failure or "All reference steps ended as they should."
        recorder.record(Posted(author="agent", body=said))
        recorder.record(
            Resolved(
                resolution="agentic_failure" if failure else "success",
                reasoning=said,
                source="adapter",
            )
        )
        recorder.record(JobEnded(status="completed"))

    async def _all(self, assignment: Assignment, recorder: Recorder) -> str | None:
        """Every task, until one fails; why it did, or None."""
        default = next(iter(assignment.hosts))
        numbered = enumerate(self._steps, start=1)
        parts = groupby(numbered, key=lambda item: item[1].on or default)
        for turn, (name, part) in enumerate(parts, start=1):
            work = TaskWork(
                recorder, f"t{turn}", name, assignment.hosts[name], assignment.command_seconds
            )
            failure = await _task(work, turn, list(part), assignment.operational_rules)
            if failure:
                return failure
        return None


async def _task(
    work: TaskWork, turn: int, steps: Sequence[_Numbered], rules: Sequence[str]
) -> str | None:
    """The steps of one task; why it failed, or None."""
    first, last = steps[0][0], steps[-1][0]
    what = f"reference step {first}" if first == last else f"reference steps {first} to {last}"
    work.create(turn, f"Run {what}.", rules)
    work.start()
    try:
        with work.crash_reported():
            for number, step in steps:
                answer = await work.run(step.run, user=step.user or "root", seconds=step.timeout)
                if answer.exit_code != step.exit_code:
                    failure = f"Reference step {number} {_became(answer)}, not {step.exit_code}."
                    work.end("failed", "a step did not end as it should", failure)
                    return failure
            work.end("completed", "done", f"Ran {what}.")
    finally:
        work.cut_short()
    return None


def _became(answer: HostAnswer) -> str:
    if answer.exit_code is not None:
        return f"ended with {answer.exit_code}"
    return f"on {answer.on} ended with no exit status ({answer.reason or 'no answer'})"
