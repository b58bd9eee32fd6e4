"""Two witnesses become one record: nothing lost, nothing twice, in order, and the same again."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.evidence.reconcile import Witnessed, reconcile
from opsdrill.evidence.wrapping import unwrapped, without_folder
from opsdrill.model.job import Coverage, Job, JobRecord, Outcome, Seen, Task, ToolCall, ToolKind

START = datetime(2026, 1, 31, 12, tzinfo=UTC)


def at(seconds: float | None) -> datetime | None:
    return None if seconds is None else START + timedelta(seconds=seconds)


def told(
    command: str,
    seconds: float | None = None,
    *,
    kind: ToolKind = "shell",
    outcome: Outcome = "ran",
    exit_code: int | None = 0,
) -> ToolCall:
    key = "command" if kind in ("shell", "mcp", "other") else "path"
    return ToolCall(
        id=command,
        kind=kind,
        arguments={key: command},
        outcome=outcome,
        exit_code=exit_code,
        started_at=at(seconds),
    )


def saw(
    command: str, seconds: float | None = None, host: str = "web-01", **more: object
) -> Witnessed:
    call = told(command, seconds, **more)  # type: ignore[arg-type]
    return Witnessed(host, call.model_copy(update={"id": None, "witness": "gateway"}))


def task(
    *calls: ToolCall, id: str = "t1", host: str = "web-01", began: float | None = None
) -> Task:
    return Task(id=id, host=host, status="completed", started_at=at(began), tool_calls=calls)


def record(*tasks: Task) -> JobRecord:
    return JobRecord(
        format="opsdrill.job/1",
        job=Job(id="j", status="completed"),
        tasks=tasks,
        coverage=Coverage(default=Seen(state="whole")),
    )


GUARDED = ("web-01", "db-01")


def shown(made: JobRecord) -> list[str]:
    """Each call as `task: text (outcome, witness)`."""
    return [
        f"{task.id}: {call.command or call.path or call.kind} ({call.outcome}, {call.witness})"
        for task in made.tasks
        for call in task.tool_calls
    ]


def test_the_same_command_is_one_call_of_both() -> None:
    """With the text, the outcome and the times that the gateway saw, and the agent's own id."""
    seen = saw("systemctl restart nginx", 7, exit_code=3)
    made = reconcile(record(task(told("systemctl restart nginx"))), [seen], guarded=GUARDED)
    [call] = made.record.tasks[0].tool_calls
    assert (call.id, call.witness, call.exit_code) == ("systemctl restart nginx", "both", 3)
    assert call.started_at == at(7)
    assert (made.never_run, made.not_reported) == ((), ())


def test_reported_but_never_run_is_claimed() -> None:
    made = reconcile(record(task(told("a"), told("b"))), [saw("b")], guarded=GUARDED)
    assert shown(made.record) == ["t1: a (claimed, agent)", "t1: b (ran, both)"]
    assert [(one.task, one.host, one.call.command) for one in made.never_run] == [
        ("t1", "web-01", "a")
    ]


def test_run_but_not_reported_is_kept_where_it_happened() -> None:
    seen = [saw("first"), saw("a"), saw("hidden"), saw("b"), saw("last")]
    made = reconcile(record(task(told("a"), told("b"))), seen, guarded=GUARDED)
    assert shown(made.record) == [
        "t1: first (ran, gateway)",
        "t1: a (ran, both)",
        "t1: hidden (ran, gateway)",
        "t1: b (ran, both)",
        "t1: last (ran, gateway)",
    ]
    assert [one.call.command for one in made.not_reported] == ["first", "hidden", "last"]


def test_a_command_of_another_host_is_another_command() -> None:
    made = reconcile(record(task(told("a"))), [saw("a", host="db-01")], guarded=GUARDED)
    assert shown(made.record) == ["t1: a (claimed, agent)", "gateway-db-01: a (ran, gateway)"]
    assert made.record.tasks[1].host == "db-01"


def test_where_something_could_run_unseen_nothing_is_claimed() -> None:
    """Not seen is not false."""
    made = reconcile(record(task(told("a"))), [], guarded=())
    assert shown(made.record) == ["t1: a (ran, agent)"]
    assert made.never_run == ()


def test_refused_calls_and_other_tools_stay_as_reported() -> None:
    calls = (
        told("a", outcome="refused"),
        told("/etc/a", kind="write_file"),
        told("m", kind="mcp"),
        told("b", outcome="claimed"),
    )
    made = reconcile(record(task(*calls)), [], guarded=GUARDED)
    assert made.record.tasks[0].tool_calls == calls
    assert [one.call.command for one in made.never_run] == ["b"]


def test_a_refused_call_that_was_seen_ran() -> None:
    made = reconcile(record(task(told("a", outcome="refused"))), [saw("a")], guarded=GUARDED)
    assert shown(made.record) == ["t1: a (ran, both)"]


