"""A planned run as it is kept: the same run, with no secret in it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from pydantic import ValidationError

from opsdrill.errors import UsageError
from opsdrill.evidence.mask import Mask
from opsdrill.evidence.masking import Masking
from opsdrill.model.problem import Location, dotted
from opsdrill.model.rules import HostState, PatternMatch
from opsdrill.model.run import LabChoice, RunSpec, StoredFile
from opsdrill.model.scenario import Scenario

_OWN = ("id", "repeat", "created_at")
"""What tells runs of one scenario by one agent apart: nothing that anybody wrote."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.$:@-]*")
"""What hosts, users, images, modes and the like are called."""


@dataclass(frozen=True, slots=True)
class MaskedSpec:
    """A run as it is kept, and the mask for all that is kept of it.

    Args:
        spec: its `masked` names the secrets that stood in it.
        mask: leaves alone the names that the run cannot do without.
        warnings: what the operator should know: what is not masked, and where the scenario
            names a secret's value.
    """

    spec: RunSpec
    mask: Mask
    warnings: tuple[str, ...]


def masked_spec(mask: Mask, spec: RunSpec, files: Mapping[str, bytes] | None = None) -> MaskedSpec:
    """The run as it is kept.

    Args:
        files: the support files with secrets in them, by the digest of their true content.

    Raises:
        UsageError: a secret stands where nothing else can, such as at the root of a path.
    """
    first = Masking(mask)
    first.of(spec)
    if any(_NAME.fullmatch(text) is None for text in first.left):
        names = {name for text in first.left for name in mask.names(text)}
        raise _refused(names, "a place of the scenario where only a path can stand")
    walk = Masking(mask.keeping(first.left))
    told = walk.of(spec)
    if files:
        told = told.model_copy(
            update={"files": tuple(_kept(mask, file, files, walk.names) for file in told.files)}
        )
    if walk.names:
        told = _readable(told.model_copy(update={"masked": tuple(sorted(walk.names))}))
    bare = sorted({name for text in first.left for name in mask.names(text)})
    warnings = (*mask.warnings, *map(_bare, bare), *_naming(mask, spec.scenario))
    return MaskedSpec(told, mask.keeping(first.left), warnings)


class MaskedSpecs:
    """Runs as they are kept, one after the other, each as `masked_spec` has it.

    Of runs in a row that are the same but for what tells them apart, the first is masked. May be
    used on any thread.

    Args:
        mask: that of a lab's runs.
        files: as of `masked_spec`.
    """

    def __init__(
        self, mask: Callable[[LabChoice], Mask], files: Mapping[str, bytes] | None = None
    ) -> None:
        self._mask = mask
        self._files = files
        self._last: tuple[Mask, RunSpec, MaskedSpec] | None = None

    def of(self, spec: RunSpec) -> MaskedSpec:
        """A run as it is kept.

        Raises:
            UsageError: as `masked_spec`.
        """
        mask, last = self._mask(spec.lab), self._last
        if last is not None and last[0] is mask and _repeats(last[1], spec):
            own = {name: getattr(spec, name) for name in _OWN}
            return replace(last[2], spec=last[2].spec.model_copy(update=own))
        kept = masked_spec(mask, spec, self._files)
        self._last = (mask, spec, kept)
        return kept


def _repeats(first: RunSpec, spec: RunSpec) -> bool:
    """Whether a run is another once more. What stands in both is one object, or short."""
    return all(
        (one := getattr(first, name)) is (other := getattr(spec, name)) or one == other
        for name in RunSpec.model_fields
        if name not in _OWN
    )


def masked_scenario(mask: Mask, scenario: Scenario) -> tuple[Scenario, Mask]:
    """A scenario as runs of it keep it, for rules that meet masked evidence; and the mask for that
    evidence, which leaves alone the names that the scenario cannot do without."""
    first = Masking(mask)
    first.of(scenario)
    keeping = mask.keeping(first.left)
    return Masking(keeping).of(scenario), keeping


def masked_digest(mask: Mask, content: bytes) -> str:
    """The digest under which a support file lies in the store: that of its masked content."""
    return hashlib.sha256(mask.data(content)).hexdigest()


def _kept(mask: Mask, file: StoredFile, files: Mapping[str, bytes], names: set[str]) -> StoredFile:
    content = files.get(file.digest)
    if content is None:
        return file
    kept = mask.data(content)
    names |= set(mask.names(content.decode("utf-8", "replace")))
    return file.model_copy(update={"digest": masked_digest(mask, content), "size": len(kept)})


def _readable(spec: RunSpec) -> RunSpec:
    """The run, if the store can read it back."""
    try:
        RunSpec.model_validate(spec.model_dump(mode="json", by_alias=True))
    except ValidationError as error:
        place = dotted(error.errors(include_url=False)[0]["loc"])
        raise _refused(spec.masked, f"{place} of the run") from None
    return spec


def _refused(names: Iterable[str], place: str) -> UsageError:
    return UsageError(
        f"a secret ({', '.join(sorted(names))}) cannot be masked in {place}, and nothing is kept"
        " with a secret in it",
        hint="take it out of there, or choose another secret",
    )


def _bare(name: str) -> str:
    return (
        f"the value of the secret {name!r} is part of a name that a run cannot do without (of a"
        " host, a user, an image or the like), and is not masked there; choose another secret"
    )


def _naming(mask: Mask, scenario: Scenario) -> Iterator[str]:
    """A warning for each command and each pattern with the value of a secret in it."""
    for place, text, pattern in _judged(scenario):
        if names := mask.names(text, pattern=pattern):
            shown = ", ".join(f"[masked:{name}]" for name in names)
            sought = " or ".join(rf"\[masked:{name}\]" for name in names)
            better = f"look for {sought}" if pattern else "let the host look it up"
            yield (
                f"{dotted(place)} holds the value of a secret; in all that is kept it reads"
                f" {shown}: {better}"
            )


def _judged(scenario: Scenario) -> Iterator[tuple[Location, str, bool]]:
    """Every command and every pattern of a scenario; whether it is a pattern."""
    for part in ("setup", "ready", "reference", "restore"):
        for index, step in enumerate(getattr(scenario, part)):
            yield (part, index, "run"), step.run, False
    for index, reply in enumerate(scenario.replies):
        yield ("replies", index, "when"), reply.when, True
    for index, rule in enumerate(scenario.validation):
        if isinstance(rule, HostState):
            yield ("validation", index, "run"), rule.run, False
        elif isinstance(rule, PatternMatch):
            yield ("validation", index, "pattern"), rule.pattern, True
