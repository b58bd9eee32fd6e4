"""`/compare`: sets of runs beside each other, regressions first.

A set is `set=` with a filter as the table of runs has it (`agent=good&label=commit:1f3c`), named by
`name=`, each in order; or single runs by `run=`, each of which is a set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated
from urllib.parse import parse_qsl

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from opsdrill.api.parameters import labels_of
from opsdrill.api.problems import Refused
from opsdrill.api.service import Served
from opsdrill.app.comparison import Comparison, SetWanted, compare
from opsdrill.errors import NotThere, UsageError
from opsdrill.store.store import RunFilter
from opsdrill.web.entry import needs
from opsdrill.web.render import page

MOST_SETS = 10
MOST_LINES, MOST_FLIPS = 500, 50
PARTS = ("scenario", "tag", "agent", "batch", "label")

router = APIRouter(include_in_schema=False)
Words = Annotated[list[str] | None, Query(max_length=200)]


@router.get("/compare", **needs("read"))
async def comparison(
    request: Request, service: Served, run: Words = None, set: Words = None, by: str = ""
) -> Response:
    found: Comparison | None = None
    wrong: UsageError | Refused | None = None
    usual = "scenario and agent"
    runs = [each.strip()[:200] for each in run or () if each.strip()]
    written = [each.strip()[:500] for each in set or () if each.strip()]
    try:
        wanted = _sets(runs, written)
        usual = "scenario" if runs or _of_agents(wanted) else usual
        if len(wanted) > 1:
            sides = [by] if by in ("scenario", "agent") else usual.split(" and ")
            found = await service.call(compare, service.store, wanted, sides)
    except (UsageError, Refused) as error:
        wrong = error
    values = {
        "found": found, "wrong": wrong, "written": written or ["", ""], "runs": runs, "by": by,
        "usual": usual, "most_lines": MOST_LINES, "most_flips": MOST_FLIPS,
    }  # fmt: skip
    status = 404 if isinstance(wrong, NotThere) else 422 if wrong else 200
    return page(request, "compare.html", values, here="runs", status=status)


def _of_agents(wanted: Sequence[SetWanted]) -> bool:
    """Whether each set is of an agent of its own: a line for an agent would have one set alone."""
    agents = [one.narrowed.agent for one in wanted]
    return None not in agents and len(set(agents)) == len(agents) > 1


def _sets(runs: Sequence[str], written: Sequence[str]) -> list[SetWanted]:
    """The sets that an address names. Raises UsageError, Refused."""
    if len(runs) + len(written) > MOST_SETS:
        raise UsageError(f"{MOST_SETS} sets at most are compared", hint="choose fewer runs")
    sets = [SetWanted(run, RunFilter(), (run,)) for run in dict.fromkeys(runs)]
    sets += [SetWanted(text, _filter(text)) for text in dict.fromkeys(written)]
    return sets


def _filter(text: str) -> RunFilter:
    """A set that is written as `agent=good&label=commit:1f3c`."""
    said: dict[str, str] = {}
    labels: list[str] = []
    for name, value in parse_qsl(text, keep_blank_values=True, max_num_fields=20):
        if name not in PARTS:
            raise UsageError(
                f"a set has no part {name[:60]!r}", hint=f"what it may have: {', '.join(PARTS)}"
            )
        if name == "label":
            labels.append(value)
        else:
            said[name] = value
    if not said and not labels:
        raise UsageError(
            f"{text[:60]!r} is no set of runs", hint="for example agent=good, or batch=ID"
        )
    return RunFilter(
        scenario=said.get("scenario"),
        scenario_tag=said.get("tag"),
        agent=said.get("agent"),
        batch=said.get("batch"),
        labels=labels_of(labels),
    )