def test_a_file_is_the_same_by_its_path() -> None:
    seen = [saw("/etc/a", kind="write_file"), saw("/etc/b", kind="write_file")]
    made = reconcile(record(task(told("/etc/a", kind="update_file"))), seen, guarded=GUARDED)
    assert shown(made.record) == ["t1: /etc/a (ran, both)", "t1: /etc/b (ran, gateway)"]


@pytest.mark.parametrize(
    ("reported", "seen"),
    [
        ("ls -l\n", "ls -l"),
        ("systemctl restart nginx", "bash -lc 'systemctl restart nginx'"),
        ("systemctl restart nginx", '/bin/bash -c "systemctl restart nginx"'),
        ("bash -lc 'ls'", "sh -c ls"),
        ("echo 'a b'", "bash -lc 'echo '\\''a b'\\'''"),
        ("a && b", "bash --login -c 'a && b'"),
        ("make", "cd /srv/app && make"),
        ("make", "bash -lc 'cd /srv/app && make'"),
        ("cd ~ && make", "make"),
        ("cd '/a b'; make test", "bash -c 'make test'"),
        ("a\nb", "bash -c 'a\nb'\n"),
    ],
)
def test_what_a_shell_adds_makes_no_difference(reported: str, seen: str) -> None:
    """The gateway's text is kept: that is what ran."""
    made = reconcile(record(task(told(reported))), [saw(seen)], guarded=GUARDED)
    assert [(c.command, c.witness) for c in made.record.tasks[0].tool_calls] == [(seen, "both")]


@pytest.mark.parametrize(
    ("reported", "seen"),
    [
        ("cd /a && make", "cd /b && make"),
        ("echo hi", "bash -lc 'echo $HI'"),
        ("echo /root", 'bash -lc "echo $HOME"'),
        ("ls", "bash -lc ls; reboot"),
        ("ls", "bash -lc ls && reboot"),
        ("ls", "bash script.sh ls"),
        ("ls", "bash -lc 'ls' && bash -lc 'reboot'"),
        ("make", "cd $(rm -rf /srv) && make"),
        ("make", "cd /a && cd /b && rm -rf x && make"),
        ("rm -rf /tmp/x", "rm -rf /tmp/x /srv"),
        ("", "reboot"),
    ],
)
def test_what_is_not_the_same_is_not_taken_for_it(reported: str, seen: str) -> None:
    made = reconcile(record(task(told(reported))), [saw(seen)], guarded=GUARDED)
    assert [one.call.command for one in made.not_reported] == [seen]
    assert len(made.never_run) == 1


def test_the_exact_text_is_paired_before_what_is_like_it() -> None:
    seen = [saw("bash -lc 'ls'", 1), saw("ls", 2)]
    made = reconcile(record(task(told("ls", 1))), seen, guarded=GUARDED)
    assert [one.call.command for one in made.not_reported] == ["bash -lc 'ls'"]


def test_repeated_commands_are_paired_in_order() -> None:
    seen = [saw("check", n, exit_code=n) for n in range(3)]
    made = reconcile(record(task(*[told("check")] * 3)), seen, guarded=GUARDED)
    assert [call.exit_code for call in made.record.tasks[0].tool_calls] == [0, 1, 2]


@pytest.mark.parametrize(
    ("reported", "seen", "paired"),
    [
        ([100], [10, 101], [101]),
        ([10], [11, 100], [11]),
        ([10, 100], [1, 11, 50, 99], [11, 99]),
        ([None], [5, 6], [5]),
        ([1, 50, 100], [49], [None, 49, None]),
        ([1, 50, 100], [2, 101], [2, None, 101]),
    ],
)
def test_times_decide_where_numbers_differ(
    reported: list[float | None], seen: list[float], paired: list[float | None]
) -> None:
    calls = [told("check", n) for n in reported]
    made = reconcile(record(task(*calls)), [saw("check", n) for n in seen], guarded=GUARDED)
    got = [
        call.started_at if call.witness == "both" else None
        for call in made.record.tasks[0].tool_calls
        if call.witness != "gateway"
    ]
    assert got == [at(n) for n in paired]


def test_an_unreported_call_stands_in_the_task_that_had_begun() -> None:
    tasks = (
        task(told("a", 1), id="t1", began=0),
        task(told("b", 11), id="t2", began=10),
        task(told("c", 21), id="t3", began=20),
    )
    seen = [saw("a", 1), saw("x", 2), saw("y", 10.5), saw("b", 11), saw("z", 30)]
    made = reconcile(record(*tasks), seen, guarded=GUARDED)
    assert shown(made.record) == [
        "t1: a (ran, both)", "t1: x (ran, gateway)", "t2: y (ran, gateway)",
        "t2: b (ran, both)", "t3: z (ran, gateway)", "t3: c (claimed, agent)",
    ]  # fmt: skip


def test_a_task_of_the_gateways_has_an_id_of_its_own() -> None:
    made = reconcile(
        record(task(id="gateway-db-01", host="web-01")), [saw("a", host="db-01")], guarded=GUARDED
    )
    assert [one.id for one in made.record.tasks] == ["gateway-db-01", "gateway-db-01-2"]


