"""JSON to the letter, in files that people write and in those that programs write."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opsdrill.errors import InvalidInput
from opsdrill.scenarios.json import parse_json

UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""How long an example takes says nothing on a busy machine."""

BOTH = pytest.mark.parametrize("written", [True, False], ids=["written", "recorded"])


def refusal(text: str, *, written: bool) -> tuple[str, int | None, int | None]:
    with pytest.raises(InvalidInput) as caught:
        parse_json(text, "f.json", written=written)
    (problem,) = caught.value.problems
    assert problem.file == "f.json"
    return problem.message, problem.line, problem.column


@BOTH
@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ('{"a": 1,\n "a": 2}', 2, 2, "'a' twice; it is on line 1"),
        ('[{"b": {"a": 1, "\\u0061": 2}}]', 1, 17, "twice"),
        ('{"a": NaN}', 1, 7, "`NaN` is no JSON value"),
        ("[-Infinity]", 1, 2, "a value is missing"),
        ("[Infinity]", 1, 2, "no JSON value"),
        ("[1e999]", 1, 2, "too large"),
        ("[1,]", 1, 3, "leave it out"),
        ('{"a": 1,}', 1, 8, "leave it out"),
        ("{} x", 1, 4, "something follows"),
        ("{'a': 1}", 1, 2, "double quotes"),
        ('{"a" 1}', 1, 6, "colon"),
        ("[1 2]", 1, 4, "comma"),
        ("[01]", 1, 3, "comma"),
        ('{"a":', 1, 6, "ends too early"),
        ('{"a"', 1, 5, "colon"),
        ("[1", 1, 3, "ends too early"),
        ('"abc', 1, 1, "never closed"),
        ('"a\nb"', 1, 3, "\\n"),
        ('"\\d"', 1, 2, "\\\\"),
        ('"\\u12"', 1, 3, "four hexadecimal"),
        ("", 1, 1, "is empty"),
        (" \n", 1, 1, "is empty"),
        ("True", 1, 1, "no JSON value"),
        ("// x\n{}", 1, 1, "a value is missing"),
    ],
)
def test_refused_with_place(text: str, line: int, column: int, says: str, written: bool) -> None:
    """[S3.1] What is no JSON is refused where it stands."""
    message, *place = refusal(text, written=written)
    assert says in message
    assert place == [line, column]


def test_half_a_surrogate_pair() -> None:
    """[S3.2] Refused in a scenario; U+FFFD in a record, where keys and values stay apart."""
    text = '{"a\\ud800": ["\\udc00x", "\\ud83d\\ude00", "\\\\ud800"]}'
    assert "surrogate" in refusal(text, written=True)[0]
    assert parse_json(text, written=False).data == {"a\ufffd": ["\ufffdx", "😀", "\\ud800"]}


@pytest.mark.parametrize(("written", "limit"), [(True, 64), (False, 200)])
def test_depth_is_bounded(written: bool, limit: int) -> None:
    """[S1.3]"""
    assert parse_json("[" * limit + "]" * limit, written=written).data
    deep = limit + 1 if written else 100_000
    assert refusal("[" * deep + "]" * deep, written=written)[1:] == (1, limit + 1)


def test_number_of_values_is_bounded() -> None:
    """[S1.3] In what people write; a record may hold as many as its size allows."""
    text = f"[{'1,' * 50_000}1]"
    assert "more than 50000 values" in refusal(text, written=True)[0]
    data = parse_json(text, written=False).data
    assert isinstance(data, list)
    assert len(data) == 50_001


@BOTH
def test_integers_of_many_digits_are_bounded(written: bool) -> None:
    """[S3.1] Python's own limit on digits is no traceback."""
    assert "300" in refusal(f"[{'9' * 5000}]", written=written)[0]


def test_places_are_found_when_asked_for() -> None:
    """[S1.4] A record that was read fast still gives the place of every value."""
    text = '{"a": 1,\r\n "b": [true,\n  {"c": "x"}]}'
    for written in (True, False):
        document = parse_json(text, "f.json", written=written)
        place = document.place(("b", 1, "c"))
        key = document.key_place(("b", 1, "c"))
        assert place is not None and (place.line, place.column) == (3, 9)
        assert key is not None and (key.line, key.column) == (3, 4)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@UNTIMED
@given(values, st.sampled_from([None, 2]))
def test_both_readers_read_what_the_library_writes(value: object, indent: int | None) -> None:
    """The fast reader and the one with places agree with the standard library."""
    for text in (json.dumps(value, indent=indent), json.dumps(value, ensure_ascii=False)):
        expected = json.loads(text)
        assert parse_json(text, written=True).data == expected
        assert parse_json(text, written=False).data == expected


@UNTIMED
@given(st.text(alphabet=st.sampled_from('{}[]",:\\u0d81e-+. \n\ttrufalsn'), max_size=30))
def test_both_readers_take_the_same_texts(text: str) -> None:
    """Whatever one refuses the other refuses, at the same place, and never otherwise."""
    outcomes = []
    for written in (True, False):
        try:
            outcomes.append(parse_json(text, written=written).data)
        except InvalidInput as error:
            outcomes.append([(p.message, p.line, p.column) for p in error.problems])
    if "\\" not in text:
        assert outcomes[0] == outcomes[1]
