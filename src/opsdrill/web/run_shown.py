"""What the page of a run shows, and its report as well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from opsdrill.app.lines import Lines
from opsdrill.app.whole_run import WholeRun, used
from opsdrill.evidence.stories import differences
from opsdrill.model.job import Coverage, Seen
from opsdrill.web.lanes import lanes
from opsdrill.web.lines import shown_line
from opsdrill.web.verdicts import rules_shown

DIFFERENCES, FILES, MESSAGES, GRADES, WARNINGS = 100, 500, 200, 100, 200
ANSWERS = 200
OUTPUT = 4000
"""Characters of one output of a host."""


def run_values(whole: WholeRun, found: Lines | None) -> dict[str, object]:
    """What the templates of `parts/run_*.html` show.

    Args:
        whole: the run.
        found: its record as lines; None: it is not read yet. Then there is what `run_head.html`
            and `run_rules.html` show, but for what the record tells.
    """
    run = whole.run
    spec, result = run.spec, whole.result
    ended = run.ended_at or datetime.now(UTC)
    return {
        "run": run,
        "spec": spec,
        "scenario": spec.scenario,
        "result": result,
        "verdict": result.verdict if not whole.going else None,
        "phases": whole.phases,
        "waits_for": whole.waits_for,
        "going": whole.going,
        "took": (ended - (run.started_at or run.created_at)).total_seconds(),
        "used": used(found.record) if found is not None else None,
        "rules": rules_shown(result, spec.scenario, found),
        "other_rules": result.scenario_version != spec.scenario_version,
        "read": found is not None,
        "most_output": OUTPUT,
    } | (_recorded(whole, found) if found is not None else {})


def _recorded(whole: WholeRun, found: Lines) -> dict[str, object]:
    """What the record tells, and what stands below it."""
    record = found.record
    # Why then nothing is recorded stands in the verdict, with whose fault it was.
    never = not whole.going and record.job is None and _stopped_before_the_agent(whole)
    return {
        "lanes": lanes(found, datetime.now(UTC)),
        "ticket": record.ticket,
        "messages": _messages(found),
        "more_messages": max(len(record.ticket.messages) - MESSAGES, 0),
        "record": record,
        "sealed": found.sealed,
        "total": len(found),
        "tasks": [shown_line(line) for line in found.tasks[:500]],
        "never_began": never,
        "gaps": [] if whole.going or never else gaps(record.coverage),
        "stop": None if whole.going or never else record.stop,
        "steps": {phase: answers[:ANSWERS] for phase, answers in whole.steps.items()},
        "steps_left_out": {p: len(a) - ANSWERS for p, a in whole.steps.items() if len(a) > ANSWERS},
        "hosts": [(facts, _files(changed), _more(changed)) for facts, changed in whole.hosts],
        "grades": whole.grades[-GRADES:],
        "differences": differences(record),
        "most_differences": DIFFERENCES,
        "warnings": whole.result.warnings[:WARNINGS],
    }


def _stopped_before_the_agent(whole: WholeRun) -> bool:
    names = [phase.name for phase in whole.phases]
    return bool(names) and "execute" not in names


def _messages(found: Lines) -> Sequence[tuple[object, int]]:
    shown = (line for line in found.all[: MESSAGES + 1] if line.kind == "ticket")
    return [(line.piece, line.number) for line in shown][:MESSAGES]


def _files(changed: tuple[object, ...] | None) -> tuple[object, ...] | None:
    return None if changed is None else changed[:FILES]


def _more(changed: tuple[object, ...] | None) -> int:
    return max(len(changed or ()) - FILES, 0)


def gaps(coverage: Coverage) -> list[tuple[str, Seen]]:
    """What the record does not hold whole, each kind once."""
    found: list[tuple[str, Seen]] = []
    names: Mapping[str, object] = {name: getattr(coverage, name) for name in Coverage.model_fields}
    for name, seen in names.items():
        if isinstance(seen, Seen) and seen.state != "whole":
            said = "everything else" if name == "default" else name.replace("_", " ")
            found.append((said, seen))
    return found
