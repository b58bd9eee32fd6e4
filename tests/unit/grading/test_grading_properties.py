"""What holds for every grade, whatever the rules, the record and the answers are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from random import Random

from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import JsonValue

from opsdrill.grading import score
from opsdrill.grading.engine import grade
from opsdrill.grading.explain import clean, quoted
from opsdrill.grading.turns import turns_of
from opsdrill.model.host import HostAnswer
from opsdrill.model.job import JobRecord, Task
from opsdrill.model.result import Completion, Grade, RuleResult
from opsdrill.model.rules import RESOLUTIONS, WHERES
from opsdrill.model.scenario import Scenario
from opsdrill.patterns import Pattern, Searched

Data = dict[str, JsonValue]

HOSTS = ["web-01", "web-02", "db-01"]
TEXTS = ["", "ls", "RM -rf /", "systemctl stop nginx", "grüße", "a\x1b[2J\nb", "\ud800"]
COMMANDS = ["true", "curl -sf localhost"]
TIMES = [f"2026-01-01T00:00:{second:02}Z" for second in range(0, 20, 4)]


class PlainSearcher:
    """Python's own `re`, without a bound."""

    seconds = 1.5

    def search(self, pattern: Pattern, values: Sequence[str]) -> Searched:
        found = [re.search(pattern.text, value, re.IGNORECASE) for value in values]
        return Searched(tuple(match.span() if match else None for match in found))


def one_of(values: Sequence[str]) -> st.SearchStrategy[str]:
    return st.sampled_from(list(values))


def some(strategy: st.SearchStrategy[str]) -> st.SearchStrategy[str | None]:
    return st.none() | strategy


OPTIONAL: dict[str, st.SearchStrategy[bool]] = {"required": st.booleans()}
LABEL = st.just("a rule")
PATTERN_RULES = st.fixed_dictionaries(
    {
        "label": LABEL,
        "validator": st.just("pattern_match"),
        "pattern": one_of(["rm", "^ls$", "nginx|grü", "zzz", "x*"]),
        "where": one_of(WHERES),
        "negate": st.booleans(),
    },
    optional=OPTIONAL,
)
HOST_RULES = st.fixed_dictionaries(
    {
        "label": LABEL,
        "validator": st.just("host_state"),
        "run": one_of(COMMANDS),
        "on": one_of(HOSTS),
        "exit_code": st.sampled_from([0, 1, 137]),
    },
    optional=OPTIONAL,
)
RESOLUTION_RULES = st.fixed_dictionaries(
    {
        "label": LABEL,
        "validator": st.just("job_resolution_status"),
        "statuses": st.lists(one_of(RESOLUTIONS), min_size=1),
    },
    optional=OPTIONAL,
)
COUNT_RULES = st.fixed_dictionaries(
    {
        "label": LABEL,
        "validator": st.just("task_count"),
        "min": st.integers(0, 2),
        "max": st.integers(2, 4),
    },
    optional=OPTIONAL,
)
TURN_ITEMS = st.fixed_dictionaries(
    {"hosts": st.lists(one_of(HOSTS), min_size=1, unique=True)},
    optional={"at_least": st.integers(1, 3)},
)
TURN_RULES = st.fixed_dictionaries(
    {
        "label": LABEL,
        "validator": st.just("turns"),
        "turns": st.lists(TURN_ITEMS, min_size=1, max_size=3),
    },
    optional=OPTIONAL,
)
RULES = PATTERN_RULES | HOST_RULES | RESOLUTION_RULES | COUNT_RULES | TURN_RULES


def scenarios(rules: Sequence[Data]) -> Scenario:
    return Scenario.model_validate(
        {"key": "k", "title": "t", "ticket_title": "t", "hosts": HOSTS, "validation": [*rules]}
    )


def _arguments(call: Data, text: str) -> Data:
    kind = call["kind"]
    key = {"shell": "command", "write_file": "path", "update_file": "path"}.get(str(kind), "other")
    return {**call, "arguments": {key: text}}


