"""`--fix`: what is mended, that nothing else changes, and when a file is left alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opsdrill.errors import UsageError
from opsdrill.scenarios.lint import fix as fix_module
from opsdrill.scenarios.lint import mend
from opsdrill.scenarios.lint.fix import fixed
from opsdrill.scenarios.lint.replacement import Replacement
from opsdrill.scenarios.lint.rewrite import rewrite
from opsdrill.scenarios.lint.token import changed
from opsdrill.scenarios.yaml import parse_yaml

YAML = """\
# A comment, which stays.
key:   a
title: 't'   # so does this one
ticket_title: "t"

hosts: [web-01]
validation:
  - {label: a, validator: pattern_match, where: executed_commands, pattern: %s}
  - label: b     # and this layout
    pattern: fine
    validator: pattern_match

    where: job_plan
"""

JSON = """{"key": "a", "title": "\\u0074", "ticket_title":"t",
  "validation": [ {"label": "a",
      "pattern" : %s, "validator": "pattern_match", "where": "executed_commands"}]   }
"""


def after(content: str, name: str = "scenario.yaml") -> str:
    return fixed(Path("/nowhere") / name, content.encode())[0].decode()


@pytest.mark.parametrize(
    ("before", "mended"),
    [
        ('"\\breboot\\b"', '"\\\\breboot\\\\b"'),
        ('"x \\x08"', '"x \\\\b"'),
        ('"\\u0008x\\u00e9"', '"\\\\bx\\u00e9"'),
        ("(?i)nginx", "nginx"),
        ("'(?i)it''s'", "'it''s'"),
        ('"(?i)a\\u00e9\\tb"', '"a\\u00e9\\tb"'),
        ("(?i)true", "'true'"),
        ("(?i)5", "'5'"),
        ("'(?i)[ab]'", "'[ab]'"),
        ("(?im)x", "(?m)x"),
        ("(?i:reboot) x", "(?:reboot) x"),
        ("rm\u00a0-rf", "rm -rf"),
        ("'a \u2018b\u2019'", "'a ''b'''"),
        ('"a \u201cb\u201d"', '"a \\"b\\""'),
        ("a \u201cb\u201d", 'a "b"'),
        ("\u201cb\u201d", "'\"b\"'"),
        ("\u200bnginx", "nginx"),
        ('"(?i)rm\u00a0\\breboot"', '"rm \\\\breboot"'),
    ],
)
def test_a_pattern_in_yaml_is_mended_in_its_own_quotes(before: str, mended: str) -> None:
    assert after(YAML % before) == YAML % mended


@pytest.mark.parametrize(
    ("before", "mended"),
    [
        ('"\\breboot\\b"', '"\\\\breboot\\\\b"'),
        ('"\\u0008x\\/y"', '"\\\\bx\\/y"'),
        ('"(?i)\\ud83d\\ude00 \\u00e9\\n"', '"\\ud83d\\ude00 \\u00e9\\n"'),
        ('"a \u201cb\u201d"', '"a \\"b\\""'),
        ('"rm\u00a0x"', '"rm x"'),
    ],
)
def test_a_pattern_in_json_is_mended_and_other_escapes_stay(before: str, mended: str) -> None:
    assert after(JSON % before, "scenario.json") == JSON % mended


@pytest.mark.parametrize(
    "before",
    [
        "nginx",
        "'10.0.0.1'",  # a better pattern is known, but another one may be meant
        "^a|b$",
        "'.*'",
        "rm \u2013rf",  # one hyphen or two
        '"rm\\u00a0-rf"',  # written as an escape, so it is meant
        '"[\u201c\u201d]"',
        '"a\\\\\\bc"',
        "(?i)",  # nothing would be left
    ],
)
def test_what_may_be_meant_is_left_alone(before: str) -> None:
    content = (YAML % before).encode()
    assert fixed(Path("scenario.yaml"), content) == (content, [])


def test_what_people_say_may_have_any_quotes() -> None:
    content = (YAML % "x").replace("fine", "it\u2019s fine").encode()
    assert fixed(Path("scenario.yaml"), content) == (content, [])


def test_replies_are_mended_too() -> None:
    content = YAML % "x" + 'replies: [{when: "(?i)may I", body: x}]\n'
    assert after(content) == content.replace("(?i)", "")


BLOCK = """\
key: a
title: t
ticket_title: t
validation:
  - label: a
    validator: pattern_match
    where: executed_commands
    pattern: %s
  - {label: b, validator: task_count, min: 1}
