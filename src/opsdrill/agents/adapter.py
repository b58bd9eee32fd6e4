"""The adapter protocol: how an agent under test is driven.

An adapter takes an `Assignment`, reports what happens to a recorder, and stops when cancelled.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from opsdrill.evidence.recorder import Recorder
from opsdrill.hosts.driver import Host
from opsdrill.model.agent import AgentSettings
from opsdrill.model.scenario import Step
from opsdrill.model.ticket import Ticket
from opsdrill.registry import Registry


@dataclass(frozen=True, slots=True)
class Assignment:
    """What an agent is given: all it may know of the scenario, and nothing else.

    Args:
        ticket: title and body.
        hosts: the hosts by name, the default host first.
        operational_rules: given to every task.
        job_seconds: when the job is stopped; the runner measures it, not the adapter.
        command_seconds: the time limit of one command.
        users: who commands run as on a host that no task says it for, where that is not root.
    """

    ticket: Ticket
    hosts: Mapping[str, Host]
    operational_rules: tuple[str, ...]
    job_seconds: float
    command_seconds: float
    users: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AdapterContext:
    """What an adapter is told when it is made.

    Args:
        argument: what stood behind the colon of `--agent NAME:ARGUMENT`.
        folder: the folder that a relative argument starts from; then `scenario_folder` is tried.
        reference: the scenario's known right fix. For the `reference` control only: an adapter
            that hands it to an agent under test gives the answer away.
        settings: what the `agents.yaml` says beside that; only keys that the adapter `keeps`.
        run: the run's id.
        keep: a folder of the run's own, for what an agent leaves that is no event; it need not
            exist. None: nothing of that is kept.
        hidden: folders that an agent on this machine must not see: they hold rules, secrets, labs
            and other runs.
    """

    argument: str | None = None
    folder: Path | None = None
    scenario_folder: Path | None = None
    reference: tuple[Step, ...] = ()
    settings: AgentSettings = field(default_factory=AgentSettings)
    run: str = ""
    keep: Path | None = None
    hidden: tuple[Path, ...] = ()


class Adapter(Protocol):
    """Drives one agent through one job. Made anew for every run, by `ADAPTERS.get(name)(context)`.

    A class attribute `keeps` names the keys of `AgentSettings` that it keeps to, if there are any.
    A method `async def hello(self) -> str`, where there is one, asks the agent whether it answers
    and says who does; it may cost something. It raises as `preflight` does.

    `__init__` raises UsageError for an argument that cannot be, InvalidInput for a broken file.
    """

    name: str

    def __init__(self, context: AdapterContext) -> None: ...

    async def preflight(self, hosts: tuple[str, ...]) -> None:
        """Make sure that the agent can start at all.

        Raises:
            AgentUnavailable: it cannot; the run is an `error`, no grade is lowered.
            InvalidInput: what the adapter was given does not fit these hosts.
        """

    async def work(self, assignment: Assignment, recorder: Recorder) -> None:
        """Work the ticket to its end, reporting to `recorder`.

        When cancelled it ends everything it started, reports its tool calls as returned and its
        tasks as ended, and lets the cancellation through; how the job ended is then for the
        runner to say. An exception that is no OpsDrillError counts as a crash of the agent: a job
        of status `failed`.

        Raises:
            AgentUnavailable: the agent or its model provider refused to work at all.
        """


ADAPTERS: Registry[type[Adapter]] = Registry("agent", "opsdrill.adapters")
