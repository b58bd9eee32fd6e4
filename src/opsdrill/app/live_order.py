"""An order from afar: what is to be run, in names alone.

Who asks is not trusted: scenarios are keys, tags and packs, agents and labs are names that were
configured here. No path, no address and no program of the caller's comes this way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from opsdrill.app import agents, labs, planning, scenarios
from opsdrill.app.retry import RETRY_OF
from opsdrill.app.shelf import kept_scenarios
from opsdrill.app.wiring import Place
from opsdrill.errors import InvalidInput, Problem, UnknownName
from opsdrill.scenarios.catalogue import Catalogue
from opsdrill.store.store import Store

MOST_RUNS = 10_000
"""Runs of one order."""
BY = "by"
"""The label that says who started a run."""
OWN_LABELS = (BY, RETRY_OF)
"""Labels that nobody else sets."""


@dataclass(frozen=True, slots=True)
class LiveOrder:
    """What is asked for, in names alone.

    Args:
        scenarios: keys, `tag:NAME`, `pack:NAME`; at least one.
        agents: names of the file of agents, `noop`, `reference`; at least one.
        lab: a lab of the data folder, `sandbox` or `container`; None: the default.
        repeat: how often each agent works each scenario.
        parallel: how many of these runs at once, where fewer than the engine allows.
        labels: of all its runs.
        by: who asks; kept as the label `by`.
    """

    scenarios: Sequence[str]
    agents: Sequence[str]
    lab: str | None = None
    repeat: int = 1
    parallel: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    by: str | None = None


def plan_of(order: LiveOrder, place: Place, store: Store) -> planning.Plan:
    """What an order means here.

    Raises:
        InvalidInput: with a problem for each name that there is not, and each label of ours; or a
            scenario, a lab or an agent's file is broken.
    """
    catalogue = scenarios.catalogue(place, kept_scenarios(store))
    _check(order, catalogue, place)
    marks = {BY: order.by} if order.by else {}
    plan = planning.Plan(
        catalogue.select(order.scenarios),
        agents.named_agents(order.agents, place),
        labs.named_only(order.lab, place),
        order.repeat,
        {**order.labels, **marks},
    )
    if plan.size > MOST_RUNS:
        much = Problem("repeat", f"makes {plan.size} runs, and {MOST_RUNS} are the most")
        raise InvalidInput("the order is refused", [much], hint="order them in parts")
    return plan


def _check(order: LiveOrder, catalogue: Catalogue, place: Place) -> None:
    """Refuse whatever is no name that is known here, each with its place in the order."""
    known = agents.names_only(place)
    wrong = [
        *_unknown("scenarios", order.scenarios, lambda word: _check_word(word, catalogue)),
        *_unknown("agents", order.agents, lambda name: agents.check_name(name, known)),
    ]
    if order.lab is not None and order.lab not in labs.names(place):
        wrong.append(("lab", UnknownName("lab", order.lab, labs.names(place))))
    problems = [Problem(path, error.message) for path, error in wrong]
    problems += [
        Problem(f"labels.{name}", "is set by OpsDrill itself")
        for name in OWN_LABELS
        if name in order.labels
    ]
    if problems:
        hint = wrong[0][1].hint if wrong else None
        raise InvalidInput("the order is refused", problems, hint=hint)


def _unknown(
    part: str, names: Sequence[str], find: Callable[[str], object]
) -> Iterator[tuple[str, UnknownName]]:
    for index, name in enumerate(names):
        try:
            find(name)
        except UnknownName as error:
            yield f"{part}[{index}]", error


def _check_word(word: str, catalogue: Catalogue) -> None:
    """Raises UnknownName for what is no key, tag or pack; a path in particular."""
    kind, colon, _ = word.partition(":")
    known = catalogue.keys()
    if (colon and kind in ("tag", "pack")) or word.casefold() in {key.casefold() for key in known}:
        catalogue.meant(word)
    else:
        raise UnknownName("scenario", word, known)
