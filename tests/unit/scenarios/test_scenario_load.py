"""Files -> models: what is found, what is refused, and where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opsdrill.errors import InvalidInput, UsageError
from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.load import (
    load_answers,
    load_model,
    load_record,
    load_scenario,
    parse_scenario,
)

UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""How long an example takes says nothing on a busy machine."""

TEXT = """\
key: web
title: T
ticket_title: Broken
hosts: [web-01]
validation:
  - label: ok
    validator: host_state
    run: "true"
"""


def write(folder: Path, text: str | bytes, name: str = "scenario.yaml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def problems(path: Path) -> list[tuple[str, int | None, int | None, str | None]]:
    with pytest.raises(InvalidInput) as caught:
        load_scenario(path)
    assert all(p.file and p.file.startswith(str(path)) for p in caught.value.problems if p.path)
    return [(p.path, p.line, p.column, p.code) for p in caught.value.problems]


def test_by_folder_and_by_file(tmp_path: Path) -> None:
    """[S1.1] A folder with one scenario file, or that file by any name."""
    file = write(tmp_path, TEXT)
    loaded = load_scenario(tmp_path)
    assert (loaded.path, loaded.folder, loaded.scenario.key) == (file, tmp_path, "web")
    other = write(tmp_path, TEXT, "edited.yaml")
    assert load_scenario(other).scenario == loaded.scenario


@pytest.mark.parametrize("name", ["scenario.yml", "scenario.json"])
def test_other_names_of_the_file(tmp_path: Path, name: str) -> None:
    """[S1.1]"""
    scenario = load_scenario(write(tmp_path, TEXT)).scenario
    (tmp_path / "scenario.yaml").unlink()
    data = scenario.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    write(tmp_path, json.dumps(data), name)
    assert load_scenario(tmp_path).scenario == scenario


def test_two_files_none_and_no_folder(tmp_path: Path) -> None:
    """[S1.1] Two scenario files, none, and no such folder are the operator's mistakes."""
    with pytest.raises(UsageError, match="holds no scenario"):
        load_scenario(tmp_path)
    write(tmp_path, TEXT)
    write(tmp_path, "{}", "scenario.json")
    with pytest.raises(UsageError, match=r"scenario\.yaml and scenario\.json"):
        load_scenario(tmp_path)
    with pytest.raises(UsageError, match="no file or folder"):
        load_scenario(tmp_path / "nowhere")


def test_bom_and_crlf(tmp_path: Path) -> None:
    """[S1.2] [S4.6] A file from a Windows editor says the same; commands get LF."""
    text = TEXT.replace('"true"', "|\n      a\n      b")
    plain = load_scenario(write(tmp_path, text))
    windows = load_scenario(write(tmp_path, b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()))
    assert windows.scenario == plain.scenario
    assert windows.version == plain.version
    as_json = TEXT.replace('"true"', '"a\\r\\nb"')
    assert load_scenario(write(tmp_path, as_json)).scenario.validation[0].run == "a\nb"  # type: ignore[union-attr]


def test_not_utf8(tmp_path: Path) -> None:
    """[S1.2] Names the first wrong byte and its place."""
    path = write(tmp_path, "key: web\ntitle: é ".encode() + "ü".encode("latin-1") + b"\n")
    with pytest.raises(InvalidInput, match="byte 0xfc") as caught:
        load_scenario(path)
    assert [(p.line, p.column) for p in caught.value.problems] == [(2, 10)]


def test_size_is_bounded(tmp_path: Path) -> None:
    """[S1.3] No more is read than may be."""
    path = tmp_path / "scenario.yaml"
    with path.open("wb") as stream:
        stream.truncate(6 * 1024 * 1024)
    with pytest.raises(InvalidInput, match="larger than 5 MiB"):
        load_scenario(path)


def test_all_problems_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    """[S1.4] [S4.1] [S4.3] [S5.3] Fields, unknown keys, hosts and patterns in one go."""
    path = write(
        tmp_path,
        """\
key: Web
titel: x
ticket_title: Broken
hosts: [web-01]
setup:
  - {run: x, on: web-09}
  - {rum: x}
validation:
  - {label: a, validator: pattern_match, where: job_plan, pattern: 'foo('}
  - {label: b, validator: host_state, run: x, on: db}
  - {label: c, validator: zz}
""",
    )
    assert problems(path) == [
        ("title", 1, 1, "OD002"),
        ("key", 1, 6, "OD002"),
        ("titel", 2, 1, "OD002"),
        ("setup[0].on", 6, 18, "OD002"),
        ("setup[1].run", 7, 5, "OD002"),
        ("setup[1].rum", 7, 6, "OD002"),
        ("validation[0].pattern", 9, 68, "OD003"),
        ("validation[1].on", 10, 51, "OD002"),
        ("validation[2].validator", 11, 27, "OD002"),
    ]


def test_the_sentence_names_file_line_path_and_fault(tmp_path: Path) -> None:
    path = write(tmp_path, TEXT.replace("host_state", "hoststate"))
    with pytest.raises(InvalidInput) as caught:
        load_scenario(path)
    assert str(caught.value) == (
        f"the scenario is refused: {path}:7:16: validation[0].validator must be one of "
        "host_state, job_resolution_status, pattern_match, task_count, turns, not 'hoststate'"
    )


def test_what_cannot_be_read_stops_at_its_first_fault(tmp_path: Path) -> None:
    """[S1.4] [S7.1]"""
    assert problems(write(tmp_path, "key: !rm\ntitle: *x\n")) == [("", 1, 6, "OD001")]


def test_a_tag_of_ours_is_no_key_of_theirs() -> None:
    """A key that looks like something internal is still shown as the author wrote it."""
    with pytest.raises(InvalidInput) as caught:
        parse_scenario(
            {"key": "a", "title": "t", "ticket_title": "t", "<host_state>": 1, "[key]": 2}
        )
    assert {p.path for p in caught.value.problems} == {'["<host_state>"]', '["[key]"]'}


def test_short_forms_keep_the_path_as_written() -> None:
    """A problem in a short form names the place that the author wrote, not the long form's."""
    base = {"key": "a", "title": "t", "ticket_title": "t"}
    for part, path in (
        ({"hosts": ["web-01", "Web_2"]}, "hosts[1]"),
        ({"hosts": ["web"], "requires": ["users", "a b"]}, "requires[1]"),
        ({"hosts": ["web"], "requires": {"web": ["sh", 7]}}, "requires.web[1]"),
        ({"hosts": ["web"], "requires": {"db": ["sh"]}}, "requires.db"),
        ({"hosts": ["web"], "requires": {"commands": ["a b"]}}, "requires.commands[0]"),
        ({"hosts": ["web"], "requires": {"by_host": {"d b": []}}}, 'requires.by_host["d b"]'),
    ):
        with pytest.raises(InvalidInput) as caught:
            parse_scenario({**base, **part})
        assert [p.path for p in caught.value.problems][:1] == [path], part


def test_very_many_problems_are_counted_not_shown() -> None:
    """[S1.4] The last one tells where it goes on and how many there are; patterns count too."""
    rule = {"label": "l", "validator": "pattern_match", "where": "job_plan", "pattern": "("}
    with pytest.raises(InvalidInput) as caught:
        parse_scenario({"tags": [1] * 4996, "validation": [rule]})  # three keys are missing
    assert len(caught.value.problems) == 101
    assert [p.message for p in caught.value.problems if "more problems" in p.message] == [
        "is the first of 4900 more problems, which are not shown"
    ]
    assert caught.value.problems[-1].path == "tags[98]"
    assert caught.value.problems[-1].code == "OD002"


def test_record_and_answers(tmp_path: Path) -> None:
    """[S1.3] [S3.2] Files of programs: half a surrogate pair does not lose the record."""
    record = {
        "format": "opsdrill.job/1",
        "job": None,
        "no_job_reason": "x\ud800",
        "coverage": {"default": {"state": "whole"}},
    }
    path = write(tmp_path, json.dumps(record), "job.json")
    assert load_record(path).no_job_reason == "x\ufffd"
    answers = {"answers": [{"on": "web", "run": "true", "exit_code": 0}]}
    path = write(tmp_path, json.dumps(answers), "answers.json")
    assert load_answers(path).answers[0].exit_code == 0


def timed(at: str) -> str:
    """A job record as JSON with a job that was made at a time."""
    record = {
        "format": "opsdrill.job/1",
        "job": {"id": "j", "status": "completed", "created_at": at},
        "coverage": {"default": {"state": "whole"}},
    }
    return json.dumps(record)


@pytest.mark.parametrize(
    ("at", "utc"),
    [
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00+00:00"),
        ("2026-01-31t12:00:00.5z", "2026-01-31T12:00:00.500000+00:00"),
        ("2026-01-31 12:00:00.123456789+05:30", "2026-01-31T06:30:00.123456+00:00"),
        ("2026-01-31T00:00:00-00:00", "2026-01-31T00:00:00+00:00"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00+00:00"),
    ],
)
def test_times_of_a_record(tmp_path: Path, at: str, utc: str) -> None:
    """[S3.3]"""
    job = load_record(write(tmp_path, timed(at), "job.json")).job
    assert job is not None
    assert job.created_at is not None
    assert job.created_at.isoformat() == utc


@pytest.mark.parametrize(
    ("at", "says"),
    [
        ("2026-01-31T12:00:00", "without an offset"),
        ("0001-01-01T00:00:00+02:00", "outside of the years 1 to 9999"),
        ("9999-12-31T23:59:59-02:00", "outside of the years 1 to 9999"),
        *(
            (text, "is not a time like")
            for text in (
                "",
                "2026-01-31",
                "2026-01-31T12:00Z",
                "2026-W05-6T12:00:00Z",
                "20260131T120000Z",
                "2026-01-31T12:00:00,5Z",
                "2026-01-31T12:00:00Z ",
                "2026-01-31T12:00:00+0200",
                "2026-01-31T12:00:00+99:00",
                "2026-13-31T12:00:00Z",
                "2026-01-31T24:00:00Z",
                "0000-01-01T00:00:00Z",
                "٢٠٢٦-01-31T12:00:00Z",
            )
        ),
    ],
)
def test_no_times_of_a_record(tmp_path: Path, at: str, says: str) -> None:
    """[S3.3] What is no moment is refused by its path, whatever Python's own reader makes of it."""
    with pytest.raises(InvalidInput, match=says) as caught:
        load_record(write(tmp_path, timed(at), "job.json"))
    assert [problem.path for problem in caught.value.problems] == ["job.created_at"]


def test_commands_of_answers_have_unix_line_ends(tmp_path: Path) -> None:
    """[S4.6] A command copied from a scenario with CRLF is still the scenario's command."""
    answers = {"answers": [{"on": "web", "run": "a\r\nb", "exit_code": 0}]}
    path = write(tmp_path, json.dumps(answers), "answers.json")
    assert load_answers(path).answers[0].run == "a\nb"


def test_what_must_be_true_is_named_as_it_is_written(tmp_path: Path) -> None:
    """Not in Python's letters."""
    answers = {"answers": [{"on": "web", "run": "a", "timed_out": False}]}
    with pytest.raises(InvalidInput, match=r"answers\[0\]\.timed_out must be true, not false"):
        load_answers(write(tmp_path, json.dumps(answers), "answers.json"))


def test_problems_of_a_record_have_their_place(tmp_path: Path) -> None:
    """[S1.4] Also where the file was read the fast way."""
    text = (
        '{"format": "opsdrill.job/2",\n "job": null,\n "coverage": {"default": {"state": "all"}}}'
    )
    with pytest.raises(InvalidInput, match="the job record is refused") as caught:
        load_record(write(tmp_path, text, "job.json"))
    assert [(p.path, p.line, p.column) for p in caught.value.problems] == [
        ("format", 1, 12),
        ("coverage.default.state", 3, 36),
    ]


def test_a_record_nested_too_deep_is_refused(tmp_path: Path) -> None:
    """[S1.3] Between what the reader takes and what the model takes there is no traceback."""
    for depth in (150, 250, 400, 5000):
        deep = "[" * depth + "]" * depth
        text = (
            '{"format":"opsdrill.job/1","job":{"id":"j","status":"completed"},"tasks":[{"id":"t",'
            '"host":"h","status":"completed","tool_calls":[{"kind":"other","outcome":"ran",'
            f'"arguments":{deep}}}]}}],"coverage":{{"default":{{"state":"whole"}}}}}}'
        )
        path = write(tmp_path, text, "job.json")
        if depth == 150:
            assert load_record(path).tasks
        else:
            with pytest.raises(InvalidInput, match="nested"):
                load_record(path)


def test_json_without_a_suffix_is_told_by_its_start(tmp_path: Path) -> None:
    data = json.dumps({"key": "a", "title": "t", "ticket_title": "t"}, indent=1)
    assert load_model(write(tmp_path, data, "x"), Scenario).key == "a"
    assert (
        load_model(write(tmp_path, "key: a\ntitle: t\nticket_title: t\n", "y"), Scenario).key == "a"
    )


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot open"):
        load_model(tmp_path, Scenario)
    with pytest.raises(UsageError, match="cannot open"):
        load_model(tmp_path / "nowhere.json", Scenario)


def test_a_huge_number_of_seconds_is_refused() -> None:
    """[S5.9] Also one that no float can hold."""
    for seconds in (10**400, -(10**400), 0, True, "5", 604801):
        with pytest.raises(InvalidInput, match=r"limits\.job_seconds must be"):
            parse_scenario(
                {"key": "a", "title": "t", "ticket_title": "t", "limits": {"job_seconds": seconds}}
            )


# --- properties ---

texts = st.sampled_from(
    ["", " ", "web-01", "db", "W", "true", "x\r\ny", "(a", "users", "<host_state>"]
)
keys = st.sampled_from(
    [
        *Scenario.model_fields,
        "run",
        "on",
        "label",
        "validator",
        "pattern",
        "where",
        "min",
        "max",
        "turns",
        "at_least",
        "from",
        "to",
        "when",
        "body",
        "by_host",
        "commands",
        "users",
        "statuses",
        "exit_code",
        "fails",
        "<turns>",
        "[key]",
        "zz",
    ]
)
words = st.sampled_from(
    ["host_state", "turns", "task_count", "pattern_match", "job_resolution_status"]
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-5, 10**9)
    | st.floats()
    | texts
    | words
    | st.text(max_size=3)
)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(keys | st.text(max_size=3), inner, max_size=6)
    ),
    max_leaves=30,
)
SHELL: dict[str, Any] = {"key": "a", "title": "t", "ticket_title": "t"}


