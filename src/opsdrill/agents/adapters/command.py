"""`command:CMD`: any program of this machine, in a room of its own, behind the recording gateway.

    command:'./my-agent.sh --fast'     a program and its arguments, as a shell splits them
    command:'@codex --model NAME'      a well-known program by the name of its preset

The rest is loaded when a job begins: the gateway takes long to load.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from opsdrill.agents.adapter import AdapterContext, Assignment
from opsdrill.agents.command.surroundings import passed, path_of, read_program
from opsdrill.errors import OpsDrillError, UsageError
from opsdrill.evidence.recorder import Recorder

if TYPE_CHECKING:
    from opsdrill.agents.command.job import CommandJob


class CommandAdapter:
    """Starts a program with the ticket, and sees to it that nothing of it is left."""

    name = "command"
    keeps = frozenset({"budgets", "deny", "environment", "transcript"})

    def __init__(self, context: AdapterContext) -> None:
        self._context = context
        self._program = read_program(context.argument)
        budgets = context.settings.budgets
        unkept = [key for key in ("tokens", "cost_usd", "tasks") if getattr(budgets, key, None)]
        if unkept:
            raise UsageError(
                f"the agent `command` cannot keep to a budget of {unkept[0]}",
                hint="nobody sees what a program uses up before it ends; give it `seconds`",
            )

    async def preflight(self, hosts: tuple[str, ...]) -> None:  # noqa: ARG002
        path_of(self._program, self._context.folder or Path())
        passed(self._program, self._context.settings.environment)

    async def work(self, assignment: Assignment, recorder: Recorder) -> None:
        job: CommandJob = import_module("opsdrill.agents.command.job").CommandJob(
            self._program, self._context
        )
        try:
            await job.work(assignment, recorder)
        except OpsDrillError:
            raise
        except Exception as error:
            # The agent is another program, so that this is no crash of its own.
            raise OpsDrillError(
                f"the adapter `command` failed: {type(error).__name__}: {error}",
                hint="this is a defect of OpsDrill: please report it",
            ) from error
