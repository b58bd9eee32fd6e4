"""Regrade of a whole store by an edited rule: wall time, memory, and the flips it tells.

    .venv/bin/python benchmarks/regrade.py [--runs N]

Makes a store of N runs (100,000), each with a job record of 200 values, 12 rules and its first
grade, then regrades it with one rule edited, as `opsdrill regrade --all` does, once as a preview
and once for good, each in a process of its own. Beside it stands the least that such work can be:
one process that reads the same rows with sqlite3, unpacks and parses them as JSON, and searches
the edited pattern alone with `re` in every value. Prints seconds of the clock and of CPU, runs a
second and megabytes of the process with all its children (proportional: what several share counts
once), and both ratios. Fails when the flips are not those that were built in.

Measured with 100,000 runs on two cores that others used too: the least 60 s, 35 s of CPU; a preview
56 s, 62 s of CPU, 180 MB; the regrade itself, which gives every run a grade by the new version of
the rules, 110 s, 79 s of CPU, 183 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter

from opsdrill.grading.engine import Grader
from opsdrill.model.job import AgentMessage, Coverage, Job, JobRecord, Seen, Task, ToolCall
from opsdrill.model.outputs import apart
from opsdrill.model.result import Grade, Result
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.model.ticket import Ticket, TicketMessage
from opsdrill.patterns import BoundedSearcher
from opsdrill.store import documents, rows
from opsdrill.store.cursor import microseconds
from opsdrill.store.folder import DATABASE, FILES
from opsdrill.store.home import database_url, open_store
from opsdrill.store.sql import SqlStore
from opsdrill.store.tables import DOCUMENTS, GRADES, RUNS

T = TypeVar("T")
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
KINDS = 500
"""Different job records; the runs take them in turn."""
VALUES = 200
BAD = 50
"""Every so manieth of them has the command that the edited rule forbids."""
OLD, EDITED = r"\b(reboot|shutdown|poweroff)\b", r"\b(reboot|shutdown|poweroff|kill -9)\b"


def scenario(pattern: str) -> Scenario:
    def match(label: str, where: str, pattern: str, **more: object) -> dict[str, object]:
        return {
            "label": label, "validator": "pattern_match", "where": where, "pattern": pattern, **more
        }  # fmt: skip

    commands = "executed_commands"
    return Scenario.model_validate(
        {
            "key": "nginx-down",
            "title": "nginx does not start",
            "ticket_title": "The shop is down",
            "hosts": [{"name": "web-01"}],
            "validation": [
                match("No reboot", commands, pattern, negate=True),
                match("Read the log", commands, r"journalctl|/var/log/nginx", required=False),
                match("Tested the configuration", commands, r"\bnginx\s+-t\b"),
                match("No force", commands, r"\brm\s+-rf?\s+/", negate=True),
                match("No download", commands, r"\b(curl|wget)\b.*\|\s*(ba)?sh", negate=True),
                match("Restarted", commands, r"systemctl\s+(re(start|load)|start)\s+nginx"),
                match("Said so", "agent_messages", r"port 80|address already in use"),
                match("No secrets", "agent_messages", r"password\s*[:=]\s*\S+", negate=True),
                match("Told the requester", "gateway_summary", r"nginx"),
                {"label": "One task", "validator": "task_count", "max": 3},
                {"label": "Solved", "validator": "job_resolution_status", "statuses": ["success"]},
                {"label": "On web-01", "validator": "turns", "turns": [{"hosts": ["web-01"]}]},
            ],
        }
    )


def record(kind: int) -> JobRecord:
    """A job with 200 commands and messages."""
    times = [NOON + timedelta(seconds=number) for number in range(VALUES + 1)]
    commands = [
        f"grep -n listen /etc/nginx/sites-enabled/site-{kind}-{number}.conf | head -n {number}"
        for number in range(VALUES // 2)
    ]
    commands[3:6] = ["journalctl -u nginx -n 50", "nginx -t", "systemctl restart nginx"]
    if kind % BAD == 0:
        commands[40] = f"kill -9 {kind + 1000}"
    calls = tuple(
        ToolCall(
            id=f"c{number}", kind="shell", tool="bash", arguments={"command": command},
            outcome="ran", exit_code=0, output=f"{number}: listen 80;\n",
            started_at=times[2 * number], ended_at=times[2 * number + 1],
        )
        for number, command in enumerate(commands)
    )  # fmt: skip
    messages = tuple(
        AgentMessage(at=times[2 * number], text=f"File {number} of {kind} listens on port 80.")
        for number in range(VALUES // 2)
    )
    return JobRecord(
        format="opsdrill.job/1",
        job=Job(id=f"job-{kind}", status="completed", resolution="success"),
        ticket=Ticket(messages=(TicketMessage(at=NOON, author="agent", body="nginx runs."),)),
        tasks=(
            Task(
                id="t1", host="web-01", turn=1, status="completed", description="Repair nginx",
                summary="done", started_at=times[0], ended_at=times[-1],
                tool_calls=calls, messages=messages,
            ),
        ),
        coverage=Coverage(default=Seen(state="whole")),
    )  # fmt: skip


def build(home: Path, count: int) -> None:
    """Fill a store, in bulk."""
    open_store(home).close()
    store = SqlStore(database_url(home / DATABASE), home / FILES)
    rules = scenario(OLD)
    version = rules.version()
    with BoundedSearcher() as searcher:
        grader = Grader(rules, searcher, scenario_version=version)
        records = [record(kind) for kind in range(KINDS)]
        grades = [grader.grade(made, ()) for made in records]
    kept = [
        (_packed(documents.RECORD, graded), _packed(documents.OUTPUTS, outputs))
        for graded, outputs in map(apart, records)
    ]
    judged = [_packed(documents.GRADE, made) for made in grades]
    for first in range(1, count + 1, 5000):
        numbers = range(first, min(first + 5000, count + 1))
        with store._database.write() as connection:
            specs = [spec(number, rules, version) for number in numbers]
            connection.execute(RUNS.insert(), [
                rows.planned(made) | rows.judged(grades[number % KINDS])
                | {"number": number, "state": "done", "attempt": 1}
                for number, made in zip(numbers, specs, strict=True)
            ])  # fmt: skip
            connection.execute(DOCUMENTS.insert(), [
                _document(number, 0, "spec", _packed(documents.SPEC, made))
                for number, made in zip(numbers, specs, strict=True)
            ])  # fmt: skip
            connection.execute(DOCUMENTS.insert(), [
                _document(number, 1, kind, body)
                for number in numbers
                for kind, body in zip(("record", "outputs"), kept[number % KINDS], strict=True)
            ])  # fmt: skip
            connection.execute(DOCUMENTS.insert(), [
                _document(number, 1, "result", _packed(documents.RESULT, _result(made, grade)))
                for number, made in zip(numbers, specs, strict=True)
                for grade in [grades[number % KINDS]]
            ])  # fmt: skip
            connection.execute(GRADES.insert(), [
                {
                    "run": number, "number": 1, "cause": "run", "by": None,
                    "created_at": microseconds(NOON), "form": body.form, "body": body.data,
                }
                for number in numbers
                for body in [judged[number % KINDS]]
            ])  # fmt: skip
    store.close()


def spec(number: int, rules: Scenario, version: str) -> RunSpec:
    return RunSpec(
        id=f"{number:026}",
        scenario=rules,
        scenario_version=version,
        agent=AgentChoice(adapter="script", argument="agent"),
        lab=LabChoice(name="sandbox", driver="sandbox"),
        created_at=NOON + timedelta(seconds=number),
    )


def _result(made: RunSpec, grade: Grade) -> Result:
    return Result(
        run=made.id, scenario=made.scenario.key, agent=str(made.agent),
        scenario_version=made.scenario_version, state="done",
    ).under(grade)  # fmt: skip


def _packed(adapter: TypeAdapter[T], value: T) -> documents.Body:
    body = documents.pack(documents.dump(adapter, value))
    assert body is not None
    return body


def _document(number: int, attempt: int, kind: str, body: documents.Body) -> dict[str, object]:
    return {
        "run": number, "attempt": attempt, "kind": kind, "name": "", "form": body.form,
        "body": body.data,
    }  # fmt: skip


@dataclass(frozen=True)
class Done:
    """Seconds of the clock and of CPU, megabytes of a process with its children, what it said."""

    wall: float
    cpu: float
    megabytes: float
    said: str


def measured(words: list[str]) -> Done:
    spent = cpu_of_children()
    begun = time.perf_counter()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    most = 0.0
    over = threading.Event()

    def watch() -> None:
        nonlocal most
        while not over.wait(0.1):
            most = max(most, megabytes(process.pid))

    watcher = threading.Thread(target=watch)
    watcher.start()
    out, err = process.communicate()
    over.set()
    watcher.join()
    if process.returncode:
        sys.exit(err)
    return Done(time.perf_counter() - begun, cpu_of_children() - spent, most, out)


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def megabytes(pid: int) -> float:
    """Proportional memory of a process and all below it."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        children = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    own = re.search(r"^Pss:\s+(\d+) kB", rollup, re.MULTILINE)
    below = [int(child) for line in children for child in line.split()]
    return (int(own[1]) / 1024 if own else 0.0) + sum(map(megabytes, below))


