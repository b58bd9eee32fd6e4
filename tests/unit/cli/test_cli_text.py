"""Text of others is harmless on a terminal, whatever it holds."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.app.markdown import literal
from opsdrill.app.safe_text import shown, shown_block, shown_end, shown_ends, shown_json
from opsdrill.cli.formats.junit import results as junit
from opsdrill.model.result import Result

ANYTHING = st.text(st.characters(), max_size=200)
"""Any code points, halves of surrogate pairs among them."""


@given(ANYTHING)
def test_nothing_that_a_terminal_acts_on_survives(text: str) -> None:
    for made, kept in ((shown(text), ""), (shown_block(text), "\n\t")):
        for character in made:
            if character in kept:
                continue
            assert unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp")
            assert unicodedata.bidirectional(character) not in (
                "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI",
            )  # fmt: skip
        made.encode("utf-8")


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_plain_text_of_any_script_stays_as_it_is(text: str) -> None:
    assert shown(text) == shown_block(text) == text


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\x9b31m", r"\x9b31m"),
        ("a\u202eb", r"a\u202eb"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("\x00", r"\x00"),
        ("\x7f", r"\x7f"),
        ("👩‍👩‍👧 ü", "👩‍👩‍👧 ü"),
    ],
)
def test_what_is_unsafe_is_written_as_an_escape(text: str, safe: str) -> None:
    assert shown(text) == safe


def test_a_block_keeps_its_lines_and_folds_crlf() -> None:
    assert shown_block("a\r\nb\tc\rd\x1b") == "a\nb\tc\\rd\\x1b"


def test_a_long_text_is_cut_and_says_by_how_much() -> None:
    assert shown("x" * 100, limit=10) == "x" * 10 + " ... (90 more characters)"


def test_of_a_long_output_the_end_is_shown_where_programs_say_what_went_wrong() -> None:
    text = "\n".join(f"line {number}" for number in range(40)) + "\nError: \x1b[31mrefused"
    made = shown_end(text, lines=2, limit=100)
    assert made == "... (39 lines before)\nline 39\nError: \\x1b[31mrefused"
    assert shown_end("x" * 90 + "end", lines=2, limit=5) == "... (88 characters before)\nxxend"
    assert shown_end("a\nb", lines=2, limit=5) == "a\nb"


def test_of_an_output_shown_at_length_both_ends_are_kept() -> None:
    made = shown_ends("start" + "x" * 100 + "\x9bend", limit=10)
    assert made == "start\n... (99 characters left out)\nx\\x9bend"
    assert shown_ends("a\nb", limit=3) == "a\nb"


@pytest.mark.parametrize(
    "text", ["[click](javascript:x)", "<script>", "a | b", "@team", "`x`", "![i](u)", "# h", "~x~"]
)
def test_markdown_of_others_is_literal(text: str) -> None:
    made = literal(text)
    for character in "[]()<>|@`!#~":
        assert made.count(character) == made.count(f"\\{character}")


def test_markdown_leaves_the_hyphens_of_names_alone() -> None:
    assert literal("web-01: - x -") == r"web-01: \- x \-"


def test_junit_names_are_the_same_in_every_batch_and_tell_repeats_apart() -> None:
    from xml.etree import ElementTree

    def batch(*runs: str) -> list[tuple[str | None, str | None]]:
        results = [
            Result(run=run, scenario="s", agent="noop", scenario_version="v", state="done")
            for run in runs
        ]
        suites = ElementTree.fromstring(junit(results))
        assert [item.get("value") for item in suites.iter("property")] == list(runs)
        return [(case.get("classname"), case.get("name")) for case in suites.iter("testcase")]

    assert batch("r1", "r2") == batch("r3", "r4") == [("s", "noop"), ("s", "noop (2)")]


@given(ANYTHING)
def test_junit_is_well_formed_whatever_the_reason_holds(text: str) -> None:
    from xml.etree import ElementTree

    reason = text.encode("utf-8", "replace").decode()
    result = Result(
        run="r",
        scenario="s",
        agent=reason,
        scenario_version="v",
        state="done",
        verdict="error",
        reason=reason,
    )
    suites = ElementTree.fromstring(junit([result]))
    assert suites.get("errors") == "1"


@given(ANYTHING)
def test_json_on_a_terminal_is_the_same_document_and_harmless(text: str) -> None:
    document = json.dumps({"text": text}, ensure_ascii=False, indent=2)
    made = shown_json(document)
    assert json.loads(made) == {"text": text}
    assert shown_block(made) == made
