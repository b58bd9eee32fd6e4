"""Lint: refusals have their codes, checks their places, and good scenarios silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opsdrill.errors import Problem, UsageError
from opsdrill.scenarios.lint import CHECKS, RECORDED_CHECKS, WRITTEN_CHECKS, lint_path
from opsdrill.scenarios.lint.shell import last_of_pipe

HEAD = "key: a\ntitle: t\nticket_title: t\nhosts: [web-01, web-02]\n"


def lint(tmp_path: Path, rest: str, head: str = HEAD) -> list[Problem]:
    (tmp_path / "scenario.yaml").write_text(head + rest)
    return lint_path(tmp_path)


def found(tmp_path: Path, rest: str) -> list[tuple[str | None, str, str, int | None, int | None]]:
    return [(p.code, p.severity, p.path, p.line, p.column) for p in lint(tmp_path, rest)]


@pytest.mark.parametrize(
    ("rest", "code", "line", "column"),
    [
        pytest.param("tags: !x\n", "OD001", 5, 7, id="[S7.1]"),
        pytest.param("tags: x\n", "OD002", 5, 7, id="[S7.2]"),
        pytest.param("replies: [{when: '(', body: x}]\n", "OD003", 5, 18, id="[S7.3]"),
        pytest.param("files: [{from: x, to: /x}]\n", "OD004", 5, 16, id="[S7.4]"),
    ],
)
def test_refusals(tmp_path: Path, rest: str, code: str, line: int, column: int) -> None:
    """[S7.1, S7.2, S7.3, S7.4] What refuses a scenario is an error with a code and a place."""
    (problem,) = lint(tmp_path, rest)
    assert (problem.code, problem.severity) == (code, "error")
    assert (problem.line, problem.column) == (line, column)
    assert str(problem).startswith(f"{tmp_path}/scenario.yaml:{line}:{column}: ")


def test_same_label(tmp_path: Path) -> None:
    """[S7.6] At the second one, naming the first."""
    rest = "validation:\n" + "".join(
        f"  - {{label: {label}, validator: task_count, max: 1}}\n" for label in ("a", "b", "a", "a")
    )
    assert found(tmp_path, rest) == [
        ("OD010", "warning", "validation[2].label", 8, 13),
        ("OD010", "warning", "validation[3].label", 9, 13),
    ]
    assert "validation[0]" in lint(tmp_path, rest)[1].message


@pytest.mark.parametrize(
    ("statuses", "required", "warned"),
    [
        ("[hard_failure]", "true", True),
        ("[hard_failure, hard_failure]", "true", True),
        ("[hard_failure]", "false", False),
        ("[hard_failure, agentic_failure]", "true", False),
        ("[hard_failure, success]", "true", False),
        ("[agentic_failure]", "true", False),
    ],
)
def test_only_hard_failure(tmp_path: Path, statuses: str, required: str, warned: bool) -> None:
    """[S7.7] Only where the scenario really can never pass."""
    rest = (
        f"validation:\n  - label: a\n    validator: job_resolution_status\n"
        f"    statuses: {statuses}\n    required: {required}\n"
    )
    expected = [("OD011", "warning", "validation[0].statuses", 8, 15)] if warned else []
    assert found(tmp_path, rest) == expected


@pytest.mark.parametrize(
    ("negate", "outcome"), [("true", "always passes"), ("false", "always fails")]
)
def test_task_plan(tmp_path: Path, negate: str, outcome: str) -> None:
    """[S7.8]"""
    rest = (
        "validation:\n  - {label: a, validator: pattern_match, where: job_plan, pattern: x}\n"
        "  - {label: b, validator: pattern_match, pattern: x, where: task_plan, "
        f"negate: {negate}}}\n"
    )
    (problem,) = lint(tmp_path, rest)
    assert (problem.code, problem.path, problem.line) == ("OD012", "validation[1].where", 7)
    assert outcome in problem.message


def test_at_least(tmp_path: Path) -> None:
    """[S7.9] Smaller than the list; equal, larger or alone say something."""
    rest = """\
validation:
  - label: a
    validator: turns
    turns:
      - {hosts: [web-01, web-02], at_least: 2}
      - {hosts: [web-01, web-02], at_least: 1}
      - {hosts: [web-01], at_least: 5}
      - {at_least: 1}
