"""YAML as docs/reference/scenario.md says: nothing is guessed, and every refusal has a place."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from opsdrill.errors import InvalidInput
from opsdrill.scenarios.document import NODE_LIMIT, Document
from opsdrill.scenarios.yaml import parse_yaml

UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""How long an example takes says nothing on a busy machine."""


def refusal(text: str) -> tuple[str, int | None, int | None]:
    with pytest.raises(InvalidInput) as caught:
        parse_yaml(text, "f.yaml")
    (problem,) = caught.value.problems
    assert problem.file == "f.yaml"
    assert problem.code == "OD001"
    return problem.message, problem.line, problem.column


@pytest.mark.parametrize(
    ("plain", "value"),
    [
        ("5", 5),
        ("-3", -3),
        ("0", 0),
        ("-0", 0),
        ("0.25", 0.25),
        ("1e3", 1000.0),
        ("1.5E-2", 0.015),
        ("0.0", "0.0"),
        ("1.0", "1.0"),
        ("1.10", "1.10"),
        ("1.50e3", "1.50e3"),
        ("01", "01"),
        ("0644", "0644"),
        ("0x1F", "0x1F"),
        ("0o17", "0o17"),
        ("0b1", "0b1"),
        ("1_000", "1_000"),
        ("22:22", "22:22"),
        ("12:30:45", "12:30:45"),
        ("2026-01-31", "2026-01-31"),
        (".5", ".5"),
        ("5.", "5."),
        ("+5", "+5"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("NaN", "NaN"),
        ("=", "="),
        ("2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
        ("1e", "1e"),
        ("١", "١"),
        ("10.0.0.1", "10.0.0.1"),
    ],
)
def test_numbers_without_quotes(plain: str, value: object) -> None:
    """[S2.1] A JSON number without a trailing zero in its fraction is a number, all else text."""
    data = parse_yaml(f"a: {plain}\n").data
    assert data == {"a": value}
    assert isinstance(data, dict)
    assert type(data["a"]) is type(value)


@pytest.mark.parametrize(
    "word", ["yes", "no", "on", "off", "y", "~", "True", "NULL", "Null", "FALSE"]
)
def test_words_are_texts(word: str) -> None:
    """[S2.2] Only the words true, false and null are more than text, and no key ever is."""
    assert parse_yaml(f"{word}: {word}\n").data == {word: word}


def test_true_false_null() -> None:
    """[S2.2]"""
    assert parse_yaml("[true, false, null, 'true']").data == [True, False, None, "true"]
    assert parse_yaml("true: 1\nnull: 2\n7: 3\n").data == {"true": 1, "null": 2, "7": 3}


def test_nothing_is_null() -> None:
    """[S2.3] Nothing after a key, or after a dash, is null; empty quotes are an empty text."""
    assert parse_yaml("a:\nb: ''\nc:\n  -\n  - ''\n").data == {"a": None, "b": "", "c": [None, ""]}


def test_all_traps_of_the_language_in_one_file() -> None:
    """What other readers turn into numbers, truth values and dates arrives as written."""
    text = (
        "on: yes\nno: off\nmode: 0644\nport: 22:22\nat: 12:30:45\nversion: 1.10\nday: 2026-01-31\n"
        "run: grep 'a b' /x # cut\npattern: '\\d+'\n"
    )
    assert parse_yaml(text).data == {
        "on": "yes", "no": "off", "mode": "0644", "port": "22:22", "at": "12:30:45",
        "version": "1.10", "day": "2026-01-31", "run": "grep 'a b' /x", "pattern": "\\d+",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, 1, "`a` twice; it is on line 1"),
        ("a: {b: 1, b: 2}", 1, 11, "`b` twice"),
        ("'a': 1\n\"a\": 2\n", 2, 1, "`a` twice"),
        ("a: x\npattern: *.log\n", 2, 10, "`*.log` is an alias"),
        ("a: * foo\n", 1, 4, "quotes"),
        ("a: &x 1\n", 1, 4, "`&x` is an anchor"),
        ("a: && true\n", 1, 4, "quotes"),
        ("a:\n  <<: {b: 1}\n", 2, 3, "merges"),
        ("pattern: !rm -rf\n", 1, 10, "`!rm` is a tag"),
        ("a: !!str 1\n", 1, 4, "is a tag"),
        ("a: ! x\n", 1, 4, "is a tag"),
        ("a:\n  - !xdebug\n", 2, 5, "`!xdebug` is a tag"),
        ("a: !x!y z\n", 1, 4, "quotes"),
        ("!x a: b\n", 1, 1, "is a tag"),
        ("&x a: b\n", 1, 1, "is an anchor"),
        ("%YAML 1.1\n---\na: b\n", 1, 1, "directive"),
        ("%TAG ! x\n---\na: b\n", 1, 1, "directive"),
        ("# x\n%FOO\n---\na: b\n", 2, 1, "directive"),
        ("a: 1\n---\nb: 2\n", 2, 1, "second document"),
        ("? [a]\n: b\n", 1, 3, "a key must be a text"),
        ("{a: 1}: b\n", 1, 1, "a key must be a text"),
        (": b\n", 1, 1, "a key is missing"),
        ("a: @x\n", 1, 4, "cannot start with '@'"),
        ("a: `x`\n", 1, 4, "cannot start with '`'"),
        ("a: %x\n", 1, 4, "cannot start with '%'"),
        ("run: echo a: b\n", 1, 12, "put the text with the colon in quotes"),
        ("key: a\n  title: x\n", 2, 8, "indent it as the keys it belongs to"),
        ("a: 'x\n", 1, 4, "never closed"),
        ("a: [1, 2\n", 1, 4, "never closed"),
        ("a: \x07\n", 1, 4, "U+0007"),
        ("", 1, 1, "is empty"),
        ("# nothing\n", 1, 1, "is empty"),
    ],
)
def test_refused_with_place(text: str, line: int, column: int, says: str) -> None:
    """[S2.4] What YAML has beyond plain data is refused where it stands, saying what to do."""
    message, *place = refusal(text)
    assert says in message
    assert place == [line, column]


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a:\tb\n", 1, 3),
        ("a:\n\tb: 1\n", 2, 1),
        ("a: b\t\n", 1, 5),
        ("a: b\t# x\n", 1, 5),
        ("a: b c\td\n", 1, 7),
        ("\t\na: b\n", 1, 1),
        ("a: [1,\t2]\n", 1, 7),
        ("a: b\n\tc\n", 2, 1),
        ("a: 'b\n\t  c'\n", 2, 1),
        ("a: |\n\tb\n", 2, 1),
        ("-\ta\n", 1, 2),
        ("a: 1\n \t \nb: 2\n", 2, 2),
    ],
)
def test_tabs_refused(text: str, line: int, column: int) -> None:
    """[S2.5] A tab that indents or separates is refused where it stands."""
    message, *place = refusal(text)
    assert "a tab cannot stand here" in message
    assert place == [line, column]


