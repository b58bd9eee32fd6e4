"""The main path: one run, from the first check to the stored verdict. Read this first.

    begin      the run's row says who works on it
    preflight  rules, lab and agent can work at all; lasting hosts are this run's alone from here
    provision  hosts are made; they have what the scenario requires, and its files
    setup      the hosts are broken on purpose
    ready      the fault is proved to be there
    execute    the ticket goes to the agent; the job record is sealed
    validate   the hosts are asked what the rules ask; then everything is graded
    restore    lasting hosts are brought back
    done       hosts are given back, the result is kept and told

A stop before the grade ends in `error` and says whose fault it was; only what the agent did
lowers a grade. Hosts are given back whatever happens. Secrets are masked at the source of what is
kept, so that grading sees what a later regrade will see.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace

from opsdrill.agents.adapter import Adapter
from opsdrill.errors import LeaseLost, OpsDrillError
from opsdrill.evidence.masked_spec import masked_spec
from opsdrill.grading.engine import grade
from opsdrill.hosts.driver import Host
from opsdrill.model.host import HostAnswer
from opsdrill.model.job import JobRecord
from opsdrill.model.lab import ROOT
from opsdrill.model.result import PHASES, Grade, Result
from opsdrill.model.run import RunSpec
from opsdrill.runner.archive import landed
from opsdrill.runner.batches import EventBatches
from opsdrill.runner.engine import RunEvent
from opsdrill.runner.journal import Journal
from opsdrill.runner.phases.changes import changes
from opsdrill.runner.phases.execute import Attendance, assignment, execute, ticket
from opsdrill.runner.phases.files import put_files
from opsdrill.runner.phases.lease import lease
from opsdrill.runner.phases.preflight import context_of, preflight
from opsdrill.runner.phases.provision import provision
from opsdrill.runner.phases.ready import ready
from opsdrill.runner.phases.requires import requires
from opsdrill.runner.phases.restore import restore
from opsdrill.runner.phases.setup import setup
from opsdrill.runner.phases.steps import on_each
from opsdrill.runner.phases.users import as_lab_says
from opsdrill.runner.phases.validate import ask_hosts
from opsdrill.runner.result import Stop, broken_off, graded, stopped
from opsdrill.runner.tools import RunTools

log = logging.getLogger(__name__)


async def run(spec: RunSpec, tools: RunTools) -> Result:
    """Work off one planned run and keep its result.

    Cancelled, it gives the hosts back, keeps the run as `cancelled` with what was recorded, and
    lets the cancellation through.

    Raises:
        KeyError: the run was not planned in the store.
        UsageError: it is over, or it is running already.
        Exception: what the store raises when it cannot keep the run; everything else that goes
            wrong is the result.
    """
    kept = masked_spec(tools.mask(spec.lab), spec, tools.files)
    journal = Journal(spec, tools, kept)
    verdict: Grade | None = None
    try:
        verdict = await _drill(spec, tools, journal)
        result = graded(kept.spec, verdict, phases=journal.phases, warnings=journal.warned)
    except asyncio.CancelledError:
        if not journal.attempt:
            raise
        reason = f"cancelled in the phase {journal.worked or PHASES[0]}"
        phases, warnings = journal.phases, journal.warned
        await journal.finish(
            broken_off(kept.spec, "cancelled", reason, phases=phases, warnings=warnings), None
        )
        raise
    except Exception as error:
        if not journal.attempt:
            raise
        if not isinstance(error, OpsDrillError):
            log.debug("run %s failed\n%s", spec.id, kept.mask.text(_trace(error)))
        stop = Stop.of(error, journal.worked)
        result = stopped(
            kept.spec,
            replace(stop, reason=kept.mask.text(stop.reason)),
            phases=journal.phases,
            warnings=journal.warned,
            after_agent=journal.acted,
        )
    await journal.finish(result, verdict)
    return result


def _trace(error: Exception) -> str:
    return "".join(traceback.format_exception(error)).rstrip()


async def _drill(spec: RunSpec, tools: RunTools, journal: Journal) -> Grade:
    """Begin, and give everything back at the end, whatever became of the phases."""
    await journal.begin()
    spec = spec.model_copy(update={"scenario": as_lab_says(spec)})
    verdict: Grade | None = None
    try:
        async with AsyncExitStack() as given_back:
            verdict = await _phases(spec, tools, journal, given_back)
    except LeaseLost as error:
        if verdict is None:
            raise
        journal.warnings.append(f"when all was graded: {error}")
    assert verdict is not None
    return verdict


async def _phases(
    spec: RunSpec, tools: RunTools, journal: Journal, given_back: AsyncExitStack
) -> Grade:
    """The phases, one after the other; what a phase needs of an earlier one is a plain value."""
    scenario, rules, store = spec.scenario, journal.kept.scenario, journal.store
    async with journal.phase("preflight"):
        driver = tools.driver(spec.lab)
        adapter = tools.adapter(spec.agent.adapter)(context_of(spec, tools.home))
        leased = await lease(spec, journal.attempt, tools, driver, given_back)
        await preflight(rules, driver, adapter)
    async with journal.phase("provision") as notes:
        provided = await provision(spec, driver, journal, given_back, leased)
        hosts = provided.masked
        await requires(scenario, hosts, notes.answers, spec.lab.user_of)
        if not driver.throw_away:
            # What an earlier run left; where nothing was left, steps fail.
            await restore(scenario, hosts, notes.answers)
        await put_files(scenario, spec.files, hosts, tools.archive, tools.files)
    async with journal.phase("setup") as notes:
        notes.skipped = None if scenario.setup else "the scenario has no setup steps"
        await setup(scenario, hosts, notes.answers)
    async with journal.phase("ready") as notes:
        notes.skipped = None if scenario.ready else "the scenario has no ready checks"
        await ready(scenario, hosts, notes.answers, journal.tell)
        await on_each(hosts, lambda name: hosts[name].mark())
    async with journal.phase("execute"):
        record = await _execute(spec, tools, journal, adapter, provided.true)
    async with journal.phase("validate"):
        for facts, changed in await changes(hosts, journal.warnings):
            journal.later(store.save_host, spec.id, journal.attempt, facts, changed)
        answers = await _ask_hosts(spec, journal, hosts)
        version = spec.scenario_version
        return await asyncio.to_thread(
            grade, rules, record, answers, tools.searcher, scenario_version=version
        )


async def _execute(
    spec: RunSpec,
    tools: RunTools,
    journal: Journal,
    adapter: Adapter,
    hosts: Mapping[str, Host],
) -> JobRecord:
    """Let the agent work; whatever ends it, what it did is sealed before anything is graded."""
    events = EventBatches(
        tools.archive,
        spec.id,
        journal.attempt,
        lambda event: tools.publish(RunEvent(spec.id, job=event)),
    )
    told = ticket(journal.kept.scenario)
    recorder = Attendance(events, told, tools.clock, journal.mask)
    users = {name: user for name in hosts if (user := spec.lab.user_of(name)) != ROOT}
    task = assignment(spec.scenario, hosts, users)

    async def seal() -> JobRecord:
        await events.flush()
        record = await asyncio.to_thread(recorder.job_record)
        await journal.keep(journal.store.save_record, spec.id, journal.attempt, record)
        return record

    try:
        await execute(spec.id, adapter, task, recorder, events.broken)
    finally:
        journal.acted = recorder.acted
        record = await landed(asyncio.ensure_future(seal()))
    return record


async def _ask_hosts(
    spec: RunSpec, journal: Journal, hosts: Mapping[str, Host]
) -> tuple[HostAnswer, ...]:
    """The host answers, kept before they are graded."""
    answers: list[HostAnswer] = []
    try:
        await ask_hosts(spec.scenario, hosts, answers, spec.lab.user_of)
    finally:
        kept = tuple(answers)
        await journal.keep(journal.store.save_answers, spec.id, journal.attempt, kept)
    return kept
