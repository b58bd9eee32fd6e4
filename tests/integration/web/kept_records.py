"""Runs that are kept without having been worked off: large ones, and ones full of hostile text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from opsdrill.app.settings import Settings
from opsdrill.app.stores import opened_store
from opsdrill.app.wiring import Place
from opsdrill.grading.engine import grade
from opsdrill.model.host import ChangedFile, HostAnswer, HostFacts
from opsdrill.model.job import AgentMessage, Coverage, Job, JobRecord, Seen, Task, ToolCall
from opsdrill.model.result import Result
from opsdrill.model.rules import HostState, PatternMatch
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import Host, Scenario
from opsdrill.model.ticket import Ticket, TicketMessage
from opsdrill.patterns import BoundedSearcher

BEGAN = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> {{ 7 * 7 }} \x1b[31mred\x1b[0m"
    " \u202eevil\u202c zero\u200bwidth nul\x00 </pre></details><style>*{display:none}</style>"
)
LONG = "long " * 200_000


def keep(home: Path, spec: RunSpec, record: JobRecord, answers: tuple[HostAnswer, ...] = ()) -> str:
    """Keep a run as it would be after it was graded; gives its id."""
    with BoundedSearcher() as searcher:
        graded = grade(spec.scenario, record, answers, searcher)
    result = Result(
        run=spec.id,
        scenario=spec.scenario.key,
        agent=str(spec.agent),
        scenario_version=spec.scenario_version,
        state="done",
    ).under(graded)
    place = Place(home, home, Settings())
    with opened_store(place) as store:
        store.add(spec, record, answers, result, graded)
    return spec.id


def spec(id: str, scenario: Scenario) -> RunSpec:
    return RunSpec(
        id=id,
        scenario=scenario,
        scenario_version="0" * 64,
        agent=AgentChoice(adapter="recorded", name="recorded"),
        lab=LabChoice(name="practice", driver="fake"),
        created_at=BEGAN,
    )


def large(home: Path, commands: int = 50_000, output: int = 400, id: str = "run-large") -> str:
    """A run of so many commands with so much output each, in tasks of 500 on ten hosts."""
    tasks = []
    for number in range(commands // 500):
        start = BEGAN + timedelta(seconds=10 * number)
        calls = tuple(
            ToolCall(
                kind="shell",
                arguments={"command": f"grep -c needle-{number}-{place} /var/log/app.log"},
                outcome="ran",
                exit_code=(place % 7 == 0 and 1) or 0,
                output=f"line {place}\n" + "x" * output,
                started_at=start + timedelta(milliseconds=18 * place),
                ended_at=start + timedelta(milliseconds=18 * place + 10),
            )
            for place in range(500)
        )
        tasks.append(
            Task(
                id=f"task-{number}",
                turn=number // 10,
                host=f"host-{number % 10}",
                description=f"look at part {number}",
                status="completed",
                started_at=start,
                ended_at=start + timedelta(seconds=9),
                tool_calls=calls,
            )
        )
    scenario = Scenario(
        key="large",
        title="A large run",
        ticket_title="Find the needle",
        hosts=tuple(Host(name=f"host-{n}") for n in range(10)),
        validation=(
            PatternMatch(
                label="finds it",
                validator="pattern_match",
                where="executed_commands",
                pattern=f"needle-{commands // 500 - 1}-499",
            ),
        ),
    )
    record = JobRecord(
        format="opsdrill.job/1",
        job=Job(id="j", status="completed", resolution="success", resolution_reasoning="found"),
        tasks=tuple(tasks),
        coverage=Coverage(default=Seen(state="whole")),
    )
    return keep(home, spec(id, scenario), record)


def hostile(home: Path) -> str:
    """A run in which everything that others write is hostile."""
    start = BEGAN
    calls = (
        ToolCall(
            kind="shell", arguments={"command": f"echo {HOSTILE}"}, outcome="ran", exit_code=1,
            output=HOSTILE + LONG, started_at=start, ended_at=start + timedelta(seconds=1),
        ),
        ToolCall(
            kind="mcp", tool=HOSTILE, server=HOSTILE, arguments={HOSTILE: [HOSTILE]},
            outcome="refused", output=HOSTILE, started_at=start + timedelta(seconds=2),
        ),
        ToolCall(
            kind="write_file", arguments={"path": f"/tmp/{HOSTILE}"}, outcome="ran",
            started_at=start + timedelta(seconds=3), witness="gateway",
        ),
        ToolCall(
            kind="shell", arguments={"command": HOSTILE}, outcome="claimed",
            started_at=start + timedelta(seconds=4),
        ),
    )  # fmt: skip
    task = Task(
        id=HOSTILE, turn=1, host=HOSTILE, agent=HOSTILE, description=HOSTILE, status="completed",
        operational_rules=(HOSTILE,), stop_reason=HOSTILE, summary=HOSTILE, started_at=start,
        ended_at=start + timedelta(seconds=9), tool_calls=calls,
        messages=(AgentMessage(at=start + timedelta(seconds=5), text=HOSTILE + LONG),),
    )  # fmt: skip
    scenario = Scenario(
        key="hostile",
        title=HOSTILE.replace("\x00", ""),
        ticket_title=HOSTILE,
        ticket_body=HOSTILE,
        hosts=(Host(name="web-01"),),
        validation=(
            HostState(label=HOSTILE, validator="host_state", run="true"),
            PatternMatch(
                label="echoes", validator="pattern_match", where="executed_commands",
                pattern="script", negate=True,
            ),
            PatternMatch(
                label="long", validator="pattern_match", where="agent_messages", pattern="long"
            ),
        ),
    )  # fmt: skip
    record = JobRecord(
        format="opsdrill.job/1",
        job=Job(
            id="j", status="completed", resolution="success", resolution_reasoning=HOSTILE,
            plan=HOSTILE,
        ),
        ticket=Ticket(
            title=HOSTILE,
            body=HOSTILE,
            messages=(TicketMessage(author="agent", body=HOSTILE + LONG, name=HOSTILE),),
        ),
        tasks=(task,),
        coverage=Coverage(default=Seen(state="partial", why=HOSTILE)),
        reported_by=HOSTILE,
    )  # fmt: skip
    answer = HostAnswer(on="web-01", run="true", exit_code=1, stdout=HOSTILE + LONG, stderr=HOSTILE)
    run = keep(home, spec("run-hostile", scenario), record, (answer,))
    place = Place(home, home, Settings())
    with opened_store(place) as store:
        facts = HostFacts(name="web-01", driver="fake", shell=HOSTILE, limits={HOSTILE: HOSTILE})
        store.save_host(run, 1, facts, [ChangedFile(path=f"/etc/{HOSTILE}", change="added")])
        store.save_steps(run, 1, "setup", [answer])
    return run
