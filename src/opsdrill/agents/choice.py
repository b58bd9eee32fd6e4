"""Which agent is meant: `NAME[:ARGUMENT]`, or a name from an `agents.yaml`.

agents:
  careful: {adapter: script, argument: careful.yaml}
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from opsdrill.agents.adapter import ADAPTERS, Adapter, AdapterContext
from opsdrill.errors import InvalidInput, Problem, UnknownName, UsageError
from opsdrill.model.fields import NotBlank, Written
from opsdrill.model.problem import dotted
from opsdrill.model.run import AgentChoice
from opsdrill.model.scenario import Step
from opsdrill.scenarios.document import Location
from opsdrill.scenarios.load import parse_model, read_document

AgentName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]

_PLANNED = ("mcp_servers", "budgets", "deny", "environment")


class AgentEntry(Written):
    """What a name stands for."""

    adapter: NotBlank
    argument: NotBlank | None = None
    """What would stand behind the colon; a relative path starts from the file's folder."""

    @model_validator(mode="before")
    @classmethod
    def _not_yet(cls, value: Any) -> Any:
        return _refuse_planned(value)


class AgentFile(Written):
    """The content of an `agents.yaml`."""

    agents: Annotated[dict[AgentName, AgentEntry], Field(min_length=1)]

    @model_validator(mode="before")
    @classmethod
    def _not_yet(cls, value: Any) -> Any:
        return _refuse_planned(value)


def _refuse_planned(value: Any) -> Any:
    """A limit that was written down and is not kept would be worse than none."""
    for key in _PLANNED:
        if isinstance(value, dict) and value.get(key) is not None:
            raise PydanticCustomError(
                "not_yet",
                "has `{key}`, which this version cannot keep to; take it out",
                {"key": key},
            )
    return value


@dataclass(frozen=True, slots=True)
class AgentNames:
    """The names that an `agents.yaml` gives to agents.

    Args:
        entries: what each name stands for.
        folder: the folder that relative arguments start from.
    """

    entries: dict[str, AgentEntry] = field(default_factory=dict)
    folder: Path = field(default_factory=Path)


def load_agents(path: Path) -> AgentNames:
    """The names in an `agents.yaml`.

    Raises:
        UsageError: the file cannot be opened.
        InvalidInput: it breaks the format, names an adapter that does not exist, or gives an
            adapter's own name to something else.
    """
    document = read_document(path)
    content = parse_model(document.data, AgentFile, document=document, noun="agents file")
    wrong = [
        document.at(Problem(dotted(where), message), document.key_place(where))
        for where, message in _misnamed(content.agents)
    ]
    if wrong:
        raise InvalidInput("the agents file is wrong", wrong)
    return AgentNames(content.agents, path.resolve().parent)


def _misnamed(entries: dict[str, AgentEntry]) -> Iterator[tuple[Location, str]]:
    known = ADAPTERS.names()
    for name, entry in entries.items():
        if name in known:
            yield ("agents", name), "is the name of an adapter; choose another name"
        if entry.adapter not in known:
            listed = ", ".join(known)
            yield ("agents", name, "adapter"), f"must be one of {listed}, not {entry.adapter!r}"


def parse_agent(text: str, folder: Path, names: AgentNames | None = None) -> AgentChoice:
    """The agent that `NAME` or `NAME:ARGUMENT` means.

    Args:
        text: as given to `--agent`.
        folder: the folder that a relative argument starts from.
        names: the names of an `agents.yaml`; they take no argument.

    Raises:
        UnknownName: there is no such agent; lists the choices.
        UsageError: an argument is missing, or there is one where none is taken.
    """
    names = names or AgentNames()
    name, colon, argument = text.strip().partition(":")
    if name in names.entries:
        if colon:
            raise UsageError(f"the agent {name!r} has its argument in the agents file")
        entry = names.entries[name]
        return AgentChoice(adapter=entry.adapter, argument=entry.argument, folder=str(names.folder))
    known = ADAPTERS.names()
    if name not in known:
        raise UnknownName("agent", name, [*known, *names.entries])
    if colon and not argument.strip():
        raise UsageError(f"the agent {text!r} has nothing behind its colon")
    choice = AgentChoice(
        adapter=name, argument=argument if colon else None, folder=str(folder.resolve())
    )
    if not colon:
        # An adapter that cannot do without an argument says so itself.
        make_adapter(choice)
    return choice


def make_adapter(
    choice: AgentChoice,
    scenario_folder: Path | None = None,
    reference: tuple[Step, ...] = (),
) -> Adapter:
    """A new adapter for one run; made once before a run it tells a wrong choice early.

    Raises:
        UnknownName: nobody registered the adapter.
        UsageError: it refuses its argument.
        InvalidInput: its file is broken.
    """
    return ADAPTERS.get(choice.adapter)(
        AdapterContext(
            argument=choice.argument,
            folder=Path(choice.folder) if choice.folder else None,
            scenario_folder=scenario_folder,
            reference=reference,
        )
    )
