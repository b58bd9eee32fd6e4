"""The secrets that the lab and the settings name, looked up, and the mask made of them."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from opsdrill.app.wiring import Place
from opsdrill.errors import OpsDrillError, UsageError
from opsdrill.evidence.mask import Mask
from opsdrill.hosts.secret import Secrets
from opsdrill.model.run import LabChoice

_AT_ONCE = 8
"""Secrets that are looked up at the same time: each may be a command that takes its time."""

NO_LAB = LabChoice(name="imported", driver="none")
"""Of jobs that ran elsewhere: only the settings name their secrets."""


@dataclass(frozen=True, slots=True)
class KnownSecrets:
    """The secrets of a lab, and the mask for everything that is kept of its runs.

    Args:
        lab: where the driver gets those of its hosts.
        mask: made of all that follows.
        values: names and values of all that could be had.
        missing: a sentence for each that could not.
    """

    lab: Secrets
    mask: Mask
    values: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    missing: tuple[str, ...] = ()


def known_secrets(
    place: Place, choice: LabChoice, others: Iterable[tuple[str, str]] = ()
) -> KnownSecrets:
    """Look up every secret of a lab and of the settings.

    Args:
        others: names and values of secrets that were found elsewhere.

    One that cannot be had cannot be masked; the mask's warnings say so. Calls commands of theirs,
    so it may take seconds.
    """
    folder = Path(choice.folder) if choice.folder else place.folder
    of_lab = Secrets(choice.lab.secrets if choice.lab else {}, folder)
    of_settings = Secrets(place.settings.secrets, place.folder)
    asked = [(of_lab, name) for name in of_lab.names]
    asked += [(of_settings, name) for name in of_settings.names]
    found: list[tuple[str, str]] = list(others)
    missing: list[str] = []
    for (_, name), value in zip(asked, _values(asked), strict=True):
        if isinstance(value, UsageError):
            missing.append(f"{value.message}; so it is not masked in what is kept")
        else:
            found.append((name, value))
    mask = Mask(found, warnings=missing)
    return KnownSecrets(of_lab, mask, tuple(found), tuple(missing))


def mask_for(place: Place, choice: LabChoice) -> Mask:
    """The mask for everything that is kept of a lab's runs (see `known_secrets`)."""
    return known_secrets(place, choice).mask


def _values(asked: list[tuple[Secrets, str]]) -> Iterable[str | UsageError]:
    if not asked:
        return []
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="opsdrill-secrets") as threads:
        return list(threads.map(_value, asked))


def _value(asked: tuple[Secrets, str]) -> str | UsageError:
    secrets, name = asked
    if "[masked:" in str(secrets.source(name)):
        return UsageError(f"where the secret {name!r} is found was a secret itself, and not kept")
    try:
        return secrets.value(name)
    except UsageError as error:
        return error


def mask_error(mask: Mask, error: OpsDrillError) -> None:
    """Mask what an error says, for one that is told to the user."""
    error.message = mask.text(error.message)
    error.args = (error.message, *error.args[1:])
    error.hint = None if error.hint is None else mask.text(error.hint)
