"""Evidence in every store: keyed by run and attempt; what is kept stays."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from pydantic import JsonValue

from opsdrill.model.event import (
    JobCreated,
    JobEnded,
    JobEvent,
    Posted,
    Said,
    ToolCalled,
    ToolReturned,
)
from opsdrill.model.host import ChangedFile, HostAnswer, HostFacts
from opsdrill.model.job import Coverage, Job, JobRecord, Seen, Task, ToolCall
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.store.store import Owner, Store

NOON = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
US = Owner(machine="m", boot="b", pid=4711, started=99)


@pytest.fixture
def run(store: Store) -> str:
    store.plan(
        RunSpec(
            id="r1",
            scenario=Scenario(key="disk-full", title="A full disk", ticket_title="Help"),
            scenario_version="v",
            agent=AgentChoice(adapter="noop"),
            lab=LabChoice(name="sandbox", driver="sandbox"),
            created_at=NOON,
        )
    )
    assert store.begin("r1", US) == 1
    return "r1"


def said(text: str) -> Said:
    return Said(at=NOON, task="t", text=text)


def noise(size: int) -> str:
    """Text that cannot be packed much."""
    return random.Random(size).randbytes(size // 2).hex()


def record(summary: str = "done") -> JobRecord:
    call = ToolCall(
        kind="mcp", tool="ask", server="s", arguments={"b": [1, None, 2.5], "a": {"deep": ["x"]}},
        outcome="ran", started_at=NOON,
    )  # fmt: skip
    task = Task(id="t", host="web-01", status="completed", summary=summary, tool_calls=(call,))
    return JobRecord(
        format="opsdrill.job/1",
        job=Job(id="j", status="completed", resolution="success", created_at=NOON),
        tasks=(task,),
        coverage=Coverage(default=Seen(state="whole")),
    )


def answer(stdout: str = "ok") -> HostAnswer:
    return HostAnswer(on="web-01", run="true", exit_code=0, stdout=stdout, started_at=NOON)


def test_events_come_back_in_order_after_a_number(store: Store, run: str) -> None:
    events: list[tuple[int, JobEvent]] = [
        (0, JobCreated(at=NOON, job="j")),
        (1, ToolCalled(task="t", call="c", kind="shell", arguments={"command": "ls"})),
        (2, ToolReturned(task="t", call="c", outcome="ran", exit_code=0, output="a\nb")),
        (3, JobEnded(status="completed")),
    ]
    store.append_events(run, 1, events[2:])
    store.append_events(run, 1, events[:2])
    assert list(store.events(run)) == events
    assert list(store.events(run, after=1)) == events[2:]
    assert list(store.events(run, after=3)) == []


def test_numbers_that_cannot_be_find_nothing(store: Store, run: str) -> None:
    """A front end hands on what its caller gave as the last number seen."""
    store.append_events(run, 1, [(0, said("one"))])
    assert list(store.events(run, after=2**80)) == []
    assert list(store.events(run, attempt=2**80)) == []
    assert list(store.events(run, attempt=-1)) == []
    assert len(list(store.events(run, after=-(2**60)))) == 1


def test_several_threads_use_one_store(store: Store, run: str) -> None:
    def work(thread: int) -> int:
        first = thread * 100
        for seq in range(first, first + 100, 10):
            store.append_events(run, 1, [(seq + n, said(f"{seq + n}")) for n in range(10)])
            assert len(list(store.events(run, after=first - 1))) >= seq - first
        return thread

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(4))) == [0, 1, 2, 3]
    assert list(store.events(run)) == [(n, said(f"{n}")) for n in range(400)]


def test_an_event_that_is_kept_stays(store: Store, run: str) -> None:
    """Rows keyed (run, attempt, seq), insert-or-ignore."""
    store.append_events(run, 1, [(0, said("first"))])
    store.append_events(run, 1, [(0, said("second")), (1, said("third"))])
    store.append_events(run, 1, [])
    assert list(store.events(run)) == [(0, said("first")), (1, said("third"))]


def test_events_are_those_of_the_latest_attempt_or_the_one_named(store: Store, run: str) -> None:
    store.append_events(run, 1, [(0, said("one"))])
    store.interrupt(run, "lost")
    assert list(store.events(run)) == [(0, said("one"))]
    store.begin(run, US)
    assert list(store.events(run)) == []
    store.append_events(run, 2, [(0, said("two"))])
    assert list(store.events(run)) == [(0, said("two"))]
    assert list(store.events(run, attempt=1)) == [(0, said("one"))]


def test_many_events_and_large_ones(store: Store, run: str) -> None:
    """Longer than one page of the store, and bodies too long for a row."""
    events: list[tuple[int, JobEvent]] = [(n, said(f"line {n}")) for n in range(1234)]
    events += [(1234, said("x" * 2_000_000)), (1235, said(noise(200_000))), (1236, said("end"))]
    store.append_events(run, 1, events)
    assert list(store.events(run)) == events
    assert list(store.events(run, after=1234)) == events[1235:]


@pytest.mark.parametrize(
    "text",
    ["nul\0", "half \ud83d pair", "\udcff\udcfe", "\x1b[31m\u202e", "😀", "\\ud83d", ""],
    ids=ascii,
)
def test_any_text_reads_back_as_it_was(store: Store, run: str, text: str) -> None:
    """NUL characters and lone surrogates in evidence: never an exception from the store."""
    said_it = said(text)
    call = ToolCalled(task="t", call="c", kind="other", arguments={"x": [text], "y": {"z": text}})
    posted = Posted(author="requester", body=text)
    store.append_events(run, 1, [(0, said_it), (1, call), (2, posted)])
    store.save_record(run, 1, record(text))
    store.save_answers(run, 1, [answer(text)])
    store.save_steps(run, 1, text, [answer(text)])
    facts = HostFacts(name=text, driver="fake", shell="bash", limits={text: text})
    changed = ChangedFile(path=text, change="added", size=1)
    store.save_host(run, 1, facts, [changed])
    assert list(store.events(run)) == [(0, said_it), (1, call), (2, posted)]
    assert store.record(run) == record(text)
    assert store.answers(run) == [answer(text)]
    assert store.steps(run, text) == [answer(text)]
    assert store.hosts(run) == [(facts, (changed,))]


@pytest.mark.parametrize("value", [10**400, -1, 0.1, True, None, [], {}, "1"], ids=repr)
def test_arguments_keep_their_type(store: Store, run: str, value: JsonValue) -> None:
    call = ToolCalled(task="t", call="c", kind="other", arguments=value)
    store.append_events(run, 1, [(0, call)])
    assert list(store.events(run)) == [(0, call)]


def test_a_record_is_sealed_once(store: Store, run: str) -> None:
    """Evidence is sealed before grading: a second record of the attempt changes nothing."""
    assert store.record(run) is None
    store.save_record(run, 1, record("first"))
    store.save_record(run, 1, record("second"))
    assert store.record(run) == record("first")


def test_a_large_record(store: Store, run: str) -> None:
    large = record(noise(3_000_000))
    store.save_record(run, 1, large)
    assert store.record(run) == large


def test_the_size_of_a_record_is_told_without_reading_it(store: Store, run: str) -> None:
    """Of one that was never sealed that of its events; of a sealed one however it is packed."""
    assert store.record_size(run) == 0
    store.append_events(run, 1, [(0, said("a word")), (1, said("another"))])
    assert 50 < store.record_size(run) < 1000
    store.save_record(run, 1, record("short"))
    assert 100 < store.record_size(run) < 2000


@pytest.mark.parametrize("text", ["x" * 3_000_000, noise(3_000_000)], ids=["packs well", "noise"])
def test_the_size_of_a_large_record(store: Store, run: str, text: str) -> None:
    store.save_record(run, 1, record(text))
    assert 3_000_000 < store.record_size(run) < 3_100_000


def test_answers_are_kept_once_in_the_order_asked(store: Store, run: str) -> None:
    assert store.answers(run) == []
    silent = HostAnswer(on="web-02", run="false", unreachable=True, last_answered_at=NOON)
    store.save_answers(run, 1, [answer("b"), silent, answer("a")])
    store.save_answers(run, 1, [answer("later")])
    assert store.answers(run) == [answer("b"), silent, answer("a")]


def test_no_answers_are_answers_too(store: Store, run: str) -> None:
    store.save_answers(run, 1, [])
    store.save_answers(run, 1, [answer()])
    assert store.answers(run) == []


def test_steps_of_a_phase_are_replaced(store: Store, run: str) -> None:
    assert store.steps(run, "setup") == []
    store.save_steps(run, 1, "setup", [answer("1")])
    store.save_steps(run, 1, "setup", [answer("1"), answer("2")])
    store.save_steps(run, 1, "restore", [answer("3")])
    assert store.steps(run, "setup") == [answer("1"), answer("2")]
    assert store.steps(run, "restore") == [answer("3")]


def test_hosts_in_the_order_first_kept_with_what_changed_since_setup(
    store: Store, run: str
) -> None:
    web = HostFacts(name="web-01", driver="fake", shell="bash", limits={"memory": "256 MiB"})
    db = HostFacts(name="db-01", driver="fake", shell="sh")
    assert store.hosts(run) == []
    store.save_host(run, 1, web)
    store.save_host(run, 1, db)
    assert store.hosts(run) == [(web, None), (db, None)]
    changed = (ChangedFile(path="/etc/motd", change="removed"),)
    store.save_host(run, 1, db, changed)
    store.save_host(run, 1, web, [])
    store.save_host(run, 1, db)
    assert store.hosts(run) == [(web, ()), (db, changed)]


def test_evidence_is_that_of_the_latest_attempt(store: Store, run: str) -> None:
    store.save_record(run, 1, record())
    store.save_answers(run, 1, [answer()])
    store.save_steps(run, 1, "setup", [answer()])
    store.save_host(run, 1, HostFacts(name="a", driver="fake", shell="sh"))
    store.interrupt(run, "lost")
    assert store.record(run) == record()
    store.begin(run, US)
    assert store.record(run) is None
    assert (store.answers(run), store.steps(run, "setup"), store.hosts(run)) == ([], [], [])


def test_delete_takes_the_evidence_along(store: Store, run: str) -> None:
    store.append_events(run, 1, [(0, said(noise(100_000)))])
    store.save_record(run, 1, record())
    store.interrupt(run, "lost")
    spec = store.get(run).spec
    store.delete(run)
    store.plan(spec)
    store.begin(run, US)
    assert list(store.events(run)) == []
    assert store.record(run) is None
