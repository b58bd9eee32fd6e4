"""Changes of a text: what stands from one place up to another becomes something else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Replacement:
    """The code points from `start` up to `end` become `text`; both count from 0."""

    start: int
    end: int
    text: str


def replaced(text: str, changes: Iterable[Replacement]) -> str:
    """The text after all changes, which must not overlap; the same one twice counts once."""
    done, parts = 0, []
    for change in sorted(set(changes)):
        parts += [text[done : change.start], change.text]
        done = change.end
    return "".join([*parts, text[done:]])


def insert(at: int, text: str) -> Replacement:
    """Something put in at a place."""
    return Replacement(at, at, text)
