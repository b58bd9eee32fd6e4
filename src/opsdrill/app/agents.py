"""Which agents work on a ticket: `--agent`, the settings, and the file that names agents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from opsdrill.agents.choice import load_agents, parse_agent
from opsdrill.app.wiring import Place
from opsdrill.errors import UsageError
from opsdrill.model.run import AgentChoice


def choose(names: Sequence[str], config: Path | None, place: Place) -> list[AgentChoice]:
    """The agents that were asked for, each once, in their order.

    Args:
        names: as given to `--agent`; none: those of the settings.
        config: the file that names agents; None: that of the settings, if there is one.

    Raises:
        UnknownName: no adapter and no name of the file.
        UsageError: no agent was named, or an argument is missing.
        InvalidInput: the file that names agents is broken.
    """
    wanted = list(names) or list(place.settings.agent or ())
    if not wanted:
        raise UsageError(
            "no agent was named", hint="give one, for example --agent noop or --agent script:FILE"
        )
    file = str(config) if config else place.settings.agent_config
    known = load_agents(place.folder / Path(file).expanduser()) if file else None
    return list(dict.fromkeys(parse_agent(name, place.folder, known) for name in wanted))
