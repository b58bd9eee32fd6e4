"""What agents there are, and whether one of them can work here."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from opsdrill.agents.adapter import ADAPTERS
from opsdrill.agents.choice import kept_by, make_adapter
from opsdrill.agents.command.presets import PRESETS
from opsdrill.agents.command.trial import Trial, try_program
from opsdrill.app import agents, documents
from opsdrill.app.wiring import Place
from opsdrill.errors import InvalidInput, OpsDrillError
from opsdrill.model.run import AgentChoice

_NEEDS = {
    "script": "a file: script:FILE",
    "llm": "a model: llm:PROVIDER:MODEL",
    "http": "an address: http:URL",
    "command": "a program: command:'PROGRAM ARGUMENT...'",
}


@dataclass(frozen=True, slots=True)
class Row:
    """An agent that could be named.

    Args:
        name: what `--agent` takes.
        kind: `adapter`, `preset`, or `file` for a name of the file that names agents.
        means: what it is.
        needs: what has to be there.
        keeps: the keys of that file that it keeps to.
    """

    name: str
    kind: str
    means: str
    needs: str
    keeps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """Whether an agent can work here.

    Args:
        agent: which.
        trials: what was tried, in order.
    """

    agent: AgentChoice
    trials: tuple[Trial, ...]

    @property
    def usable(self) -> bool:
        return all(trial.good for trial in self.trials if trial.blocks)


def listed(place: Place, config: Path | None) -> list[Row]:
    """Every agent that could be named here.

    Raises:
        InvalidInput: the file that names agents is broken.
    """
    rows = [
        Row(name, "adapter", _first_line(name), _NEEDS.get(name, "-"), tuple(sorted(kept_by(name))))
        for name in ADAPTERS.names()
    ]
    for name, preset in PRESETS.items():
        needs = f"{preset.argv[0]}; one of {', '.join(preset.keys)}"
        rows.append(Row(name, "preset", preset.title, needs, tuple(sorted(kept_by("command")))))
    names = agents.named(config, place)
    for name, entry in (names.entries if names else {}).items():
        means = entry.adapter if entry.argument is None else f"{entry.adapter}:{entry.argument}"
        rows.append(Row(name, "file", means, ", ".join(entry.environment) or "-"))
    return rows


def by_name(place: Place) -> list[Row]:
    """The agents that may be named from afar; what the file gives them is not told.

    Raises:
        InvalidInput: the file that names agents is broken.
    """
    return [
        Row(
            name,
            "adapter" if name in agents.HARMLESS else "file",
            _first_line(a.adapter),
            a.adapter,
        )
        for name, a in agents.names_only(place).items()
    ]


def _first_line(adapter: str) -> str:
    return (ADAPTERS.get(adapter).__doc__ or "").strip().partition("\n")[0].rstrip(".")


def check(place: Place, name: str, config: Path | None, environment: Sequence[str] = ()) -> Check:
    """Try an agent, without any host.

    Raises:
        UnknownName: there is none of that name.
        UsageError: its argument cannot be.
        InvalidInput: its file is broken.
    """
    [choice] = agents.choose([name], config, place, environment)
    return Check(choice, tuple(asyncio.run(_tried(choice))))


async def _tried(choice: AgentChoice) -> list[Trial]:
    adapter = make_adapter(choice)
    try:
        await adapter.preflight(())
    except InvalidInput:
        # It can start; what it was given is for certain hosts.
        return [Trial("starts", True, "on the hosts that it was written for")]
    except OpsDrillError as error:
        return [Trial("starts", False, error.message, error.hint)]
    if choice.adapter == "command":
        return await try_program(choice.argument, Path(choice.folder or ""), choice.settings)
    found = [Trial("starts", True)]
    if choice.adapter == "llm":
        found.append(Trial("model", True, choice.argument or ""))
    return found


def list_document(rows: Sequence[Row]) -> bytes:
    """The list for programs."""
    return documents.document("agents", "agents", [asdict(row) for row in rows])


def check_document(found: Check) -> bytes:
    """What was tried, for programs."""
    trials = [asdict(trial) for trial in found.trials]
    return documents.document(
        "agent-check", "trials", trials, agent=str(found.agent), usable=found.usable
    )
