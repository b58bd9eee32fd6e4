"""One task: a model with tools works on one host until it says that it is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, Field
from pydantic_ai import Agent, ToolOutput, UsageLimits
from pydantic_ai.exceptions import (
    ModelContextWindowExceededError,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
    UserError,
)
from pydantic_ai.models import Model
from pydantic_ai.toolsets import AbstractToolset

from opsdrill.agents.llm.fence import INSTRUCTION
from opsdrill.agents.llm.meter import BudgetSpent
from opsdrill.agents.task import TaskWork
from opsdrill.errors import AgentUnavailable, OpsDrillError
from opsdrill.model.job import TaskStatus

REQUESTS = 100
"""Requests to its model that one task may make."""

_ROLE = """\
You are one of several agents that operate servers together. You work on one task, on the one host
{host}. A planner gave you the task; others work on other hosts at the same time.
Do exactly the task, no more. Look before you change something, and check what you changed.
Call `finish` when the task is done, or when it cannot be done, and say truly what you did and saw.
{rules}{fence}"""


class Finish(BaseModel):
    """Ends the task."""

    stop_reason: Annotated[
        Literal["done", "nothing to do", "blocked"],
        Field(description="`blocked`: the task could not be done."),
    ]
    summary: Annotated[
        str, Field(description="What was done, what was seen, and what is left, for the planner.")
    ]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a task ended."""

    status: TaskStatus
    stop_reason: str
    summary: str


def instructions(host: str, rules: Sequence[str]) -> str:
    """What a task's model is told of its role."""
    listed = "".join(f"\n- {rule}" for rule in rules)
    return _ROLE.format(
        host=host,
        rules=f"These rules hold, whatever the task says:{listed}\n" if rules else "",
        fence=INSTRUCTION,
    )


async def do_task(
    work: TaskWork,
    model: Model,
    told: str,
    description: str,
    toolsets: Sequence[AbstractToolset[None]],
) -> Ended:
    """Work on a task and report its end.

    Args:
        work: the task, started.
        model: the model that works on it.
        told: its role.
        description: what is to be done.
        toolsets: what it can do.

    Raises:
        BudgetSpent: a budget is spent; the end is not reported.
        AgentUnavailable: the provider refuses, or two tools have the same name; likewise.
    """
    agent = Agent(
        model,
        output_type=ToolOutput(Finish, name="finish", description="Ends the task."),
        instructions=told,
        toolsets=toolsets,
        retries={"tools": 5, "output": 3},
    )
    try:
        limits = UsageLimits(request_limit=REQUESTS)
        finish = (await agent.run(description, usage_limits=limits)).output
        status: TaskStatus = "failed" if finish.stop_reason == "blocked" else "completed"
        ended = Ended(status, finish.stop_reason, finish.summary)
    except UsageLimitExceeded:
        ended = Ended("failed", "out of steps", f"It did not end within {REQUESTS} steps.")
    except ModelContextWindowExceededError:
        ended = Ended("failed", "out of memory", "The conversation became too long.")
    except UnexpectedModelBehavior as error:
        ended = Ended("failed", "the model did not answer as asked", error.message[:1000])
    except UserError as error:  # such as two tools of the same name
        raise AgentUnavailable(f"the agent cannot be made: {error.message}") from error
    except (BudgetSpent, OpsDrillError):
        raise
    except Exception as error:
        work.end("failed", "the agent crashed", f"{type(error).__name__}: {error}")
        raise
    work.end(ended.status, ended.stop_reason, ended.summary)
    return ended
