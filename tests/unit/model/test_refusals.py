"""What is refused of rules, number by number of docs/reference/grading.md section 12."""

from __future__ import annotations

from typing import Any

import pytest

from opsdrill.errors import InvalidInput
from opsdrill.model.rules import RESOLUTIONS, WHERES
from opsdrill.scenarios.load import parse_scenario

HOST_STATE: dict[str, Any] = {"label": "l", "validator": "host_state", "run": "true"}
STATUS: dict[str, Any] = {
    "label": "l",
    "validator": "job_resolution_status",
    "statuses": ["success"],
}
PATTERN: dict[str, Any] = {
    "label": "l", "validator": "pattern_match", "where": "job_plan", "pattern": "x",
}  # fmt: skip
COUNT: dict[str, Any] = {"label": "l", "validator": "task_count", "max": 0}
TURNS: dict[str, Any] = {"label": "l", "validator": "turns", "turns": [{"hosts": ["web-01"]}]}


def scenario(*rules: object, hosts: list[str] | None = None) -> dict[str, object]:
    return {
        "key": "a",
        "title": "t",
        "ticket_title": "t",
        "hosts": ["web-01", "web-02"] if hosts is None else hosts,
        "validation": list(rules),
    }


def refused(*rules: object, hosts: list[str] | None = None) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        parse_scenario(scenario(*rules, hosts=hosts))
    return [str(problem) for problem in caught.value.problems]


def without(rule: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in rule.items() if name != key}


@pytest.mark.parametrize(
    "rule", [HOST_STATE, STATUS, PATTERN, COUNT, TURNS], ids=lambda r: r["validator"]
)
def test_the_rules_used_here_are_accepted(rule: dict[str, Any]) -> None:
    """What the cases below break is right before."""
    assert len(parse_scenario(scenario(rule)).validation) == 1


def test_path_fault_and_remedy() -> None:
    """[R1] Path, what is wrong, what would be right; every rule's problems at once."""
    rules = (
        HOST_STATE,
        {**HOST_STATE, "exit_code": "0"},
        without(PATTERN, "pattern"),
        {**COUNT, "mx": 1},
    )
    assert refused(*rules) == [
        "validation[1].exit_code must be a whole number, not '0'",
        "validation[2].pattern is missing",
        "validation[3].mx is not a known key here; did you mean `max`?",
    ]


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (5, "validation[0] must be an object, not 5"),
        ("host_state", "validation[0] must be an object, not 'host_state'"),
        (None, "validation[0] must be an object, not null"),
        ([], "validation[0] must be an object, not a list"),
        (without(COUNT, "validator"), "validation[0].validator is missing"),
        ({**COUNT, "validator": "Host_State"}, "not 'Host_State'"),
    ],
)
def test_no_rule(rule: object, says: str) -> None:
    """[R2] No object, or a validator that is missing or unknown."""
    (problem,) = refused(rule)
    assert says in problem


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [("zz", "'zz'"), (None, "null"), (1, "1"), ([], "a list"), ({}, "an object")],
)
def test_unknown_validator(wrong: object, shown: str) -> None:
    """[R2] Names the validators there are."""
    assert refused({**COUNT, "validator": wrong}) == [
        "validation[0].validator must be one of host_state, job_resolution_status, "
        f"pattern_match, task_count, turns, not {shown}"
    ]