"""
    assert found(tmp_path, rest) == [
        ("OD013", "warning", "validation[0].turns[1].at_least", 10, 45)
    ]


def test_pipes(tmp_path: Path) -> None:
    """[S7.10] [S7.11] In the checks; a setup step may do as it likes."""
    rest = """\
setup:
  - run: curl -s localhost | cat
ready:
  - run: curl -s localhost | cat
validation:
  - {label: a, validator: host_state, run: curl -s localhost | cat}
  - {label: b, validator: host_state, run: ss -ltn | grep -q 80}
  - {label: c, validator: host_state, run: "set -o pipefail; curl -s localhost | cat"}
"""
    assert found(tmp_path, rest) == [
        ("OD014", "warning", "ready[0].run", 8, 10),
        ("OD014", "warning", "validation[0].run", 10, 44),
        ("OD014", "note", "validation[1].run", 11, 44),
    ]


@pytest.mark.parametrize(
    ("run", "last"),
    [
        ("a | b", "b"),
        ("a|b|c -x", "c"),
        ("a |& b", "b"),
        ("a | sudo LANG=C tee x", "tee"),
        ("a |\n  b", "b"),
        ("a && b | c", "c"),
        ("cat <<END | wc -l\na | b\nEND", "wc"),
        ("a || b", None),
        ("a", None),
        ("grep -E 'a|b' x", None),
        ('grep -E "a|\\"|b" x', None),
        ("echo a\\|b", None),
        ("a # b | c", None),
        ("a >| b", None),
        ("cat <<END\na | b\nEND", None),
        ("cat <<'END'\na | b\nEND", None),
        ("case $x in a|b) true;; esac", None),
        ("[[ $x =~ a|b ]]", None),
        ("a | b; test ${PIPESTATUS[0]} = 0", None),
        ("set -euo pipefail\na | b", None),
    ],
)
def test_what_a_pipe_is(run: str, last: str | None) -> None:
    """[S7.11] Quotes, comments, here-documents and `||` are no pipes."""
    assert last_of_pipe(run) == last


def test_a_comment_that_cuts(tmp_path: Path) -> None:
    """[S7.12] Where the rest of the text shows that no comment was meant."""
    rest = """\
setup:
  - run: echo "a # b"
  - run: systemctl stop nginx # the fault
  - run: 'echo "a # b"'
  - run: echo 'a b' "it's" # fine
  - {run: "true", user: root} # "
  - run: echo "a#b"
  - run: |
      echo "a # b"
ready:
  - {run: grep -q 'x # y' /z}
"""
    text = rest.replace("{run: grep -q 'x # y' /z}", "run: grep -q 'x # y' /z")
    assert found(tmp_path, text) == [
        ("OD015", "warning", "setup[0].run", 6, 10),
        ("OD015", "warning", "ready[0].run", 15, 10),
    ]


def test_pgrep_needs_no_warning(tmp_path: Path) -> None:
    """A command's text never stands on a process's command line, so this cannot find itself."""
    rest = (
        "validation:\n  - {label: a, validator: host_state, run: pgrep -f bad.py, exit_code: 1}\n"
    )
    assert lint(tmp_path, rest) == []


def test_lint_of_nothing_is_the_operators_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        lint_path(tmp_path)


def test_codes_are_unique() -> None:
    """Every code means one thing."""
    codes = [check.code for check in CHECKS]
    codes += [check.code for check in WRITTEN_CHECKS]
    codes += [check.code for check in RECORDED_CHECKS]
    assert len(set(codes)) == len(codes)


def test_findings_keep_the_order_of_the_file(tmp_path: Path) -> None:
    rule: dict[str, Any] = {"a": "task_plan", "b": "job_plan"}
    rest = "validation:\n" + "".join(
        f"  - {{label: same, validator: pattern_match, where: {where}, pattern: x}}\n"
        for where in (rule["a"], rule["b"], rule["a"])
    )
    lines = [problem.line for problem in lint(tmp_path, rest)]
    assert lines == sorted(lines, key=lambda line: line or 0)
    assert len(lines) == 4