@UNTIMED
@given(st.dictionaries(keys, anything, max_size=8), st.booleans())
def test_any_data_is_a_scenario_or_refused(data: dict[str, object], with_basics: bool) -> None:
    """Never another exception, and every problem says something."""
    try:
        parse_scenario({**data, **SHELL} if with_basics else data)
    except InvalidInput as error:
        assert error.problems
        assert all(problem.message for problem in error.problems)


hosts = st.lists(
    st.sampled_from(["web-01", "web-02", {"name": "db-01", "image": "debian-12"}]),
    unique_by=str,
    min_size=1,
).filter(lambda found: found[0] == "web-01")
step = st.fixed_dictionaries(
    {"run": st.sampled_from(["true", "a\r\nb", "x: y # z", "é \u2028 😀"])},
    optional={
        "on": st.sampled_from(["web-01", None]),
        "user": st.just("root"),
        "timeout": st.sampled_from([1, 2.5]),
        "exit_code": st.integers(0, 255),
    },
)
rule = st.one_of(
    st.fixed_dictionaries(
        {
            "validator": st.just("host_state"),
            "label": st.text(min_size=1).filter(str.strip),
            "run": st.just("true"),
        },
        optional={"on": st.just("web-01"), "required": st.booleans()},
    ),
    st.fixed_dictionaries(
        {"validator": st.just("task_count"), "label": st.just("l"), "min": st.integers(0, 3)},
        optional={"max": st.integers(3, 9)},
    ),
    st.fixed_dictionaries(
        {
            "validator": st.just("turns"),
            "label": st.just("l"),
            "turns": st.just([{"hosts": ["web-01"], "at_least": 1}]),
        }
    ),
    st.fixed_dictionaries(
        {
            "validator": st.just("pattern_match"),
            "label": st.just("l"),
            "where": st.just("job_plan"),
            "pattern": st.sampled_from(["a|b", "\\d+", "é"]),
        }
    ),
)
scenarios = st.fixed_dictionaries(
    {
        "key": st.from_regex(r"[a-z0-9][a-z0-9-]{0,20}", fullmatch=True),
        "title": st.just("T"),
        "ticket_title": st.text(),
        "hosts": hosts,
    },
    optional={
        "setup": st.lists(step),
        "tags": st.lists(st.just("a")),
        "validation": st.lists(rule),
        "requires": st.sampled_from([["curl", "users"], {"web-01": ["sh"], "systemd": True}, None]),
    },
)