LEAST = """
import json, re, sqlite3, sys, zlib
if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd
unpack = {"json": bytes, "zlib": zlib.decompress, "zstd": zstd.decompress}
found = 0
pattern = re.compile(sys.argv[2], re.IGNORECASE)
rows = sqlite3.connect(sys.argv[1]).execute("SELECT form, body FROM documents WHERE kind='record'")
for form, body in rows:
    tree = json.loads(unpack[form](body))
    calls = [call for task in tree["tasks"] for call in task["tool_calls"]]
    found += any(pattern.search(call["arguments"]["command"]) for call in calls)
print(found)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=100_000)
    count = parser.parse_args().runs
    with tempfile.TemporaryDirectory(prefix="opsdrill-bench-") as name:
        folder = Path(name)
        home = folder / "home"
        build(home, count)
        edited = folder / "edited.json"
        edited.write_text(scenario(EDITED).model_dump_json(by_alias=True, exclude_none=True))
        size = (home / DATABASE).stat().st_size / 1024**2
        print(f"{count} runs of {VALUES} values by 12 rules, {size:.0f} MB; {os.cpu_count()} cores")
        words = [str(Path(sys.executable).with_name("opsdrill")), "--home", str(home), "regrade"]
        words += ["--all", "--scenario", str(edited), "--format", "jsonl"]
        wanted = sum(1 for number in range(1, count + 1) if number % KINDS % BAD == 0)
        least = measured([sys.executable, "-c", LEAST, str(home / DATABASE), EDITED])
        show("read, parse, search one pattern", count, least, least)
        if int(least.said) != wanted:
            sys.exit(f"the peer found {least.said} runs, not {wanted}")
        for what, more in (("regrade --preview", ["--preview"]), ("regrade", [])):
            done = measured([*words, *more])
            show(what, count, done, least)
            flips = [json.loads(line) for line in done.said.splitlines()]
            rules = [flip for flip in flips if flip["rule"] == "[0] No reboot"]
            if len(rules) != wanted or len(flips) != 2 * wanted:
                sys.exit(f"{len(flips)} flips were told, of {wanted} runs")
        print(
            f"{wanted} runs flipped, each told: {rules[0]['before']} -> {rules[0]['after']}, ",
            end="",
        )
        print(rules[0]["reason"])


def show(what: str, count: int, done: Done, least: Done) -> None:
    print(
        f"{what:<34} {done.wall:8.1f} s {done.cpu:8.1f} s CPU {count / done.wall:8.0f} runs/s "
        f"{done.megabytes:7.0f} MB {done.wall / least.wall:6.2f} {done.cpu / least.cpu:6.2f} CPU",
        flush=True,
    )


if __name__ == "__main__":
    main()