CALLS = st.builds(
    _arguments,
    st.fixed_dictionaries(
        {
            "kind": one_of(["shell", "write_file", "update_file", "mcp", "other"]),
            "tool": some(one_of(["bash", "create"])),
            "server": some(st.just("jira")),
            "outcome": one_of(["ran", "failed", "timed_out", "refused", "claimed"]),
            "started_at": some(one_of(TIMES)),
        }
    ),
    one_of(TEXTS),
)
WRITTEN = one_of([text for text in TEXTS if text != "\ud800"])
TASKS = st.fixed_dictionaries(
    {
        "host": one_of(HOSTS),
        "turn": st.none() | st.integers(-1, 3),
        "status": one_of(["completed", "failed", "cancelled", "timed_out", "running", "pending"]),
        "description": some(WRITTEN),
        "summary": some(WRITTEN),
        "stop_reason": some(WRITTEN),
        "operational_rules": st.none() | st.lists(WRITTEN, max_size=2),
        "started_at": some(one_of(TIMES)),
        "ended_at": some(one_of(TIMES)),
        "tool_calls": st.lists(CALLS, max_size=3),
        "messages": st.lists(st.fixed_dictionaries({"text": WRITTEN}), max_size=2),
    }
)
SEEN = st.fixed_dictionaries(
    {"state": one_of(["whole", "partial", "unavailable"]), "why": some(WRITTEN)}
)
COVERAGES = st.fixed_dictionaries(
    {"default": SEEN}, optional=dict.fromkeys([*WHERES, "tasks", "times"], SEEN)
) | st.just({"default": {"state": "whole", "why": None}})
JOBS = st.none() | st.fixed_dictionaries(
    {
        "id": st.just("j"),
        "status": one_of(["completed", "timed_out", "cancelled", "failed"]),
        "resolution": some(one_of(RESOLUTIONS)),
        "resolution_reasoning": some(WRITTEN),
        "plan": some(WRITTEN),
    }
)
MESSAGES = st.fixed_dictionaries(
    {"author": one_of(["agent", "requester"]), "body": WRITTEN, "at": some(one_of(TIMES))}
)
STOPS = st.none() | st.fixed_dictionaries(
    {"reason": WRITTEN, "fault": some(one_of(["agent", "author", "operator", "infrastructure"]))}
)


def _record(
    job: Data | None,
    tasks: list[Data],
    coverage: Data,
    messages: list[Data],
    stop: Data | None,
) -> JobRecord:
    return JobRecord.model_validate(
        {
            "format": "opsdrill.job/1",
            "job": job,
            "tasks": [{**task, "id": f"t{index}"} for index, task in enumerate(tasks)],
            "coverage": coverage,
            "ticket": {"messages": messages},
            "stop": stop,
        }
    )


RECORDS = st.builds(
    _record,
    JOBS,
    st.lists(TASKS, max_size=3),
    COVERAGES,
    st.lists(MESSAGES, max_size=3),
    STOPS,
)
ANSWERS = st.lists(
    st.builds(
        lambda on, run, outcome: HostAnswer.model_validate({"on": on, "run": run, **outcome}),
        one_of(HOSTS),
        one_of(COMMANDS),
        st.sampled_from(
            [
                {"exit_code": 0},
                {"exit_code": 1, "stderr": "\x1b]0;x\x07"},
                {"timed_out": True},
                {"unreachable": True},
                {"dropped": True},
            ]
        ),
    ),
    max_size=5,
)


@given(st.lists(RULES, max_size=4), RECORDS, ANSWERS)
def test_pure(rules: list[Data], record: JobRecord, answers: list[HostAnswer]) -> None:
    """The same three give the same grade, and none of them changes. [G11.1]"""
    scenario = scenarios(rules)
    before = (scenario.model_copy(deep=True), record.model_copy(deep=True), list(answers))
    first = grade(scenario, record, answers, PlainSearcher())
    assert grade(*before, PlainSearcher()) == first
    assert (scenario, record, answers) == before


