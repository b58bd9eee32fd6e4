"""Ids of calls: unique, whatever a transcript calls them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from opsdrill.evidence.transcripts.call_ids import CallIds


def test_a_name_that_comes_again_is_another_call() -> None:
    """The last call of a name is the one that is meant."""
    ids = CallIds()
    assert [ids.new("a"), ids.new("b"), ids.new("a"), ids.new(None)] == ["a", "b", "a#2", "call"]
    assert (ids.of("a"), ids.of("b"), ids.of("c"), ids.of(None)) == ("a#2", "b", None, None)


@given(st.lists(st.none() | st.text(alphabet="a#2", max_size=5)))
def test_ids_are_never_the_same(names: list[str | None]) -> None:
    """Names may look like ids of ours."""
    ids = CallIds()
    made = [ids.new(name) for name in names]
    assert len(set(made)) == len(made)
