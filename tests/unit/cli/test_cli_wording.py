"""How numbers and matches are worded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.app import wording
from opsdrill.cli.main import arranged
from opsdrill.cli.report import status
from opsdrill.errors import UsageError
from opsdrill.model.result import Fraction, Match, Result, RunState, Verdict


def result(verdict: Verdict | None, state: RunState = "done", *, late: bool = False) -> Result:
    return Result(
        run="r",
        scenario="s",
        agent="a",
        scenario_version="v",
        state=state,
        verdict=verdict,
        after_agent=late,
    )


SIX_TWO_TWO = [result("passed")] * 6 + [result("failed")] * 2 + [result("error")] * 2


def test_errors_stand_beside_the_counts_and_in_no_rate() -> None:
    assert wording.tally(SIX_TWO_TWO) == "6 passed, 2 failed, 2 error of 10"
    assert wording.pass_rate(SIX_TWO_TWO) == "pass rate 6 of 8 (75%), without the 2 in error"


def test_a_run_without_a_verdict_is_counted_by_its_state() -> None:
    runs = [result("passed"), result(None, "cancelled"), result(None, "interrupted")]
    assert wording.tally(runs) == "1 passed, 1 cancelled, 1 interrupted of 3"


def test_only_errors_have_no_rate() -> None:
    assert wording.pass_rate([result("error")] * 3) is None


def test_errors_after_the_agent_acted_have_a_line_of_their_own() -> None:
    assert wording.broken_unseen([result("error", late=True), result("error")]) == (
        "1 of the errors began after the agent had acted"
    )
    assert wording.broken_unseen([result("failed"), result("error")]) is None


@given(st.integers(1, 10**6), st.data())
def test_all_is_100_percent_none_is_0_and_nothing_else_is(whole: int, data: st.DataObject) -> None:
    part = data.draw(st.integers(0, whole))
    number = int(wording.percent(part, whole).removesuffix("%"))
    assert (number == 100) == (part == whole)
    assert (number == 0) == (part == 0)
    assert abs(number - 100 * part / whole) <= 1


def test_what_was_not_evaluated_is_said_beside_the_fraction() -> None:
    assert wording.share(Fraction(passed=6, total=7)) == "6/7 (86%)"
    assert wording.share(Fraction(passed=1, total=2, not_evaluated=1)) == (
        "1/2 (50%), 1 not evaluated"
    )
    assert wording.share(Fraction(passed=0, total=0, not_evaluated=3)) == "-"
    assert wording.share(None) == "-"


def test_a_match_is_marked_within_its_surroundings() -> None:
    value = "a" * 100 + "FOUND" + "b" * 100
    match = Match(task="t1", where="tool_calls", item=3, value=value, span=(100, 105))
    assert wording.match_line(match) == (
        f"task t1, tool_calls 3: ...{'a' * 60}>>FOUND<<{'b' * 60}..."
    )


@pytest.mark.parametrize(
    ("verdicts", "fail_on", "expected"),
    [
        (["passed"], None, 0),
        (["failed"], None, 0),
        (["failed"], "failed", 1),
        (["failed"], "never", 0),
        (["passed", "error"], None, 3),
        (["failed", "error"], "failed", 3),
        ([None], "failed", 0),
        ([], "failed", 0),
    ],
)
def test_the_exit_status_of_results(
    verdicts: list[Verdict | None], fail_on: str | None, expected: int
) -> None:
    chosen = {"failed": "failed", "never": "never"}.get(fail_on or "")
    assert status([result(v) for v in verdicts], chosen) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["run", "x", "--debug"], ["--debug", "run", "x"]),
        (["run", "--home", "h", "x"], ["--home", "h", "run", "x"]),
        (["run", "--home=h", "x", "--no-color"], ["--home=h", "--no-color", "run", "x"]),
        (["grade", "--", "--debug"], ["grade", "--", "--debug"]),
    ],
)
def test_options_for_all_commands_may_stand_anywhere(given: list[str], expected: list[str]) -> None:
    assert arranged(given) == expected


def test_home_without_a_folder_is_refused() -> None:
    with pytest.raises(UsageError, match="--home"):
        arranged(["runs", "list", "--home"])


@pytest.mark.parametrize(
    ("warnings", "told"),
    [
        ([], []),
        (["one", "two"], ["one", "two"]),
        (["no host 'a' here"], ["no host 'a' here"]),
        (["no host 'a' here", "no host 'b' here"], ["no host 'a' here; likewise 'b'"]),
        (["x `a`", "other", "x `b`", "x `b`"], ["x `a`; likewise `b`, 1 more", "other"]),
        ([f"x `{n}`" for n in range(9)], ["x `0`; likewise `1`, `2`, `3`, 5 more"]),
        (["same", "same"], ["same; likewise 1 more"]),
        (["x `a``b`", "x `a`"], ["x `a``b`; likewise 1 more"]),
    ],
)
def test_warnings_of_a_kind_are_one(warnings: list[str], told: list[str]) -> None:
    """Those that differ only in names and numbers: the first, and in what some others differ."""
    assert wording.by_kind(warnings) == told