def test_tabs_inside_texts_and_comments() -> None:
    """[S2.5]"""
    text = "a: 'x\ty'  # c\td\nb: \"x\ty\"\nc: |\n  cat <<-END\n  \tx\ty\n#\tlast\n"
    assert parse_yaml(text).data == {"a": "x\ty", "b": "x\ty", "c": "cat <<-END\n\tx\ty\n"}


@pytest.mark.parametrize(
    ("text", "column"), [('a: "\\d+"', 6), ('a: "\\("', 6), ('a: "x\\y"', 7), ('a: "\\xZ1"', 7)]
)
def test_bad_escapes(text: str, column: int) -> None:
    """[S2.6] A bad escape in double quotes is refused, pointing at it."""
    message, *place = refusal(text)
    assert "backslash" in message
    assert place == [1, column]


def test_backslashes_elsewhere() -> None:
    """[S2.6] In every other kind of text a backslash is a backslash."""
    text = "a: '\\d'\nb: \\d\nc: |\n  \\d\nd: \"\\\\d\\t\\/\\x41\\u00e9\"\n"
    assert parse_yaml(text).data == {"a": "\\d", "b": "\\d", "c": "\\d\n", "d": "\\d\t/Aé"}


def test_surrogates() -> None:
    """[S2.7] A pair of escapes is one character; half a pair, or past the last one, is refused."""
    assert parse_yaml('a: "\\ud83d\\ude00"').data == {"a": "😀"}
    assert "surrogate" in refusal('b: 1\na: "\\ud83d"')[0]
    assert refusal('b: 1\na: "\\U00110000"')[1:] == (2, 5)


