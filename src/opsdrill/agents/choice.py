"""Which agent is meant: `NAME[:ARGUMENT]`, or a name from an `agents.yaml`.

agents:
  careful: {adapter: script, argument: careful.yaml}
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints

from opsdrill.agents.adapter import ADAPTERS, Adapter, AdapterContext
from opsdrill.agents.command.presets import MARK, PRESETS
from opsdrill.errors import InvalidInput, InvalidPattern, Problem, UnknownName, UsageError
from opsdrill.model.agent import AgentSettings, Budgets, McpServer, ServerName, Variable
from opsdrill.model.fields import Items, NotBlank, Written
from opsdrill.model.problem import dotted
from opsdrill.model.run import AgentChoice
from opsdrill.model.scenario import Step
from opsdrill.patterns import compile_pattern
from opsdrill.scenarios.document import Location
from opsdrill.scenarios.load import parse_model, read_document

AgentName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]

_SHARED = ("budgets", "deny", "mcp_servers", "environment")
"""The keys of the file that hold for every agent in it."""


class AgentEntry(AgentSettings):
    """What a name stands for."""

    adapter: NotBlank
    argument: NotBlank | None = None
    """What would stand behind the colon; a relative path starts from the file's folder."""


class AgentFile(Written):
    """The content of an `agents.yaml`; what stands beside `agents` holds for all of them."""

    agents: Annotated[dict[AgentName, AgentEntry], Field(min_length=1)]
    budgets: Budgets | None = None
    deny: Items[NotBlank] = ()
    mcp_servers: dict[ServerName, McpServer] | None = None
    environment: Items[Variable] = ()

    def settings(self, name: str) -> AgentSettings:
        """What holds for an agent: its own keys before those of the file; `deny` adds up."""
        entry = self.agents[name]
        own = {key: getattr(entry, key) for key in AgentSettings.model_fields}
        for key in _SHARED:
            if key not in entry.written:
                own[key] = getattr(self, key)
        own["deny"] = tuple(dict.fromkeys((*self.deny, *entry.deny)))
        return AgentSettings(**own)


@dataclass(frozen=True, slots=True)
class AgentNames:
    """The names that an `agents.yaml` gives to agents.

    Args:
        entries: what each name stands for.
        folder: the folder that relative arguments start from.
        settings: what holds for each name beside that.
    """

    entries: dict[str, AgentEntry] = field(default_factory=dict)
    folder: Path = field(default_factory=Path)
    settings: dict[str, AgentSettings] = field(default_factory=dict)


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
        for where, message in (*_misnamed(content.agents), *_unreadable(content), *_unkept(content))
    ]
    if wrong:
        raise InvalidInput("the agents file is wrong", wrong)
    settings = {name: content.settings(name) for name in content.agents}
    return AgentNames(content.agents, path.resolve().parent, settings)


def _misnamed(entries: dict[str, AgentEntry]) -> Iterator[tuple[Location, str]]:
    known = ADAPTERS.names()
    for name, entry in entries.items():
        if name in known:
            yield ("agents", name), "is the name of an adapter; choose another name"
        if entry.adapter not in known:
            listed = ", ".join(known)
            yield ("agents", name, "adapter"), f"must be one of {listed}, not {entry.adapter!r}"


def _unkept(content: AgentFile) -> Iterator[tuple[Location, str]]:
    """A limit that was written down and is not kept would be worse than none."""
    known = ADAPTERS.names()
    for name, entry in content.agents.items():
        if entry.adapter not in known:
            continue
        kept = kept_by(entry.adapter)
        for key in sorted(content.settings(name).written - kept):
            where: Location = ("agents", name, key) if key in entry.written else (key,)
            yield where, f"is nothing that the agent {name!r} ({entry.adapter}) can keep to"


def _unreadable(content: AgentFile) -> Iterator[tuple[Location, str]]:
    """Patterns that do not compile."""
    for where, patterns in (
        (("deny",), content.deny),
        *((("agents", name, "deny"), entry.deny) for name, entry in content.agents.items()),
    ):
        for index, pattern in enumerate(patterns):
            try:
                compile_pattern(pattern)
            except InvalidPattern as error:
                yield (*where, index), error.message


def kept_by(adapter: str) -> frozenset[str]:
    """The keys of `AgentSettings` that a registered adapter can keep to."""
    keys: frozenset[str] = getattr(ADAPTERS.get(adapter), "keeps", frozenset())
    return keys


def parse_agent(text: str, folder: Path, names: AgentNames | None = None) -> AgentChoice:
    """The agent that `NAME` or `NAME:ARGUMENT` means.

    The name of a preset is a program for the adapter `command`, and its argument more arguments of
    that program.

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
        settings = names.settings.get(name)
        return AgentChoice(
            adapter=entry.adapter,
            argument=entry.argument,
            folder=str(names.folder),
            settings=settings if settings is not None and settings.written else None,
            name=name,
        )
    known = ADAPTERS.names()
    if name not in known and name not in PRESETS:
        raise UnknownName("agent", name, [*known, *PRESETS, *names.entries])
    if colon and not argument.strip():
        raise UsageError(f"the agent {text!r} has nothing behind its colon")
    if name in PRESETS:
        name, colon, argument = "command", ":", f"{MARK}{name} {argument}".strip()
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
            settings=choice.settings or AgentSettings(),
        )
    )