"""


@pytest.mark.parametrize(
    ("before", "mended"),
    [
        ("|-\n      (?i)rm\u00a0-rf", "|-\n      rm -rf"),
        (">-  # folded\n      (?i)rm 'x'", ">-  # folded\n      rm 'x'"),
        ("|\n      (?im)a\n        b\n\n", "|\n      (?m)a\n        b\n\n"),
        ("|-\n      x\u00a0y\n      z\u200b w", "|-\n      x y\n      z w"),
        (">-\n      (?i)two\n      lines", None),
        ("|2-\n      (?i)x", None),
        ("(?i)two\n      lines", None),
    ],
)
def test_texts_of_several_lines_are_mended_where_that_is_sure(
    before: str, mended: str | None
) -> None:
    content = BLOCK % before
    assert after(content) == (content if mended is None else BLOCK % mended)


@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_byte_order_mark_stay(ends: str, mark: str) -> None:
    content = mark + (YAML % "(?i)x").replace("\n", ends)
    assert after(content) == content.replace("(?i)", "")
    block = mark + (BLOCK % "|-\n      (?im)x\n      (?#a)y").replace("\n", ends)
    assert after(block) == block.replace("(?im)", "(?m)")


def test_what_is_told_of_a_fix() -> None:
    _, fixes = fixed(Path("x/scenario.yaml"), (YAML % '"(?i)\\breboot"').encode())
    told = [(f.code, f.file, f.line, f.column, f.path, f.before, f.after) for f in fixes]
    line, column, path = 8, 77, "validation[0].pattern"
    assert told == [
        ("OD020", "x/scenario.yaml", line, column, path, "(?i)\breboot", r"(?i)\breboot"),
        ("OD030", "x/scenario.yaml", line, column, path, r"(?i)\breboot", r"\breboot"),
    ]


def test_a_scenario_that_is_refused_is_left_alone() -> None:
    for content in (YAML % "'('", YAML % "(?i)x" + "nonsense: 1\n", "\xff", "a: [", ""):
        assert fixed(Path("scenario.yaml"), content.encode("latin-1"))[1] == []


PIECES = st.sampled_from(
    ["(?i)", "(?i:", ")", "\u00a0", "\u201c", "\u2019", "\u200b", "a", "'", '"', "\\", " ", "#",
     ": ", "{", "]", ",", "\u00e9", "\b", "|", "&", "\n", "-", "true", "1", "\U0001f600"]
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(PIECES, max_size=8).map("".join), st.sampled_from(['"', "'"]))
def test_fixing_is_idempotent_and_changes_patterns_only(text: str, quote: str) -> None:
    """Whatever the pattern, what comes out loads the same but for the patterns mended."""
    if quote == '"':
        escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        token = f'"{escaped}"'.replace("\b", "\\b")
    else:
        token = "'" + text.replace("'", "''").replace("\n", " ").replace("\b", "") + "'"
    content = (YAML % token).encode()
    new, fixes = fixed(Path("scenario.yaml"), content)
    assert fixed(Path("scenario.yaml"), new) == (new, [])
    before, now = parse_yaml(content.decode()).data, parse_yaml(new.decode()).data
    assert isinstance(before, dict) and isinstance(now, dict)
    if fixes:
        assert before["validation"][0]["pattern"] == fixes[0].before
        before["validation"][0]["pattern"] = fixes[-1].after
    assert now == before


def test_many_patterns_are_mended_at_once() -> None:
    rule = "  - {label: a, validator: pattern_match, where: executed_commands, pattern: (?i)x}\n"
    content = "key: a\ntitle: t\nticket_title: t\nvalidation:\n" + rule * 300
    assert after(content) == content.replace("(?i)", "")


def test_changes_at_the_ends_of_a_text() -> None:
    assert changed('"ab"', "ab", [Replacement(2, 2, '"'), Replacement(0, 0, "\\")]) == '"\\\\ab\\""'
    assert changed("'ab'", "other", [Replacement(0, 1, "")]) is None
    assert changed("", "", []) is None


# --- the file ---


def test_a_file_is_rewritten_whole_with_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(YAML % "(?i)x")
    path.chmod(0o640)
    assert [fix.after for fix in mend(path)] == ["x"]
    assert path.read_text() == YAML % "x"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert mend(path) == []
    assert [entry.name for entry in tmp_path.iterdir()] == ["scenario.yaml"]


def test_nothing_is_written_when_nothing_is_mended(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(YAML % "x")
    before = path.stat()
    assert mend(path) == []
    now = path.stat()
    assert (now.st_ino, now.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    real = tmp_path / "real.yaml"
    real.write_text(YAML % "(?i)x")
    link = tmp_path / "scenario.yaml"
    link.symlink_to("real.yaml")
    assert mend(link)
    assert link.is_symlink()
    assert real.read_text() == YAML % "x"


def test_a_file_that_changed_meanwhile_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(YAML % "(?i)x")

    def slow(at: Path, content: bytes) -> tuple[bytes, list[fix_module.Fix]]:
        path.write_text("somebody else's")
        return fixed(at, content)

    monkeypatch.setattr(fix_module, "fixed", slow)
    with pytest.raises(UsageError, match="changed by somebody else") as refused:
        mend(path)
    assert refused.value.hint == "run it again"
    assert path.read_text() == "somebody else's"
    assert [entry.name for entry in tmp_path.iterdir()] == ["scenario.yaml"]


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match="no regular file"):
        rewrite(pipe, b"", b"x")
    with pytest.raises(UsageError, match="cannot open"):
        mend(tmp_path / "none.yaml")
    with pytest.raises(UsageError, match="cannot rewrite"):
        rewrite(tmp_path / "none.yaml", b"", b"x")
