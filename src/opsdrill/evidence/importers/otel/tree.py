"""Which span of a trace is in which, and whose work it is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from opsdrill.evidence.importers.otel.messages import Asked, Message
from opsdrill.evidence.importers.otel.steps import Role, Step

MAIN = "main"
_DEEPEST = 1000
"""Steps in each other that are followed upwards."""


@dataclass(slots=True)
class Answer:
    """One call of a model, of which the spans of several libraries may tell.

    Args:
        steps: the outermost span first.
        work: whose call it is.
    """

    steps: list[Step]
    work: str

    @property
    def first(self) -> Step:
        """The outermost span."""
        return self.steps[0]

    @property
    def messages(self) -> list[Message]:
        """What the model said, by the outermost span that knows."""
        return next((each.answers for each in self.steps if each.answers), [])

    @property
    def calls(self) -> list[Asked]:
        """The tools that it called."""
        return [call for message in self.messages for call in message.calls]

    @property
    def finish(self) -> str:
        """Why it stopped; empty where nobody knows."""
        return next((each.finish for each in self.steps if each.finish), "").lower()

    @property
    def answered(self) -> bool:
        """Whether its answer is known."""
        return bool(self.messages)


class Tree:
    """The steps of one trace under each other.

    Args:
        steps: in the order in which they began.
        parents: of every span, noise too: what it is in.

    Attributes:
        main: the agent that was asked; None where no span is an agent's.
        works: whose work an agent's span is, by the span's id.
    """

    def __init__(self, steps: Sequence[Step], parents: Mapping[str, str]) -> None:
        self.steps = steps
        self._parents = parents
        self._by_id = {step.id: step for step in steps if step.id}
        self._above: dict[str, Step | None] = {}
        self._place = {id(step): place for place, step in enumerate(steps)}
        agents = [step for step in steps if step.role == "agent"]
        self._busy: set[str] = set()
        self._calls: dict[str, int] = {}
        for step in steps:
            agent = self._in(step, "agent")
            if agent is not None and step.role == "agent":
                self._calls[agent.id] = self._calls.get(agent.id, 0) + 1
            elif agent is not None:
                self._busy.add(agent.id)
        self.main = next((step for step in agents if self._in(step, "agent") is None), None)
        self.works: dict[str, str] = {}
        for step in agents:
            self._settle(step)
        self._answers: dict[int, Answer] = {}

    def work_of(self, step: Step) -> str:
        """The id of the work that a step belongs to."""
        agent = step if step.role == "agent" else self._in(step, "agent")
        return self.works.get(agent.id, MAIN) if agent is not None else MAIN

    def answers(self) -> list[Answer]:
        """The calls of models, in the order in which they began."""
        found: dict[int, Answer] = {}
        for step in self.steps:
            if step.role == "model":
                outermost = self._outermost(step)
                answer = found.setdefault(id(outermost), Answer([], self.work_of(outermost)))
                answer.steps.append(step)
        for key, answer in found.items():
            answer.steps.sort(key=lambda step: id(step) != key)
        self._answers = found
        return list(found.values())

    def answer_of(self, step: Step) -> Answer | None:
        """The call of a model that begins with this span; None where it is in another one's."""
        return self._answers.get(id(step))

    def within_itself(self, step: Step) -> bool:
        """Whether a tool's span is in another one of the same call, which then knows all of it."""
        above = self._up(step)
        if above is None or above.role != "tool" or above.name != step.name:
            return False
        if self._place[id(above)] > self._place[id(step)]:
            return False  # in a circle
        if _differ(above.call, step.call) or _differ(above.arguments, step.arguments):
            return False
        above.call = above.call or step.call
        above.arguments = above.arguments if above.arguments is not None else step.arguments
        above.result = above.result if above.result is not None else step.result
        above.mcp = above.mcp or step.mcp
        above.server = above.server or step.server
        return True

    def _outermost(self, step: Step) -> Step:
        for _ in range(_DEEPEST):
            above = self._up(step)
            if above is None or above.role != "model":
                break
            step = above
        return step

    def _settle(self, step: Step) -> None:
        """Find whose work an agent's span is, after those of the agents above it."""
        chain = [step]
        for _ in range(_DEEPEST):
            above = self._in(chain[-1], "agent")
            if above is None or above.id in self.works:
                break
            chain.append(above)
        for each in reversed(chain):
            if each.id and each.id not in self.works:
                self.works[each.id] = self._work(each)

    def _work(self, step: Step) -> str:
        above = self._in(step, "agent")
        beside = above or self.main
        if step is self.main or beside is None:
            return MAIN
        # A span of whoever called the agent, around the agent's own.
        wrapped = above is not None and above.id not in self._busy and self._calls[above.id] == 1
        if wrapped or step.name is None or _plain(step.name) == _plain(beside.name):
            return self.works.get(beside.id, MAIN)
        return f"agent-{step.id}"

    def _in(self, step: Step, role: Role) -> Step | None:
        """The nearest step of a role that this one is in."""
        above = self._up(step)
        for _ in range(_DEEPEST):
            if above is None or above.role == role:
                return above
            above = self._up(above)
        return None

    def _up(self, step: Step) -> Step | None:
        """The nearest step that this one is in, past all noise."""
        path: list[str] = []
        seen = {step.id}
        id, found = step.parent, None
        while id and id not in seen:
            if id in self._by_id or id in self._above:
                found = self._by_id.get(id) or self._above.get(id)
                break
            seen.add(id)
            path.append(id)
            id = self._parents.get(id, "")
        self._above.update(dict.fromkeys(path, found))
        return found


def _differ(one: object, other: object) -> bool:
    return one is not None and other is not None and one != other


def _plain(name: str | None) -> str:
    return re.sub(r"[-_ ]", "", name or "").lower()
