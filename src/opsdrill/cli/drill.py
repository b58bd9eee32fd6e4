"""The body of `opsdrill run`: plan, work with progress shown, report; and what Ctrl-C does."""

from __future__ import annotations

import asyncio
import shlex
import signal
from collections import Counter

from opsdrill.app.runs import Batch, Brake, Order, Outcome, planned
from opsdrill.app.safe_text import shown
from opsdrill.cli.choices import FailOn, ResultFormat
from opsdrill.cli.front import INTERRUPTED, Front
from opsdrill.cli.progress import Progress, progress_for
from opsdrill.cli.report import report
from opsdrill.model.run import RunSpec


def drill(told: Front, order: Order, format: ResultFormat, fail_on: FailOn | None) -> int:
    """Do the whole job; returns the exit status."""
    with planned(told.place, order) as batch, progress_for(told.out, batch.shown) as progress:
        outcome = asyncio.run(_work(batch, progress))
        if outcome.interrupted:
            be_deaf()  # all is given back; only the report is left
    status = report(told, outcome.results, format, fail_on)
    if not outcome.interrupted:
        return status
    how_to_go_on(told, order, outcome)
    return INTERRUPTED


async def _work(batch: Batch, progress: Progress) -> Outcome:
    brake = Brake()

    def stop() -> None:
        times = brake.pull()
        if times == 1:
            progress.note("stopping: hosts are given back first; once more to stop at once")
        elif times == 2:
            progress.note("stopping at once: what is left is found again at the next start")

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    return await batch.work(progress.tell, progress.note, brake)


def be_deaf() -> None:
    """From here to the end of the process nobody stops anything any more."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)


def how_to_go_on(told: Front, order: Order, outcome: Outcome) -> None:
    """After an interruption: what is kept, and the command for what is left."""
    out = told.out
    done = len(outcome.results) - len(outcome.left)
    out.note(f"interrupted: {done} of {len(outcome.results)} runs are done and kept")
    if not outcome.left:
        return
    words = ["opsdrill", "run", *dict.fromkeys(_selector(spec, order) for spec in outcome.left)]
    for agent in dict.fromkeys(str(spec.agent) for spec in outcome.left):
        words += ["--agent", agent]
    for name, value in (
        ("--lab", order.lab),
        ("--agent-config", order.agent_config),
        ("--home", told.home),
    ):
        words += [name, str(value)] if value is not None else []
    for variable in order.agent_env:
        words += ["--agent-env", variable]
    often = max(Counter((spec.scenario.key, str(spec.agent)) for spec in outcome.left).values())
    words += ["--repeat", str(often)] if often > 1 else []
    out.hint(f"to do the rest: {shown(shlex.join(words))}")


def _selector(spec: RunSpec, order: Order) -> str:
    """What selects this scenario again: its key where it was found by that or by a tag."""
    named = spec.scenario.key in (word.casefold() for word in order.scenarios)
    tagged = all(word.startswith(("tag:", "pack:")) for word in order.scenarios)
    return spec.scenario.key if named or tagged else spec.scenario_folder or spec.scenario.key
