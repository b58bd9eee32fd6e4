"""Where the parts of a document stand in it."""

from __future__ import annotations

import io
import json

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from tests.unit.evidence.importers.in_memory import source_of

from opsdrill.evidence.transcripts.outline import objects, outline

TEXTS = st.text() | st.sampled_from(['"', "\\", '\\"', "}]", "[{", '{"a": [', ":,"])
VALUES: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda below: st.lists(below) | st.dictionaries(TEXTS, below),
    max_leaves=15,
)


class _Dribble(io.BytesIO):
    """Gives at most so many bytes at a time."""

    def __init__(self, content: bytes, most: int) -> None:
        super().__init__(content)
        self._most = most

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size, self._most) if size and size > 0 else size)


SMALL = st.integers(1, 30)


@given(st.dictionaries(TEXTS, VALUES), SMALL, st.booleans(), st.sampled_from([None, 1]))
def test_each_value_stands_where_it_is_said(
    document: dict[str, JsonValue], most: int, ascii: bool, indent: int | None
) -> None:
    """Cut into whatever pieces: the bytes of each key's value are that value."""
    data = json.dumps(document, ensure_ascii=ascii, indent=indent).encode(errors="replace")
    document = json.loads(data)
    found = outline(_Dribble(data, most), set(document))
    assert found.whole
    assert {
        key: json.loads(data[place.start : place.start + place.length])
        for key, place in found.parts.items()
    } == document


@given(st.lists(VALUES), SMALL)
def test_each_object_stands_where_it_is_said(document: list[JsonValue], most: int) -> None:
    """Only the objects right in the list count, and each is there whole."""
    data = json.dumps(document).encode()
    assert [
        json.loads(data[place.start : place.start + place.length])
        for place in objects(_Dribble(data, most))
    ] == [each for each in document if isinstance(each, dict)]


@given(st.dictionaries(st.sampled_from("abc"), VALUES, min_size=1), st.data())
def test_a_document_that_breaks_off(document: dict[str, JsonValue], data: st.DataObject) -> None:
    """What has no end goes to the end of the file, and the document is not whole."""
    content = json.dumps(document).encode()
    end = data.draw(st.integers(0, len(content) - 1))
    found = outline(io.BytesIO(content[:end]), set(document))
    assert not found.whole
    for place in found.parts.values():
        assert place.start + place.length <= end


@given(st.text(alphabet='[]{},:"\\a ').map(str.encode), SMALL)
def test_any_bytes_have_some_outline(content: bytes, most: int) -> None:
    """What is no JSON raises nothing."""
    outline(_Dribble(content, most), {"a"})
    list(objects(_Dribble(content, most)))


def test_keys_that_come_twice() -> None:
    """The last one counts, as for JSON parsers; a key inside of a value is none."""
    content = b'\xef\xbb\xbf{"a": 1, "b": {"a": 3}, "a": [2], "c": "a"}'
    parts, missing = source_of(content).parts("a", "c")
    assert missing is None
    assert {key: part.value("") for key, part in parts.items()} == {"a": [2], "c": "a"}


def test_parts_have_parts() -> None:
    """A part is a document of its own, with parts of its own."""
    content = b'{"x": {"samples": [{"id": 1}, 2, {"id": {"n": [3]}}]}}'
    inner = source_of(content).parts("x")[0]["x"].parts("samples")[0]["samples"]
    assert [each.parts("id")[0]["id"].value("") for each in inner.objects()] == [1, {"n": [3]}]
    assert list(inner.items("item.id.n.item")) == [3]
