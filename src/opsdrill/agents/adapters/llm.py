"""`llm:MODEL`: the built-in agent that works on several hosts with a model of any provider.

Its room needs the extra `llm`, and a second to load: it is loaded when a job begins, like anything
that is plugged in.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from opsdrill.agents.adapter import AdapterContext, Assignment
from opsdrill.errors import AgentUnavailable, UsageError
from opsdrill.evidence.recorder import Recorder

if TYPE_CHECKING:
    from opsdrill.agents.llm.job import LlmJob

_TEST = "test"
"""A model that needs no provider: it calls every tool once, with made-up arguments."""


class LlmAdapter:
    """Works a ticket by a planner and one agent a task.

    Attributes:
        waits: seconds before each further try when the provider refuses.
    """

    name = "llm"
    keeps = frozenset({"base_url", "token", "budgets", "deny", "mcp_servers"})
    waits: tuple[float, ...] = (1.0, 4.0, 15.0)

    def __init__(self, context: AdapterContext) -> None:
        model = (context.argument or "").strip()
        if not model:
            raise UsageError("the agent `llm` needs a model", hint="write it as llm:PROVIDER:MODEL")
        by_provider = context.settings.base_url is None and model != _TEST
        provider, colon, rest = model.partition(":")
        if by_provider and not (provider and colon and rest):
            raise UsageError(
                f"the model {model!r} names no provider",
                hint="write it as llm:PROVIDER:MODEL, or give the agent a `base_url` in a file",
            )
        if context.settings.token is not None and context.settings.base_url is None:
            raise UsageError(
                "`token` is for the server at `base_url`, and there is none",
                hint="a provider finds its login in the environment",
            )
        self._model = model
        self._settings = context.settings
        self._folder = context.folder or Path()

    async def preflight(self, hosts: tuple[str, ...]) -> None:  # noqa: ARG002
        self._job()

    async def hello(self) -> str:
        """The model that answers, having been asked. Raises as `preflight` and `work` do."""
        return f"the model {await self._job().hello()}"

    async def work(self, assignment: Assignment, recorder: Recorder) -> None:
        await self._job().work(assignment, recorder)

    def _job(self) -> LlmJob:
        try:
            room = import_module("opsdrill.agents.llm.job")
        except ModuleNotFoundError as error:
            raise AgentUnavailable(
                f"the agent `llm` needs a package that is not installed: {error.name}",
                hint="pip install 'opsdrill[llm]'",
            ) from error
        job: LlmJob = room.LlmJob(self._model, self._settings, self._folder, waits=self.waits)
        return job