@pytest.mark.parametrize(
    ("rule", "key"),
    [
        (HOST_STATE, "pattern"), (STATUS, "min"), (PATTERN, "scope"), (COUNT, "turns"),
        (TURNS, "hosts"), (HOST_STATE, "Run"), (HOST_STATE, ""), (HOST_STATE, "a\nb"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("value", [1, None], ids=["value", "null"])
def test_unknown_key(rule: dict[str, Any], key: str, value: object) -> None:
    """[R3] A key the validator does not know, also with a null under it, and nothing else."""
    (problem,) = refused({**rule, key: value})
    assert problem.startswith(f"validation[0].{key} is" if key.isalpha() else 'validation[0]["')
    assert "is not a known key here" in problem
    assert "\n" not in problem


def test_unknown_key_in_a_turn() -> None:
    """[R3]"""
    turns = [{"hosts": ["web-01"], "atleast": 1}]
    assert refused({**TURNS, "turns": turns}) == [
        "validation[0].turns[0].atleast is not a known key here; did you mean `at_least`?"
    ]


@pytest.mark.parametrize(
    ("rule", "path", "says"),
    [
        ({**HOST_STATE, "exit_code": True}, ".exit_code", "must be a whole number, not true"),
        ({**HOST_STATE, "exit_code": 1.0}, ".exit_code", "must be a whole number, not 1.0"),
        ({**HOST_STATE, "exit_code": "1"}, ".exit_code", "must be a whole number, not '1'"),
        ({**HOST_STATE, "run": ["true"]}, ".run", "must be a text, not a list"),
        ({**HOST_STATE, "run": 5}, ".run", "must be a text, not 5; put it in quotes"),
        ({**HOST_STATE, "run": True}, ".run", "must be a text, not true; put it in quotes"),
        ({**HOST_STATE, "on": 1}, ".on", "must be a text, not 1"),
        ({**HOST_STATE, "required": "yes"}, ".required", "must be true or false, not 'yes'"),
        ({**HOST_STATE, "required": 1}, ".required", "must be true or false, not 1"),
        ({**PATTERN, "negate": "true"}, ".negate", "must be true or false, not 'true'"),
        ({**COUNT, "max": True}, ".max", "must be a whole number, not true"),
        ({**COUNT, "max": 1.0}, ".max", "must be a whole number, not 1.0"),
        ({**STATUS, "statuses": "success"}, ".statuses", "must be a list, not 'success'"),
        ({**TURNS, "turns": {}}, ".turns", "must be a list, not an object"),
        ({**TURNS, "turns": ["web-01"]}, ".turns[0]", "must be an object, not 'web-01'"),
        ({**TURNS, "turns": [{"at_least": True}]}, ".turns[0].at_least", "must be a whole number"),
    ],
)
def test_wrong_type(rule: dict[str, Any], path: str, says: str) -> None:
    """[R4] Nothing is taken for what it is not."""
    (problem,) = refused(rule)
    assert problem.startswith(f"validation[0]{path} {says}")


@pytest.mark.parametrize(
    "rule", [HOST_STATE, STATUS, PATTERN, COUNT, TURNS], ids=lambda r: r["validator"]
)
def test_label(rule: dict[str, Any]) -> None:
    """[R5] A label must be there and not blank; the same one twice is allowed."""
    assert refused(without(rule, "label")) == ["validation[0].label is missing"]
    assert refused({**rule, "label": None}) == ["validation[0].label must be a text, not null"]
    for blank in ("", " ", "\n\t", "\u00a0\u2003"):
        assert refused({**rule, "label": blank}) == ["validation[0].label must not be blank"]
    assert len(parse_scenario(scenario(rule, rule)).validation) == 2


def test_host_state() -> None:
    """[R6] A command that is missing or blank; a status no shell can give."""
    assert refused(without(HOST_STATE, "run")) == ["validation[0].run is missing"]
    assert refused({**HOST_STATE, "run": " \r\n"}) == ["validation[0].run must not be blank"]
    assert refused({**HOST_STATE, "exit_code": 256}) == [
        "validation[0].exit_code must be at most 255, not 256"
    ]
    assert refused({**HOST_STATE, "exit_code": -1}) == [
        "validation[0].exit_code must be at least 0, not -1"
    ]
    for status in (0, 255, None):
        assert parse_scenario(scenario({**HOST_STATE, "exit_code": status})).validation


def test_host_state_on_a_stranger() -> None:
    """[R7] `on` that is no host of the scenario, or a rule in a scenario without hosts."""
    assert refused({**HOST_STATE, "on": "web-09"}) == [
        "validation[0].on 'web-09' is no host of the scenario; its hosts: web-01, web-02"
    ]
    none = "needs a host, but the scenario has no `hosts`"
    assert refused(HOST_STATE, hosts=[]) == [f"validation[0] {none}"]
    assert refused({**HOST_STATE, "on": "web-01"}, hosts=[]) == [f"validation[0].on {none}"]
    assert refused({**HOST_STATE, "on": "Web-01"})[0].startswith(
        "validation[0].on must be a host name"
    )


def test_job_resolution_status() -> None:
    """[R8] Statuses that are missing, empty, or no resolution."""
    assert refused(without(STATUS, "statuses")) == ["validation[0].statuses is missing"]
    assert refused({**STATUS, "statuses": []}) == ["validation[0].statuses must not be empty"]
    assert refused({**STATUS, "statuses": ["success", "solved"]}) == [
        f"validation[0].statuses[1] must be one of {', '.join(RESOLUTIONS)}, not 'solved'"
    ]
    assert parse_scenario(scenario({**STATUS, "statuses": list(RESOLUTIONS)})).validation


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        ({}, "validation[0] needs `min` or `max` or both"),
        ({"min": None, "max": None}, "validation[0] needs `min` or `max` or both"),
        ({"min": -1}, "validation[0].min must be at least 0, not -1"),
        ({"max": -1}, "validation[0].max must be at least 0, not -1"),
        ({"min": 3, "max": 2}, "validation[0].min is 3, more than `max` (2)"),
    ],
)
def test_task_count(bounds: dict[str, Any], says: str) -> None:
    """[R9] No bound, a negative one, bounds that nothing can meet."""
    assert refused({**without(COUNT, "max"), **bounds}) == [says]


def test_task_count_bounds_that_are_right() -> None:
    """[R9] Equal bounds, and no task at all, can be met."""
    for bounds in ({"min": 2, "max": 2}, {"min": 0}, {"max": 0}, {"min": 1, "max": None}):
        assert parse_scenario(scenario({**without(COUNT, "max"), **bounds})).validation


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("", "must not be blank"),
        (" ", "must not be blank"),
        ("foo(", "is no valid pattern: missing ), unterminated subpattern at position 3"),
        ("a**", "is no valid pattern: multiple repeat at position 2"),
        ("[z-a]", "is no valid pattern: bad character range z-a at position 1"),
        ("(?P<a>x)(?P<a>y)", "is no valid pattern: redefinition of group name 'a'"),
        ("a\\z", "is no valid pattern: bad escape \\z at position 1"),
        ("x(?i)", "is no valid pattern: global flags not at the start"),
    ],
)
@pytest.mark.parametrize("negate", [False, True])
def test_pattern(pattern: str, says: str, negate: bool) -> None:
    """[R10] A pattern that could only crash later, or would match nothing for ever."""
    (problem,) = refused({**PATTERN, "pattern": pattern, "negate": negate})
    assert problem.startswith(f"validation[0].pattern {says}")


