"""Texts, documents and cursors: nothing is lost on the way into a row and back."""

from __future__ import annotations

import zlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, TypeAdapter

from opsdrill.errors import StoreError, UsageError
from opsdrill.model.event import JOB_EVENT, ToolCalled
from opsdrill.model.host import HostAnswer
from opsdrill.model.result import Completion, Grade, Match, RuleResult
from opsdrill.store import documents
from opsdrill.store.cursor import decode, encode, microseconds, moment
from opsdrill.store.documents import INLINE_LIMIT, ZSTD_FROM, Body, Form, dump, load, pack, unpack
from opsdrill.store.text import escape, unescape

ANY = st.text(st.characters(codec=None))
JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | ANY,
    lambda inner: st.lists(inner) | st.dictionaries(ANY, inner),
    max_leaves=10,
)


@given(ANY)
def test_any_text_survives_escaping(text: str) -> None:
    escaped = escape(text)
    assert unescape(escaped) == text
    assert "\0" not in escaped
    escaped.encode("utf-8")


@given(ANY, ANY)
def test_escaping_keeps_prefixes_apart(one: str, other: str) -> None:
    """So that ids can be found by their beginning, and no two ids become one."""
    assert escape(one + other).startswith(escape(one))
    assert escape(one + other) == escape(one) + escape(other)
    assert escape(other).startswith(escape(one)) == other.startswith(one)


def test_plain_text_is_kept_as_it_is() -> None:
    assert escape("sandbox/é😀 'x'") == "sandbox/é😀 'x'"


@given(JSON)
def test_any_arguments_survive(value: JsonValue) -> None:
    event = ToolCalled(task="t", call="c", kind="other", arguments=value)
    content = dump(JOB_EVENT, event)
    assert load(JOB_EVENT, content, "it") == event
    assert b"\0" not in content


@given(ANY, ANY)
def test_any_grade_survives(value: str, stdout: str) -> None:
    answer = HostAnswer(on=value, run=stdout, exit_code=3, stdout=stdout, timeout=1.5)
    match = Match(task=None, where="x", item=0, value=value, span=(0, 1))
    rule = RuleResult(
        index=0, label="x", validator="x", required=True, status="failed", reason=value,
        matches=(match,), answer=answer,
    )  # fmt: skip
    done = Completion(status="passed", reason=value)
    grade = Grade(verdict="failed", reason=value, completion=done, rules=(rule,))
    assert load(documents.GRADE, dump(documents.GRADE, grade), "it") == grade


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"event": "unheard"}', b"\xff", b"[" * 9000]
)
def test_a_damaged_document_is_told_with_its_name(content: bytes) -> None:
    with pytest.raises(StoreError, match="damaged: event 3 of run r1 cannot be read back"):
        load(JOB_EVENT, content, "event 3 of run r1")


def test_what_cannot_be_json_is_told() -> None:
    with pytest.raises(StoreError, match="cannot be kept as JSON"):
        dump(TypeAdapter(object), object())


@given(st.binary(max_size=3000) | st.binary(min_size=1).map(lambda part: part * ZSTD_FROM))
def test_packing_loses_nothing(content: bytes) -> None:
    body = pack(content)
    assert body is not None
    assert unpack(body, "it") == content


def test_long_bodies_are_packed_and_too_long_ones_are_files() -> None:
    """Rows stay small."""
    packed = pack(b"x" * 1_000_000)
    assert packed is not None
    assert packed.form == "zstd"
    assert len(packed.data) < INLINE_LIMIT
    shorter = pack(b"x" * (ZSTD_FROM - 1))
    assert shorter is not None
    assert shorter.form == "zlib"
    assert pack(bytes(range(256)) * 3) is not None
    noise = b"".join(n.to_bytes(4, "big") for n in range(1, 2**32, 2**32 // 20_000))
    assert pack(noise) is None


@pytest.mark.parametrize("form", ["zlib", "zstd"])
def test_a_damaged_packing_is_told(form: Form) -> None:
    with pytest.raises(StoreError, match="damaged"):
        unpack(Body(form, b"nonsense"), "it")


def test_one_wrong_byte_of_a_long_body_is_told() -> None:
    """The sum that stands behind the packed bytes says that they are not what was packed."""
    packed = pack(bytes(range(256)) * ZSTD_FROM)
    assert packed is not None
    wrong = packed.data[:-1] + bytes((packed.data[-1] ^ 1,))
    with pytest.raises(StoreError, match="damaged"):
        unpack(Body("zstd", wrong), "it")


def test_what_zlib_packed_before_zstd_was_there_is_read() -> None:
    content = b"x" * 1_000_000
    assert unpack(Body("zlib", zlib.compress(content, 1)), "it") == content


@given(st.integers(-(2**62), 2**62), st.integers(0, 2**62))
def test_a_cursor_reads_back(created_at: int, number: int) -> None:
    assert decode(encode(created_at, number)) == (created_at, number)


@given(ANY)
def test_any_other_cursor_is_a_usage_error(text: str) -> None:
    try:
        decode(text)
    except UsageError:
        return
    assert encode(*decode(text)) is not None


@given(st.datetimes(timezones=st.just(UTC)))
def test_moments_keep_their_microseconds(when: datetime) -> None:
    assert moment(microseconds(when)) == when
