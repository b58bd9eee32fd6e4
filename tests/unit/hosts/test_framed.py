"""The output between the nonces, however it is cut into chunks."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.hosts.framed import End, FramedOutput

NONCE = "abab12"


def fed(data: bytes, cuts: list[int], limit: int = 1 << 20) -> FramedOutput:
    stream = FramedOutput(NONCE, limit)
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    for start, end in pairwise(places):
        stream.feed(data[start:end])
    return stream


BYTES = st.lists(st.sampled_from([b"a", b"b", b"ab", b"1", b"\n", b"\xff"])).map(b"".join)


@given(BYTES, BYTES, BYTES, st.lists(st.integers(0, 100)), st.integers(0, 20))
def test_cuts_do_not_matter(
    noise: bytes, body: bytes, rest: bytes, cuts: list[int], limit: int
) -> None:
    """Only what stands between the nonces is kept, up to the limit, counted beyond it."""
    data = noise + b"abab12\n" + body + b"abab12 3 bash\n" + rest
    stream = fed(data, cuts, limit)
    if b"abab12" in noise + b"abab1" or b"abab12" in body + b"abab1":
        return
    assert stream.ended
    assert stream.content == body[:limit]
    assert stream.total == len(body)
    assert stream.full_size == (len(body) if len(body) > limit else None)
    assert stream.end == End(3, "bash")
    assert stream.noise.encode(errors="replace").count(b"a") == noise.count(b"a")


@given(BYTES, st.lists(st.integers(0, 100)))
def test_without_an_end_all_is_output(body: bytes, cuts: list[int]) -> None:
    """A connection that ends early leaves what came, and no status."""
    if b"abab12" in body:
        return
    stream = fed(b"abab12\n" + body, cuts)
    stream.close()
    assert stream.content == body
    assert not stream.ended
    assert stream.end is None


@pytest.mark.parametrize(
    "line", [b"", b" 3", b" x sh\n", b"\n", b" -1 sh\n", b" " * 99 + b"1 sh\n"]
)
def test_half_a_status_is_none(line: bytes) -> None:
    """Only a whole last line with a number is a status."""
    assert fed(b"abab12\nabab12" + line, []).end is None


def test_signal_as_some_shells_tell_it() -> None:
    """256+n of a shell is 128+n everywhere else."""
    assert fed(b"abab12\nabab12 265 sh\n", []).end == End(137, "sh")