def test_pattern_missing() -> None:
    """[R10]"""
    assert refused(without(PATTERN, "pattern")) == ["validation[0].pattern is missing"]
    assert refused({**PATTERN, "pattern": None}) == [
        "validation[0].pattern must be a text, not null"
    ]


def test_where() -> None:
    """[R11] A target that is missing or unknown; each known one is accepted."""
    assert refused(without(PATTERN, "where")) == ["validation[0].where is missing"]
    assert refused({**PATTERN, "where": "commands"}) == [
        f"validation[0].where must be one of {', '.join(WHERES)}, not 'commands'"
    ]
    rules = [{**PATTERN, "where": where} for where in WHERES]
    assert len(parse_scenario(scenario(*rules)).validation) == 14


@pytest.mark.parametrize(
    ("turns", "says"),
    [
        ([], "validation[0].turns must not be empty"),
        ([{}], "validation[0].turns[0] needs `hosts` or `at_least` or both"),
        ([{"hosts": None}], "validation[0].turns[0] needs `hosts` or `at_least` or both"),
        ([{"hosts": []}], "validation[0].turns[0].hosts must not be empty"),
        ([{"at_least": 0}], "validation[0].turns[0].at_least must be at least 1, not 0"),
    ],
)
def test_turns(turns: list[dict[str, Any]], says: str) -> None:
    """[R12] Turns that ask for nothing."""
    assert refused({**TURNS, "turns": turns}) == [says]


def test_turns_missing_and_right() -> None:
    """[R12] `at_least` alone, and one smaller than the list, are right."""
    assert refused(without(TURNS, "turns")) == ["validation[0].turns is missing"]
    turns = [{"at_least": 2}, {"hosts": ["web-01", "web-02"], "at_least": 1}]
    assert parse_scenario(scenario({**TURNS, "turns": turns})).validation


def test_turns_hosts() -> None:
    """[R13] A host the scenario does not have, or the same one twice in a turn."""
    turns = [{"hosts": ["web-01"]}, {"hosts": ["web-02", "mon-01"]}]
    assert refused({**TURNS, "turns": turns}) == [
        "validation[0].turns[1].hosts[1] 'mon-01' is no host of the scenario; "
        "its hosts: web-01, web-02"
    ]
    assert refused({**TURNS, "turns": [{"hosts": ["web-01", "web-02", "web-01"]}]}) == [
        "validation[0].turns[0].hosts[2] lists the host 'web-01' a second time"
    ]
    assert refused(TURNS, hosts=[]) == [
        "validation[0].turns[0].hosts[0] needs a host, but the scenario has no `hosts`"
    ]
