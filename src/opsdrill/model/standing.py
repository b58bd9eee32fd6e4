"""What a kept grade judged, read without its evidence: quick, and enough to compare by."""

from __future__ import annotations

import json

import msgspec

from opsdrill.model.result import Grade


class CompletionStanding(msgspec.Struct, frozen=True):
    """The completion check."""

    status: str
    reason: str


class RuleStanding(msgspec.Struct, frozen=True):
    """One rule."""

    index: int
    label: str
    validator: str
    status: str


class Standing(msgspec.Struct, frozen=True):
    """A grade; its fields are those of `Grade` with the same names."""

    verdict: str
    reason: str
    completion: CompletionStanding
    grading_version: str = "1"
    scenario_version: str | None = None
    rules: tuple[RuleStanding, ...] = ()


_DECODER = msgspec.json.Decoder(Standing)


def read_standing(content: bytes) -> Standing:
    """The standing in a grade that a store wrote as JSON.

    Raises:
        ValueError: it is no grade.
    """
    try:
        return _DECODER.decode(content)
    except msgspec.DecodeError:
        # Half a surrogate pair in it, which this reader does not take.
        grade = Grade.model_validate(json.loads(content))
        return msgspec.convert(grade, Standing, from_attributes=True)
