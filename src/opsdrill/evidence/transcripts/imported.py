"""What is said of a transcript before it is read, and what comes out of it."""

from __future__ import annotations

from dataclasses import dataclass

from opsdrill.model.job import JobRecord


@dataclass(frozen=True, slots=True)
class Placing:
    """What the one who imports says about where commands ran.

    Args:
        host: the host of whatever names none; None: nobody said.
        split_ssh: take a command that only runs another one over `ssh HOST` for that host's.
    """

    host: str | None = None
    split_ssh: bool = False


@dataclass(frozen=True, slots=True)
class Imported:
    """One job that a file tells of.

    Args:
        name: what tells it from others in the same file; empty where there is only one.
        format: the importer's name.
        agent: the program that wrote the transcript, with its version and model where known.
        record: the job record. Not masked yet.
        warnings: what could not be read or had to be guessed, a sentence each.
    """

    name: str
    format: str
    agent: str | None
    record: JobRecord
    warnings: tuple[str, ...] = ()
