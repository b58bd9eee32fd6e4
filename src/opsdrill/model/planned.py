"""What a kept spec says of a run's rules and secrets, read without all else: quick."""

from __future__ import annotations

import json

import msgspec

from opsdrill.model.run import RunSpec


class Planned(msgspec.Struct, frozen=True, gc=False):
    """A few parts of a `RunSpec`; those that are large stand as they are in its JSON."""

    scenario_version: str
    scenario: msgspec.Raw
    lab: msgspec.Raw
    masked: tuple[str, ...] = ()


_PARTS = ("scenario", "lab")
_DECODER = msgspec.json.Decoder(Planned)


def read_planned(content: bytes) -> Planned:
    """What is needed of a spec that a store wrote as JSON.

    Raises:
        ValueError: it is no spec.
    """
    try:
        return _DECODER.decode(content)
    except msgspec.DecodeError:
        # Half a surrogate pair in it, which this reader does not take.
        tree = json.loads(content)
        spec = RunSpec.model_validate(tree)
        scenario, lab = (msgspec.Raw(json.dumps(tree[name]).encode()) for name in _PARTS)
        return Planned(spec.scenario_version, scenario, lab, spec.masked)
