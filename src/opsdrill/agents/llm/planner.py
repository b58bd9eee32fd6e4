"""The planner: turns the ticket, and what became of the turns so far, into the next turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, Field, create_model, model_validator
from pydantic_ai import Agent, AgentRunResult, ToolOutput
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import Model

from opsdrill.agents.llm.fence import INSTRUCTION, fenced
from opsdrill.agents.llm.worker import Ended
from opsdrill.model.rules import Resolution
from opsdrill.model.ticket import Ticket

_ROLE = """\
You plan the work on a ticket about servers. Your tools make turns of tasks, and resolve the job.
Each task is worked on by an agent of its own, on one host, that knows nothing but the description
that you write: say in it all that it needs. The tasks of a turn run at the same time, one a host at
most; what must come first goes into an earlier turn. After each turn you are told what became of
its tasks; then plan the next turn or resolve the job.
Resolve as `success` only when you know that everything asked for is done, `partial` when only some
of it is, `no_action` when nothing needs to be done, `agentic_failure` when you could not do it, and
`hard_failure` when something outside made it impossible.
The hosts: {hosts}.
{rules}{fence}"""


class PlannedTask(BaseModel):
    """One task."""

    host: str
    description: Annotated[
        str, Field(min_length=1, description="All that the agent on the host needs to know.")
    ]


class NextTurn(BaseModel):
    """Starts the next turn: tasks that run at the same time."""

    plan: Annotated[str, Field(description="The whole plan as it is now, past and future turns.")]
    post: Annotated[
        str, Field(description="A message to the requester before the turn; may be empty.")
    ] = ""
    tasks: Sequence[PlannedTask]

    @model_validator(mode="after")
    def _one_a_host(self) -> NextTurn:
        hosts = [task.host for task in self.tasks]
        if len(set(hosts)) < len(hosts):
            raise ValueError("a turn has one task a host at most; put the other into a later turn")
        return self


class Resolve(BaseModel):
    """Resolves the job: nothing is done after it."""

    resolution: Resolution
    reasoning: Annotated[str, Field(description="Why, with what was seen that shows it.")]
    post: Annotated[
        str, Field(description="The last message to the requester: what was done and found.")
    ]


Step = NextTurn | Resolve


class Planner:
    """Plans one job; it remembers its own conversation.

    Args:
        model: the model that plans.
        hosts: the names of the hosts.
        rules: the operational rules.
    """

    def __init__(self, model: Model, hosts: Sequence[str], rules: Sequence[str]) -> None:
        listed = "".join(f"\n- {rule}" for rule in rules)
        self._hosts = tuple(hosts)
        self._history: list[ModelMessage] = []
        self._agent = Agent(
            model,
            instructions=_ROLE.format(
                hosts=", ".join(hosts) or "none",
                rules=f"These rules hold for every task, and for you:{listed}\n" if rules else "",
                fence=INSTRUCTION,
            ),
            retries={"tools": 3, "output": 3},
        )

    async def next(self, told: str, left: int) -> Step:
        """The next turn, or the resolution.

        Args:
            told: what is new since the last step.
            left: how many more tasks the job may make; with none left it can only be resolved.

        Raises:
            UnexpectedModelBehavior: the model gives no plan that could be followed.
            BudgetSpent, AgentUnavailable: as the model raises them.
        """
        outputs: list[Any] = [
            ToolOutput(Resolve, name="resolve", description=Resolve.__doc__),
        ]
        if left and self._hosts:
            turn = ToolOutput(
                _turn_of(self._hosts, left), name="next_turn", description=NextTurn.__doc__
            )
            outputs.insert(0, turn)
            told = f"{told}\n\nThe job may make {left} more tasks."
        else:
            told = f"{told}\n\nThe job can make no more tasks: resolve it."
        result: AgentRunResult[Any] = await self._agent.run(
            told, output_type=outputs, message_history=self._history
        )
        self._history = result.all_messages()
        step: Step = result.output
        return step


def _turn_of(hosts: tuple[str, ...], left: int) -> type[NextTurn]:
    """A turn on these hosts, with so many tasks at most: the model is told by the schema."""

    def known(host: str) -> str:
        if host not in hosts:
            raise ValueError(f"must be one of {', '.join(hosts)}")
        return host

    host = Annotated[str, AfterValidator(known), Field(json_schema_extra={"enum": list(hosts)})]
    task: Any = create_model("Task", __base__=PlannedTask, host=(host, ...))
    tasks = Annotated[list[task], Field(min_length=1, max_length=left)]
    made: type[NextTurn] = create_model("NextTurn", __base__=NextTurn, tasks=(tasks, ...))
    return made


def first_words(ticket: Ticket) -> str:
    """The ticket as the planner is told it."""
    said = "".join(f"\n\n{message.author} wrote:\n{message.body}" for message in ticket.messages)
    return f"The ticket: {ticket.title}\n\n{ticket.body}{said}"


def turn_words(number: int, became: Sequence[tuple[str, str, Ended]]) -> str:
    """What became of a turn, as the planner is told it: task, host and end of each."""
    lines = [
        f"{task} on {host}: {ended.status} ({ended.stop_reason})\n{fenced(ended.summary, 6000)}"
        for task, host, ended in became
    ]
    return f"Turn {number} has ended.\n\n" + "\n\n".join(lines)
