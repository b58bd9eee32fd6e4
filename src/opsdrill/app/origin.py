"""Where an imported run came from, so that the same is not kept twice."""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from opsdrill.evidence.transcripts.imported import Placing

_SHORT = 16
"""Digits of a digest that name a run, if no other run's begins alike."""


@dataclass(frozen=True, slots=True)
class Origin:
    """A file as it was when its import began, and how it is read.

    Args:
        path: the file.
        how: what else makes an import another one: scenario, host and the like.
        digest: SHA-256 of the file's bytes, in hex; None: it cannot be read as it stands.
        look: how the file looked from outside when its digest was taken.
    """

    path: Path
    how: tuple[str | bool | None, ...]
    digest: str | None
    look: tuple[int, ...]

    @classmethod
    def of(cls, path: Path, scenario: str | None, placing: Placing, answers: Path | None) -> Origin:
        """The origin of all jobs that a file tells of.

        Args:
            scenario: the key of the one that they are graded by.
            placing: where commands ran.
            answers: the file of host answers.
        """
        look = _look(path)
        answered = _digest(answers) if answers is not None else None
        how = (scenario, placing.host, placing.split_ssh, answered)
        return cls(path, how, _digest(path) if look else None, look)

    def key(self, number: int) -> str | None:
        """The digest of one job's origin; None where the file is another one by now.

        Args:
            number: the job's place in the file, from 0.
        """
        if self.digest is None or _look(self.path) != self.look:
            return None
        content = json.dumps([self.digest, *self.how, number])
        return hashlib.sha256(content.encode()).hexdigest()


def run_names(key: str) -> Sequence[str]:
    """What a run of this origin is called: the short name, or the long one where that is taken."""
    return f"import-{key[:_SHORT]}", f"import-{key}"


def _look(path: Path) -> tuple[int, ...]:
    """Nothing where it is no ordinary file, which alone can be read twice."""
    try:
        seen = path.stat()
    except (OSError, ValueError):
        return ()
    if not stat.S_ISREG(seen.st_mode):
        return ()
    return seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns


def _digest(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
