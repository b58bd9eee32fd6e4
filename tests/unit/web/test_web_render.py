"""Hostile text on pages: shown, never obeyed."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup
from tests.unit.web.conftest import Read

from opsdrill.app.safe_text import shown_block
from opsdrill.web.render import ago, marked, moment, percent, said, seconds, shown, templates

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
HOSTILE = st.lists(
    st.sampled_from(
        ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "\x1b[2J", "\0", "\u202e",
         "\u2066", "\u200b", "\ufeff", "\ud800", "\U000e0041", "&lt;", "</mark>", "\r\n", "\r", "é"]
    ),
    max_size=8,
).map("".join)  # fmt: skip
TEXTS = ANY_TEXT | HOSTILE


@given(TEXTS)
def test_what_is_shown_has_nothing_that_hides_or_moves_text(text: str) -> None:
    """The same as a terminal is kept from, but for line breaks and tabs."""
    found = shown(text)
    assert shown_block(found) == found
    found.encode()  # which no half of a surrogate pair can be


@given(TEXTS)
def test_showing_twice_is_showing_once(text: str) -> None:
    assert shown(shown(text)) == shown(text)


@given(st.text(st.characters(categories=("L", "N", "Zs", "Sm")), max_size=60))
def test_plain_text_is_shown_as_it_is(text: str) -> None:
    assert shown(text) == text


def test_signs_stand_for_what_cannot_be_seen() -> None:
    assert shown("a\0\x1b[1m\x7f\u202eb\r\nc\td\ud800") == (
        "a\u2400\u241b[1m\u2421\u27e6U+202E\u27e7b\nc\td\u27e6U+D800\u27e7"
    )


@given(TEXTS, st.data())
def test_a_match_is_marked_at_its_place_and_the_rest_is_text(
    text: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    page = str(marked(text, (start, end)))
    assert page.count("<mark>") == page.count("</mark>") == 1
    read = Read(page)
    assert read.wrong == []
    before, inside, after = text[:start], text[start:end], text[end:]
    assert read.text == shown(before) + (shown(inside) or "\N{OPEN BOX}") + shown(after)


@given(TEXTS)
def test_a_value_without_a_place_is_text_alone(text: str) -> None:
    read = Read(str(marked(text, None)))
    assert (read.wrong, read.text) == ([], shown(text))


@given(TEXTS)
def test_text_that_a_template_forgot_to_show_is_shown_all_the_same(text: str) -> None:
    page = templates().from_string('<p title="{{ text }}">{{ text }}</p>').render(text=text)
    read = Read(page)
    assert (read.wrong, read.text) == ([], f"{shown(text)}\n{shown(text)}")


def test_markup_of_ours_stays_markup() -> None:
    assert templates().from_string("{{ text }}").render(text=Markup("<b>x</b>")) == "<b>x</b>"


@pytest.mark.parametrize(
    ("length", "words"),
    [(None, ""), (-1, "0.0 s"), (0.25, "0.2 s"), (59, "59 s"), (119, "119 s"), (120, "2 min"),
     (7199, "120 min"), (7200, "2 h"), (86_400 * 2, "2 d")],
)  # fmt: skip
def test_lengths_of_time_are_short(length: float | None, words: str) -> None:
    assert seconds(length) == words


def test_a_share_of_nothing_is_no_number() -> None:
    assert (percent(1, 0), percent(1, 3)) == ("\N{EN DASH}", "33 %")


def test_moments_are_told_in_utc_whatever_their_zone() -> None:
    when = datetime(2026, 3, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    assert 'datetime="2026-03-01T12:00:00+00:00">2026-03-01 12:00:00 UTC<' in moment(when)
    assert moment(None) == ago(None) == ""
    assert re.search(r"3 min ago<", ago(datetime.now(UTC) - timedelta(minutes=3)))


@pytest.mark.parametrize(
    ("sentence", "html"),
    [
        ("`rm -rf` was run", "<code>rm -rf</code> was run"),
        ("one `a`, two `<b>`", "one <code>a</code>, two <code>&lt;b&gt;</code>"),
        ("<i>`x</i>`", "&lt;i&gt;<code>x&lt;/i&gt;</code>"),
        ("a lone ` and ``", "a lone <code> and </code>`"),
        ("over `two\nlines`", "over `two\nlines`"),
        ("`\x1b[31m\u202e`", "<code>\u241b[31m\u27e6U+202E\u27e7</code>"),
    ],
)
def test_what_a_sentence_names_in_backticks_is_code_and_hostile_text_is_text(
    sentence: str, html: str
) -> None:
    assert str(said(sentence)) == html


@given(TEXTS)
def test_a_sentence_with_hostile_text_has_no_element_but_code(text: str) -> None:
    html = str(said(text))
    assert set(re.findall(r"<[^>]*>", html)) <= {"<code>", "</code>"}
    bare = Markup(html).unescape().replace("<code>", "`").replace("</code>", "`")
    assert "`" in text or bare == shown(text)


def test_a_sentence_may_begin_a_line() -> None:
    assert str(said("ändert <x>", capital=True)) == "Ändert &lt;x&gt;"
    assert str(said("", capital=True)) == ""
