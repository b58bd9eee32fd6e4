"""`script:FILE`: plays an agent from a file. Its commands and files are real, its mind is not."""

from __future__ import annotations

import asyncio
from pathlib import Path

from opsdrill.agents.adapter import AdapterContext, Assignment
from opsdrill.agents.script import (
    Claim,
    Item,
    Mcp,
    Run,
    Say,
    Script,
    ScriptTask,
    ScriptTurn,
    Sleep,
    Update,
    Write,
)
from opsdrill.agents.task import TaskWork
from opsdrill.errors import InvalidInput, Problem, UsageError
from opsdrill.evidence.recorder import Recorder
from opsdrill.model.event import JobCreated, JobEnded, NoJob, Planned, Posted, Resolved
from opsdrill.model.job import Outcome
from opsdrill.model.lab import ROOT
from opsdrill.model.problem import dotted
from opsdrill.scenarios.load import parse_model, read_document


def find_script(context: AdapterContext) -> Path:
    """The script file that the adapter's argument means.

    Raises:
        UsageError: no argument, or no such file in the working or the scenario's folder.
    """
    if not context.argument:
        raise UsageError("the agent `script` needs a file", hint="write it as script:FILE")
    folders = [context.folder or Path(), context.scenario_folder]
    places = dict.fromkeys(folder / context.argument for folder in folders if folder is not None)
    for place in places:
        if place.is_file():
            return place
    looked = " and ".join(str(place) for place in places)
    raise UsageError(f"there is no script {context.argument!r}", hint=f"looked for {looked}")


class ScriptAdapter:
    """Plays a script: the tasks of a turn at the same time, one turn after the other.

    A task whose host does not answer stops there and has failed; the others go on.
    """

    name = "script"

    def __init__(self, context: AdapterContext) -> None:
        self.path = find_script(context)
        self._document = read_document(self.path)
        self._script = parse_model(
            self._document.data, Script, document=self._document, noun="script"
        )

    async def preflight(self, hosts: tuple[str, ...]) -> None:
        known = f"its hosts: {', '.join(hosts)}" if hosts else "it has no hosts"
        wrong = []
        for turn, item in enumerate(self._script.turns):
            for index, task in enumerate(item.tasks):
                if task.host not in hosts:
                    place = ("turns", turn, "tasks", index, "host")
                    said = f"{task.host!r} is no host of the scenario; {known}"
                    problem = Problem(dotted(place), said)
                    wrong.append(self._document.at(problem, self._document.place(place)))
        if wrong:
            raise InvalidInput("the script does not fit the scenario", wrong)

    async def work(self, assignment: Assignment, recorder: Recorder) -> None:
        script = self._script
        if script.no_job is not None:
            recorder.record(NoJob(reason=script.no_job))
            return
        recorder.record(JobCreated(job="job-1"))
        if script.plan is not None:
            recorder.record(Planned(plan=script.plan))
        first = 1
        for number, turn in enumerate(script.turns, start=1):
            await _Turn(assignment, recorder, turn, number, first).play()
            first += len(turn.tasks)
        if script.post is not None:
            recorder.record(Posted(author="agent", body=script.post))
        if script.resolve is not None:
            recorder.record(
                Resolved(resolution=script.resolve.resolution, reasoning=script.resolve.reasoning)
            )
        recorder.record(JobEnded(status="completed"))


class _Turn:
    """One turn; `first` is the number of its first task in the job."""

    def __init__(
        self,
        assignment: Assignment,
        recorder: Recorder,
        turn: ScriptTurn,
        number: int,
        first: int,
    ) -> None:
        self._assignment = assignment
        self._recorder = recorder
        self._turn = turn
        self._number = number
        self._works = [
            TaskWork(
                recorder,
                f"t{first + index}",
                task.host,
                assignment.hosts[task.host],
                assignment.command_seconds,
                user=assignment.users.get(task.host, ROOT),
            )
            for index, task in enumerate(turn.tasks)
        ]

    async def play(self) -> None:
        if self._turn.post is not None:
            self._recorder.record(Posted(author="agent", body=self._turn.post))
        pairs = list(zip(self._works, self._turn.tasks, strict=True))
        rules = self._assignment.operational_rules
        for work, task in pairs:
            work.create(
                self._number, task.description, (*rules, *task.operational_rules), task.agent
            )
        # All start before any of them does a thing: a turn's tasks run at the same time.
        for work in self._works:
            work.start()
        try:
            async with asyncio.TaskGroup() as group:
                for work, task in pairs:
                    group.create_task(_play(work, task))
        except ExceptionGroup as several:
            raise several.exceptions[0] from None
        finally:
            for work in self._works:
                work.cut_short()


async def _play(work: TaskWork, task: ScriptTask) -> None:
    """One task from its first item to its end."""
    with work.crash_reported():
        for item in task.do:
            await _do(work, item)
            if work.silent is not None:
                work.end("failed", "the host does not answer", work.silent)
                return
        work.end(task.end.status, task.end.stop_reason, task.end.summary)


async def _do(work: TaskWork, item: Item) -> None:
    match item:
        case Run():
            await work.run(item.run)
        case Write(write=file):
            await work.write(file.path, file.content, file.mode)
        case Update(update=edit):
            await work.update(edit.path, edit.old, edit.new)
        case Mcp(mcp=call):
            outcome: Outcome = "refused" if call.refuse else "ran"
            work.played("mcp", call.tool, call.arguments, outcome, server=call.server)
        case Say():
            work.say(item.say)
        case Claim():
            work.played("shell", "shell", {"command": item.claim}, "claimed")
        case Sleep():
            await asyncio.sleep(item.sleep)