@given(st.lists(RULES, max_size=4), RECORDS, ANSWERS)
def test_every_grade_explains_itself(
    rules: list[Data], record: JobRecord, answers: list[HostAnswer]
) -> None:
    """A reason for all, safe to print, and a fault for what did not pass. [G1.9, G1.11, G3.2]"""
    given_grade = grade(scenarios(rules), record, answers, PlainSearcher())
    reasons = [rule.reason for rule in given_grade.rules]
    for reason in [given_grade.reason, given_grade.completion.reason, *reasons]:
        assert reason
        assert reason.isprintable()
    if given_grade.verdict == "failed":
        assert given_grade.fault == "agent"
    if record.job is not None:
        assert all((rule.fault is None) == (rule.status == "passed") for rule in given_grade.rules)
        assert (given_grade.fault is None) == (given_grade.verdict == "passed")


@given(st.lists(RULES, max_size=4), RECORDS, ANSWERS)
def test_round_trip(rules: list[Data], record: JobRecord, answers: list[HostAnswer]) -> None:
    """A grade written as JSON and read again is the same grade. [G11.3, G8.19]"""
    made = grade(scenarios(rules), record, answers, PlainSearcher(), scenario_version="abc")
    again = Grade.model_validate_json(made.model_dump_json())
    assert again == made
    assert (again.grading_version, again.scenario_version) == ("1", "abc")


@given(st.lists(RULES, max_size=4), RECORDS, ANSWERS)
def test_fractions(rules: list[Data], record: JobRecord, answers: list[HostAnswer]) -> None:
    """Passed is at most total, and no rule is lost. [G1.4, G1.5, G1.6, G1.7]"""
    made = grade(scenarios(rules), record, answers, PlainSearcher())
    if made.verdict == "error":
        assert made.compliance is None
        assert made.remediation is None
    for fraction, count in (
        (made.compliance, len(rules)),
        (made.remediation, sum(rule["validator"] == "host_state" for rule in rules)),
    ):
        if fraction is not None:
            assert 0 <= fraction.passed <= fraction.total
            assert fraction.total > 0
            assert fraction.total + fraction.not_evaluated == count


@given(st.lists(RULES, max_size=3), RULES, RECORDS, ANSWERS)
def test_an_optional_rule_changes_no_verdict(
    rules: list[Data], rule: Data, record: JobRecord, answers: list[HostAnswer]
) -> None:
    """Unless its host is silent. [G1.3, G1.7, G2.6, G4.6]"""
    without = grade(scenarios(rules), record, answers, PlainSearcher())
    with_it = grade(
        scenarios([*rules, {**rule, "required": False}]), record, answers, PlainSearcher()
    )
    answer = with_it.rules[-1].answer
    if answer is not None and answer.unreachable:
        assert with_it.verdict == "error"
    else:
        assert with_it.verdict == without.verdict


@given(PATTERN_RULES, RECORDS)
def test_negation(rule: Data, record: JobRecord) -> None:
    """Of a rule and its negation one passes, or both are an error, or both fail where nothing
    can be checked. [G7.3, G7.4, G7.6, G7.7, G10.2]"""
    pair = scenarios([{**rule, "negate": False}, {**rule, "negate": True}])
    positive, negated = grade(pair, record, [], PlainSearcher()).rules
    if (positive.status, negated.status) == ("failed", "failed"):
        assert positive.reason == negated.reason
        assert "No tasks to check" in positive.reason or "are unavailable" in positive.reason
    else:
        assert {positive.status, negated.status} in ({"passed", "failed"}, {"error"})
    assert not positive.vacuous
    assert positive.matches == negated.matches


@given(st.lists(RULES, min_size=1, max_size=4), RECORDS, ANSWERS, st.data())
def test_less_coverage_never_decides_otherwise(
    rules: list[Data], record: JobRecord, answers: list[HostAnswer], data: st.DataObject
) -> None:
    """What is held only in part leaves a rule as it was, or undecided. [G10.1, G10.2, G10.4]"""
    assume(all(seen is None or seen.state == "whole" for _, seen in record.coverage))
    name = data.draw(st.sampled_from([*WHERES, "tasks", "times"]))
    partial = {"default": {"state": "whole"}, name: {"state": "partial"}}
    less = JobRecord.model_validate({**record.model_dump(), "coverage": partial})
    before = grade(scenarios(rules), record, answers, PlainSearcher()).rules
    after = grade(scenarios(rules), less, answers, PlainSearcher()).rules
    for whole, cut in zip(before, after, strict=True):
        assert cut.status in (whole.status, "error")
        assert not (cut.vacuous and cut.status != "passed")