@UNTIMED
@given(scenarios)
def test_dumped_and_parsed_again_it_is_the_same(data: dict[str, object]) -> None:
    """[S5.11] A scenario written in full is the same scenario, of the same version."""
    try:
        scenario = parse_scenario(data)
    except InvalidInput as error:
        assert all("surrogate" in p.message or "Unicode" in p.message for p in error.problems)
        return
    for by_default in (True, False):
        dumped = scenario.model_dump(mode="json", by_alias=True, exclude_defaults=by_default)
        again = parse_scenario(json.loads(json.dumps(dumped)))
        assert again == scenario
        assert again.version({"f": "1"}) == scenario.version({"f": "1"})


def test_version_follows_content_and_files(tmp_path: Path) -> None:
    """[S5.11]"""
    (tmp_path / "tool").write_bytes(b"1")
    text = f"{TEXT}files:\n  - {{from: tool, to: /opt/tool}}\n"
    first = load_scenario(write(tmp_path, text)).version
    same = f"# a comment\n{text}tags: []\nsetup:\n".replace("[web-01]", "[{name: web-01}]")
    assert load_scenario(write(tmp_path, same)).version == first
    assert load_scenario(write(tmp_path, text.replace("title: T", "title: U"))).version != first
    (tmp_path / "tool").write_bytes(b"2")
    assert load_scenario(write(tmp_path, text)).version != first


@pytest.mark.parametrize(
    ("count", "size", "allowed"),
    [(2000, 9, True), (2001, 9, False), (25, 4000, True), (25, 4001, False)],
)
def test_patterns_are_bounded_altogether(count: int, size: int, allowed: bool) -> None:
    """[S7.3] So that a scenario is looked at in seconds, whoever sent it."""
    rule = {"label": "x", "validator": "pattern_match", "where": "executed_commands"}
    rules = [{**rule, "label": f"{n}", "pattern": f"{n:x<{size}}"} for n in range(count)]
    data = {"key": "a", "title": "t", "ticket_title": "t", "hosts": ["a"], "validation": rules}
    if allowed:
        assert len(parse_scenario(data).validation) == count
        return
    with pytest.raises(InvalidInput) as refused:
        parse_scenario(data)
    assert [problem.path for problem in refused.value.problems] == [
        f"validation[{count - 1}].pattern"
    ]
    assert "2000 patterns with 100000 characters" in refused.value.problems[0].message