def test_only_ascii_and_real_line_breaks_break_lines() -> None:
    """U+0085 and U+2028 are characters like others in YAML 1.2, and change no line number."""
    text = "a: x\x85y\nb: |\n  l\u2028m\n  n\nc: 'x\u2029y'\na: 1\n"
    assert refusal(text)[1:] == (6, 1)
    assert parse_yaml(text.replace("a: 1\n", "")).data == {
        "a": "x\x85y",
        "b": "l\u2028m\nn\n",
        "c": "x\u2029y",
    }


def test_bounds() -> None:
    """[S1.3] Depth and number of values are bounded, and refused where the bound is passed."""
    assert parse_yaml("[" * 64 + "]" * 64).data
    assert refusal("[" * 100_000)[1:] == (1, 65)
    assert refusal("- " * 100_000)[1:] == (1, 129)
    assert refusal("? " * 100_000)[0] == "a key must be a text; quote what starts with [ or {"
    assert "values" in refusal("- x\n" * (NODE_LIMIT + 1))[0]


def test_numbers_of_many_digits_are_bounded() -> None:
    """[S2.1] A number that cannot be kept is refused; one in quotes is a text."""
    assert "300" in refusal("a: " + "9" * 5000)[0]
    assert "too large" in refusal("a: 1e999")[0]
    assert parse_yaml("a: " + "9" * 300).data == {"a": int("9" * 300)}


def test_places() -> None:
    """[S1.4] Every value and every key has its line and column."""
    document = parse_yaml("# x\na: 1\nb:\n  - c: x\n    d:\n  - [1, é, 3]\n")
    places = {path: (p.line, p.column) for path in PATHS if (p := document.place(path))}
    assert places == PATHS
    key = document.key_place(("b", 0, "c"))
    assert key is not None
    assert (key.line, key.column) == (4, 5)


PATHS: dict[tuple[str | int, ...], tuple[int, int]] = {
    ("a",): (2, 4),
    ("b",): (4, 3),
    ("b", 0, "c"): (4, 8),
    ("b", 0, "d"): (5, 5),  # null: its key
    ("b", 1, 2): (6, 12),
    ("b", 1, 7): (6, 5),  # not there: what should hold it
    ("zz",): (2, 1),
}


def test_crlf() -> None:
    """[S1.2] CRLF reads as LF does, with the same lines."""
    text = "a: x\nb: |\n  l\n  m\nc: 'x\n  y'\n"
    document = parse_yaml(text.replace("\n", "\r\n"))
    assert document.data == parse_yaml(text).data
    assert refusal(f"{text}c: 1\n".replace("\n", "\r\n"))[1:] == (7, 1)


@UNTIMED
@given(
    st.text(
        alphabet=st.sampled_from("ab01 :-?[]{},#&*!|>'\"%@`\\\n\r\tuxé\x85\u2028<=.~"), max_size=40
    )
)
@example("? \n- a")
@example("a: |1\n")
@example("%")
@example("- - ? a\n  : b\n")
def test_any_text_is_read_or_refused(text: str) -> None:
    """Whatever a file holds, it is a document or an InvalidInput with a place inside it."""
    try:
        parse_yaml(text)
    except InvalidInput as error:
        (problem,) = error.problems
        assert problem.line is not None and problem.line >= 1
        assert problem.column is not None and problem.column >= 1


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=6), inner, max_size=4
        )
    ),
    max_leaves=12,
)


def quoted(value: object) -> str:
    """YAML flow style in which every text is quoted and escaped, as JSON does."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"? {quoted(k)} : {quoted(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(quoted, value)) + "]"
    if isinstance(value, float):
        return f"{value!r}".removesuffix(".0") if "e" not in repr(value) else repr(value)
    return json.dumps(value).replace("\x7f", "\\u007f")  # no raw DEL in YAML


def same(a: object, b: object) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b and (type(a) is type(b) or {type(a), type(b)} == {int, float})


@UNTIMED
@given(json_values)
def test_round_trip(value: object) -> None:
    """Data written in flow style with quoted texts reads back as it was."""
    assert same(parse_yaml(quoted(value)).data, value)


def test_document_without_places_has_none() -> None:
    assert Document({"a": 1}).place(("a",)) is None
