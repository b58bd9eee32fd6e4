"""Which agents work on a ticket: `--agent`, the settings, and the file that names agents."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from opsdrill.agents.choice import AgentNames, kept_by, load_agents, parse_agent
from opsdrill.agents.command.surroundings import keys_of, read_program
from opsdrill.app.wiring import Place
from opsdrill.errors import UnknownName, UsageError
from opsdrill.model.agent import AgentSettings
from opsdrill.model.run import AgentChoice
from opsdrill.model.secret import VARIABLE


def choose(
    names: Sequence[str],
    config: Path | None,
    place: Place,
    environment: Sequence[str] = (),
) -> list[AgentChoice]:
    """The agents that were asked for, each once, in their order.

    Args:
        names: as given to `--agent`; none: those of the settings.
        config: the file that names agents; None: that of the settings, if there is one.
        environment: names of variables that the agents get beside those of the file.

    Raises:
        UnknownName: no adapter and no name of the file.
        UsageError: no agent was named, an argument is missing, or one of them takes no variables.
        InvalidInput: the file that names agents is broken.
    """
    wanted = list(names) or list(place.settings.agent or ())
    if not wanted:
        raise UsageError(
            "no agent was named", hint="give one, for example --agent noop or --agent script:FILE"
        )
    known = named(config, place)
    found = dict.fromkeys(parse_agent(name, place.folder, known) for name in wanted)
    return [_with(choice, environment) for choice in found]


def named(config: Path | None, place: Place) -> AgentNames | None:
    """The names that a file gives to agents; None where there is no such file.

    Raises:
        InvalidInput: it is broken.
    """
    file = str(config) if config else place.settings.agent_config
    return load_agents(place.folder / Path(file).expanduser()) if file else None


HARMLESS = ("noop", "reference")
"""The adapters that may be named from afar without an entry: they run nothing of the caller's."""


def names_only(place: Place) -> dict[str, AgentChoice]:
    """The agents that may be named from afar, by name: those of the settings' file of agents, and
    the controls. No adapter's argument is among them.

    Raises:
        InvalidInput: the file is broken.
    """
    known = named(None, place) or AgentNames()
    return {name: parse_agent(name, place.folder, known) for name in (*HARMLESS, *known.entries)}


def named_agents(wanted: Sequence[str], place: Place) -> list[AgentChoice]:
    """The agents of names that may come from afar, each once, in their order.

    Raises:
        UnknownName: no such name; lists the choices.
        UsageError: none was named.
        InvalidInput: the file that names agents is broken.
    """
    known = names_only(place)
    for name in wanted:
        check_name(name, known)
    if not wanted:
        raise UsageError("no agent was named", hint=f"give one of: {', '.join(sorted(known))}")
    return [known[name] for name in dict.fromkeys(wanted)]


def check_name(name: str, known: Collection[str]) -> None:
    """Raises UnknownName for a name that is not among those known."""
    if name not in known:
        raise UnknownName("agent", name, known)


def _with(choice: AgentChoice, environment: Sequence[str]) -> AgentChoice:
    """The agent with more variables."""
    if not environment:
        return choice
    if "environment" not in kept_by(choice.adapter):
        raise UsageError(
            f"the agent {choice} takes no variables", hint="--agent-env is for agents of `command`"
        )
    wrong = [name for name in environment if not re.fullmatch(VARIABLE, name)]
    if wrong:
        raise UsageError(f"{wrong[0]!r} is no name of a variable")
    settings = choice.settings or AgentSettings()
    every = tuple(dict.fromkeys((*settings.environment, *environment)))
    return choice.model_copy(
        update={"settings": settings.model_copy(update={"environment": every})}
    )


def secret_variables(choices: Iterable[AgentChoice]) -> list[tuple[str, str]]:
    """Names and values of variables that agents get and whose names say that they are secrets."""
    found: dict[str, str] = {}
    for choice in choices:
        if choice.adapter == "command":
            wanted = choice.settings.environment if choice.settings else ()
            for name in (*wanted, *keys_of(read_program(choice.argument))):
                if name in os.environ and _SECRET.search(name):
                    found[name] = os.environ[name]
    return list(found.items())


_SECRET = re.compile(r"(?i)key|token|secret|passw|credential|auth")
