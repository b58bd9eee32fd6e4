"""The built-in agent's job: plan, turn, plan again, until it is resolved.

first_words   the ticket, told to the planner
next          the planner's next turn, or the resolution
turn          its tasks, all started before any of them works, until the last has ended
turn_words    what became of them, told to the planner
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from pydantic_ai.exceptions import ModelContextWindowExceededError, UnexpectedModelBehavior
from pydantic_ai.messages import ModelMessage, ModelRequest
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.toolsets import AbstractToolset

from opsdrill.agents.adapter import Assignment
from opsdrill.agents.deny import DenyList
from opsdrill.agents.llm.meter import BudgetSpent, Meter, Tally
from opsdrill.agents.llm.planner import NextTurn, Planner, Resolve, first_words, turn_words
from opsdrill.agents.llm.provider import open_model
from opsdrill.agents.llm.refusal import WAITS, tried
from opsdrill.agents.llm.servers import recorded, server_tools
from opsdrill.agents.llm.tools import HostTools
from opsdrill.agents.llm.watched import WatchedModel
from opsdrill.agents.llm.worker import Ended, do_task, instructions
from opsdrill.agents.task import TaskWork
from opsdrill.errors import AgentUnavailable
from opsdrill.evidence.recorder import Recorder
from opsdrill.hosts.secret import Secrets
from opsdrill.model.agent import AgentSettings, Budgets
from opsdrill.model.event import JobCreated, JobEnded, Planned, Posted, Resolved, Used
from opsdrill.model.lab import ROOT

TASKS = 5
"""Tasks that a job may make, unless the budgets say otherwise."""


@dataclass(frozen=True, slots=True)
class Crew:
    """What the tasks of a job work with."""

    model: Model
    meter: Meter
    deny: DenyList
    servers: Mapping[str, AbstractToolset[None]]
    waits: Sequence[float]


class LlmJob:
    """One job of the built-in agent.

    Args:
        name: the name of its model.
        settings: budgets, deny-list, MCP servers, and where the model is.
        folder: where relative paths of the settings start.
        waits: seconds before each further try when the provider refuses.

    Raises:
        AgentUnavailable: the model cannot be used.
        UsageError: a secret cannot be had.
    """

    def __init__(
        self,
        name: str,
        settings: AgentSettings,
        folder: Path,
        *,
        model: Model | None = None,
        waits: Sequence[float] = WAITS,
    ) -> None:
        self._name = name
        self._settings = settings
        self._budgets = settings.budgets or Budgets()
        self._waits = waits
        token = None
        if settings.token is not None:
            token = Secrets({"token": settings.token}, folder).value("token")
        self._model = model or open_model(name, settings.base_url, token)
        self._servers = {
            server: server_tools(server, how, folder)
            for server, how in (settings.mcp_servers or {}).items()
        }

    async def hello(self) -> str:
        """Ask the model for one word; the name of the model that answered.

        Raises:
            AgentUnavailable: the provider refuses.
        """
        asked: list[ModelMessage] = [ModelRequest.user_text_prompt("Answer with the word: ready")]
        async with self._model as model:
            answer = await tried(
                lambda: model.request(asked, None, ModelRequestParameters()), self._waits
            )
        return answer.model_name or self._name

    async def work(self, assignment: Assignment, recorder: Recorder) -> None:
        """Work the ticket to its end.

        Raises:
            AgentUnavailable: the provider refuses, or an MCP server does not start.
        """
        recorder.record(JobCreated(job="job-1"))
        meter = Meter(self._name, self._budgets)
        try:
            async with (
                asyncio.timeout(self._budgets.seconds) as clock,
                AsyncExitStack() as opened,
            ):
                deny = opened.enter_context(closing(DenyList(self._settings.deny)))
                model = await opened.enter_async_context(self._model)
                servers = await self._started(opened)
                crew = Crew(model, meter, deny, servers, self._waits)
                await _Work(crew, assignment, recorder, self._budgets.tasks or TASKS).all()
        except BudgetSpent as error:
            recorder.record(JobEnded(status="timed_out", reason=str(error), fault="agent"))
        except TimeoutError:
            if not clock.expired():
                raise
            reason = f"the budget of {self._budgets.seconds:g} seconds was spent"
            recorder.record(JobEnded(status="timed_out", reason=reason, fault="agent"))

    async def _started(self, opened: AsyncExitStack) -> dict[str, AbstractToolset[None]]:
        started: dict[str, AbstractToolset[None]] = {}
        for name, tools in self._servers.items():
            try:
                started[name] = await opened.enter_async_context(tools)
            except Exception as error:
                raise AgentUnavailable(
                    f"the MCP server {name} cannot be used: {type(error).__name__}: {error}"[:400],
                    hint="try its command, or its address, by hand",
                ) from error
        return started


async def together(work: Sequence[Coroutine[None, None, Ended]]) -> list[Ended]:
    """What all of them end with. The first that fails ends the others, and is what is raised.

    A `TaskGroup` of Python 3.11 would leave its parent marked as cancelled, which pydantic-ai takes
    for a cancellation of everything that follows.
    """
    doing = [asyncio.create_task(one) for one in work]
    try:
        await asyncio.wait(doing, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for one in doing:
            one.cancel()
        await asyncio.gather(*doing, return_exceptions=True)
    for one in doing:
        if not one.cancelled() and (error := one.exception()) is not None:
            raise error
    return [one.result() for one in doing]


class _Work:
    """The turns of one job."""

    def __init__(
        self, crew: Crew, assignment: Assignment, recorder: Recorder, ceiling: int
    ) -> None:
        self._crew = crew
        self._assignment = assignment
        self._recorder = recorder
        self._ceiling = ceiling
        self._made = 0
        self._plan: str | None = None
        watched = WatchedModel(crew.model, crew.meter, self._planner_used, crew.waits)
        self._planner = Planner(watched, list(assignment.hosts), assignment.operational_rules)

    def _planner_used(self, _text: str, tally: Tally) -> None:
        self._recorder.record(Used(task=None, usage=tally.usage()))

    async def all(self) -> None:
        """Every turn, and the resolution."""
        told = first_words(self._assignment.ticket)
        number = 0
        while True:
            try:
                step = await self._planner.next(told, self._ceiling - self._made)
            except (UnexpectedModelBehavior, ModelContextWindowExceededError) as error:
                reason = f"the planner gave no plan that can be followed: {error.message[:500]}"
                self._recorder.record(JobEnded(status="failed", reason=reason, fault="agent"))
                return
            if isinstance(step, Resolve):
                self._resolve(step)
                return
            number += 1
            told = turn_words(number, await self._turn(number, step))

    def _resolve(self, step: Resolve) -> None:
        self._post(step.post or step.reasoning)
        self._recorder.record(Resolved(resolution=step.resolution, reasoning=step.reasoning))
        self._recorder.record(JobEnded(status="completed"))

    def _post(self, text: str) -> None:
        if text.strip():
            self._recorder.record(Posted(author="agent", body=text))

    async def _turn(self, number: int, turn: NextTurn) -> list[tuple[str, str, Ended]]:
        """One turn, from the creation of its tasks to the end of the last."""
        if turn.plan.strip() and turn.plan != self._plan:
            self._plan = turn.plan
            self._recorder.record(Planned(plan=turn.plan))
        self._post(turn.post)
        works = [self._task(task.host) for task in turn.tasks]
        rules = self._assignment.operational_rules
        for (_, work), task in zip(works, turn.tasks, strict=True):
            work.create(number, task.description, rules, agent=self._crew.meter.model)
        for _, work in works:
            work.start()
        try:
            done = await together(
                [
                    self._do(work, task.host, task.description)
                    for (_, work), task in zip(works, turn.tasks, strict=True)
                ]
            )
        except BudgetSpent as error:
            for _, work in works:
                if not work.ended:
                    work.end("timed_out", "a budget was spent", str(error))
            raise
        finally:
            for _, work in works:
                work.cut_short()
        return [
            (id, task.host, ended)
            for (id, _), task, ended in zip(works, turn.tasks, done, strict=True)
        ]

    def _task(self, host: str) -> tuple[str, TaskWork]:
        self._made += 1
        id = f"t{self._made}"
        given = self._assignment
        return id, TaskWork(
            self._recorder,
            id,
            host,
            given.hosts[host],
            given.command_seconds,
            user=given.users.get(host, ROOT),
        )

    async def _do(self, work: TaskWork, host: str, description: str) -> Ended:
        crew = self._crew

        def heard(text: str, tally: Tally) -> None:
            if text:
                work.say(text)
            work.used(tally.usage())

        return await do_task(
            work,
            WatchedModel(crew.model, crew.meter, heard, crew.waits),
            instructions(host, self._assignment.operational_rules),
            description,
            [
                HostTools(work, crew.deny, self._assignment.command_seconds).toolset(),
                *recorded(crew.servers, work),
            ],
        )