COMMANDS = st.sampled_from(
    [
        "ls",
        "ls\n",
        "bash -lc 'ls'",
        "cd /a && ls",
        "cd /b && ls",
        "make",
        "sh -c 'cd /a && make'",
        "",
    ]
)
TIMES = st.none() | st.integers(0, 20).map(float)
CALLS = st.builds(
    lambda command, seconds, kind, outcome: told(command, seconds, kind=kind, outcome=outcome),
    COMMANDS,
    TIMES,
    st.sampled_from(["shell", "shell", "shell", "write_file", "mcp"]),
    st.sampled_from(["ran", "failed", "refused", "claimed"]),
)
HOSTS = st.sampled_from(["web-01", "db-01", "far-01"])
RECORDS = st.lists(st.tuples(HOSTS, st.lists(CALLS, max_size=5), TIMES), max_size=4).map(
    lambda parts: record(
        *(
            task(*calls, id=f"t{number}", host=host, began=began)
            for number, (host, calls, began) in enumerate(parts)
        )
    )
)
SEEN = st.lists(
    st.builds(
        saw,
        COMMANDS,
        TIMES,
        HOSTS,
        kind=st.sampled_from(["shell", "shell", "write_file"]),
        exit_code=st.integers(0, 3),
    ),
    max_size=10,
)
GUARDS = st.sets(HOSTS)


@given(RECORDS, SEEN, GUARDS)
def test_nothing_is_lost_and_nothing_is_there_twice(
    made: JobRecord, seen: list[Witnessed], guarded: set[str]
) -> None:
    got = reconcile(made, seen, guarded=guarded)
    calls = [(t.host, c) for t in got.record.tasks for c in t.tool_calls]
    before = [c for t in made.tasks for c in t.tool_calls]
    both = sum(c.witness == "both" for _, c in calls)
    assert sum(c.witness != "gateway" for _, c in calls) == len(before)
    assert both + sum(c.witness == "gateway" for _, c in calls) == len(seen)
    assert len(got.not_reported) == len(seen) - both
    # Every text that the gateway saw on a host is there, as often as it saw it.
    texts = Counter((host, c.command or c.path) for host, c in calls if c.witness != "agent")
    assert texts == Counter((one.host, one.call.command or one.call.path) for one in seen)


@given(RECORDS, SEEN, GUARDS)
def test_the_order_of_both_is_kept(
    made: JobRecord, seen: list[Witnessed], guarded: set[str]
) -> None:
    """Of reported calls in every task; of what was not reported, on every host."""
    got = reconcile(made, seen, guarded=guarded)
    for old, new in zip(made.tasks, got.record.tasks, strict=False):
        assert [c.id for c in new.tool_calls if c.witness != "gateway"] == [
            c.id for c in old.tool_calls
        ]
    for host in {one.host for one in seen}:
        tasks = [t for t in got.record.tasks if t.host == host]
        inserted = [c for t in tasks for c in t.tool_calls if c.witness == "gateway"]
        assert inserted == [one.call for one in got.not_reported if one.host == host]


@given(RECORDS, SEEN, GUARDS)
def test_reconciling_again_changes_nothing(
    made: JobRecord, seen: list[Witnessed], guarded: set[str]
) -> None:
    once = reconcile(made, seen, guarded=guarded)
    again = reconcile(once.record, seen, guarded=guarded)
    assert again == once
    assert reconcile(made, seen, guarded=guarded) == once


@given(RECORDS, SEEN, GUARDS)
def test_only_what_could_not_run_unseen_is_claimed(
    made: JobRecord, seen: list[Witnessed], guarded: set[str]
) -> None:
    got = reconcile(made, seen, guarded=guarded)
    for one in got.never_run:
        assert one.host in guarded
        assert (one.call.kind, one.call.outcome) == ("shell", "claimed")
    assert JobRecord.model_validate_json(got.record.model_dump_json()) == got.record


def test_many_calls_take_no_longer_each() -> None:
    """Ten thousand of one text, and as many tasks: a quadratic way would not come to an end."""
    count = 10_000
    tasks = [task(told("ls", n), id=f"t{n}", began=n) for n in range(count)]
    seen = [saw("ls" if n % 2 else "bash -lc 'ls'", n + 0.5) for n in range(count)]
    got = reconcile(record(*tasks), seen, guarded=GUARDED)
    assert (got.never_run, got.not_reported) == ((), ())
    other = reconcile(record(*tasks), [saw("x", n) for n in range(count)], guarded=GUARDED)
    assert len(other.not_reported) == count


@given(st.text(alphabet="ab '\"\\$`;&\ncd/-~", max_size=30))
def test_taking_off_what_a_shell_adds_is_sure(command: str) -> None:
    """Whatever the text; and what is quoted for a shell comes back as it was."""
    quoted = "'" + command.replace("'", "'\\''") + "'"
    assert unwrapped(f"bash -lc {quoted}") == unwrapped(command)
    inner = without_folder(command)
    assert inner is None or inner in command