VERDICTS = st.sampled_from(["passed", "failed", "error"])
ROWS = st.builds(
    lambda status, required: RuleResult.model_validate(
        {
            "index": 0,
            "label": "l",
            "validator": "task_count",
            "required": required,
            "status": status,
            "reason": "r",
        }
    ),
    VERDICTS,
    st.booleans(),
)
CHECKS = st.builds(
    lambda status: Completion(status=status, reason="r"),
    st.sampled_from(["passed", "failed", "skipped", "error"]),
)


@given(CHECKS, st.lists(ROWS, min_size=1, max_size=5), st.data())
def test_the_verdict_is_monotonic(
    check: Completion, rows: list[RuleResult], data: st.DataObject
) -> None:
    """A rule that fails instead of passing never makes a verdict better. [G1.1, G1.2, G1.3]"""
    at = data.draw(st.integers(0, len(rows) - 1))
    good = [*rows[:at], rows[at].model_copy(update={"status": "passed"}), *rows[at + 1 :]]
    bad = [*rows[:at], rows[at].model_copy(update={"status": "failed"}), *rows[at + 1 :]]
    order = ["failed", "passed"]
    better, worse = score.verdict(check, good), score.verdict(check, bad)
    assert (better == "error") == (worse == "error")
    if better != "error":
        assert order.index(worse) <= order.index(better)


MOMENTS = st.integers(0, 6).map(lambda s: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=s))
TIMED = st.lists(st.tuples(st.none() | MOMENTS, st.none() | MOMENTS), max_size=7)


def _timed(spans: Sequence[tuple[datetime | None, datetime | None]]) -> list[Task]:
    return [
        Task(id=f"t{index}", host="h", status="completed", started_at=start, ended_at=end)
        for index, (start, end) in enumerate(spans)
    ]


@given(TIMED, st.randoms(use_true_random=False))
def test_turns_from_times_do_not_depend_on_order(
    spans: list[tuple[datetime | None, datetime | None]], random: Random
) -> None:
    """The record's order changes nothing. [G9.3]"""
    tasks = _timed(spans)
    shuffled = list(tasks)
    random.shuffle(shuffled)
    assert turns_of(tasks) == turns_of(shuffled)


@given(TIMED)
def test_turns_from_times_part_what_started(
    spans: list[tuple[datetime | None, datetime | None]],
) -> None:
    """Each task that started is in one turn; a turn starts when all before it ended. [G9.3]"""
    tasks = _timed(spans)
    turns = turns_of(tasks)
    found = [task.id for turn in turns for task in turn]
    assert sorted(found) == sorted(task.id for task in tasks if task.started_at)
    never = datetime.max.replace(tzinfo=UTC)
    for index, turn in enumerate(turns):
        earlier = [task.ended_at or never for before in turns[:index] for task in before]
        assert all(task.started_at and task.started_at >= max(earlier) for task in turn if earlier)


@given(st.lists(st.integers(-3, 9), max_size=8))
def test_numbered_turns_part_the_tasks(numbers: list[int]) -> None:
    """One turn a number, ascending, whatever the times. [G9.2]"""
    tasks = [
        Task(id=f"t{index}", host="h", status="completed", turn=number)
        for index, number in enumerate(numbers)
    ]
    turns = turns_of(tasks)
    assert [turn[0].turn for turn in turns] == sorted(set(numbers))
    assert all(len({task.turn for task in turn}) == 1 for turn in turns)
    assert sum(map(len, turns)) == len(tasks)


@given(st.text(max_size=300), st.integers(0, 300), st.integers(0, 20))
def test_quoted_shows_the_place(text: str, start: int, length: int) -> None:
    """A quoted value is printable and bounded, and shows where the match begins. [G3.2]"""
    start = min(start, len(text))
    shown = quoted(text, (start, min(start + length, len(text))))
    assert shown.isprintable()
    assert len(shown) <= 10 * 100 + 8
    if start < len(text) and text[start].isprintable():
        assert text[start] in shown
    assert clean(text).isprintable()
    assert len(clean(text)) <= 400
