"""Every exception OpsDrill raises on purpose, and whose fault each one is.

    OpsDrillError
    |-- UsageError              operator        a flag, a name or a selection that cannot be
    |   |-- UnknownName         operator        a registry or a catalogue has no such name
    |   |-- NotThere            operator        there is no such run, scenario, token ...
    |   `-- Conflict            operator        is there already, was changed since, still runs
    |-- InvalidInput            author          a file or document that breaks its format
    |   `-- InvalidPattern      author          a regular expression outside the dialect
    |-- DriverUnavailable       operator        this machine or lab cannot give such hosts
    |-- HostError               infrastructure
    |   |-- ProvisionFailed     infrastructure  a host could not be made
    |   |-- HostUnreachable     infrastructure  a host does not answer
    |   `-- LeaseLost           infrastructure  a lasting host may be another run's by now
    |-- SetupFailed             author          a setup step ended otherwise than it should
    |-- NotReady                author          the fault does not show after setup
    |-- RequirementMissing      author          a host lacks what the scenario requires
    |-- AgentUnavailable        operator        the agent could not be started
    |   `-- ProviderRefused     infrastructure  its model provider does not answer, tried again
    |-- EventRefused            opsdrill        an adapter reported an event out of order
    |-- StoreError              infrastructure  the data folder cannot be read or written
    |   |-- StoreDamaged        infrastructure  one thing in it cannot be read back
    |   `-- StoreTooNew         operator        the store was written by a newer OpsDrill
    `-- OutputLost              infrastructure  what was asked for cannot be written

An exception builds its own message: one sentence that says where, what and what to do. `hint`
is shown on a line of its own. Only the agent's own fault ever lowers a grade, and that is a
result, not an exception: no class here has the fault `agent`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import ClassVar, Literal

Fault = Literal["agent", "author", "operator", "infrastructure", "opsdrill"]
"""Whose fault a failure or a stop was. Only `agent` lowers a grade."""


Severity = Literal["error", "warning", "note"]

_LISTED = 30
"""Choices that an error names."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One finding in a document: where it is, what is wrong, what would be right.

    `path` is like `validation[2].pattern` (empty for the whole document). `file`, `line` and
    `column` (both from 1) are known for files only. `code` is a lint code such as `OD001`.
    `replacement` is the text that would be right in the place of the one at `path`.
    """

    path: str
    message: str
    severity: Severity = "error"
    code: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    suggestion: str | None = None
    replacement: str | None = None

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        return " ".join(part for part in (place and f"{place}:", self.path, self.message) if part)

    def at(self, file: str | None, line: int | None, column: int | None) -> Problem:
        """The same finding with its place in a file."""
        return replace(self, file=file, line=line, column=column)


class OpsDrillError(Exception):
    """The root: `str(error)` is one plain sentence, `hint` what to do about it."""

    fault: ClassVar[Fault] = "opsdrill"

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(OpsDrillError):
    fault = "operator"


class UnknownName(UsageError):
    """A name that nobody registered. Says which comes close, and lists the choices."""

    def __init__(self, kind: str, name: str, choices: Iterable[str]) -> None:
        known = sorted(choices)
        close = get_close_matches(name[:100], known, n=1)
        meant = f"did you mean {close[0]}? " if close else ""
        more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
        listed = ", ".join(known[:_LISTED]) or "none"
        super().__init__(f"there is no {kind} named {name!r}", hint=f"{meant}known: {listed}{more}")


class NotThere(UsageError):
    """What was named by its id or key is not kept, or not any more."""

    def __init__(self, kind: str, name: str, *, hint: str | None = None) -> None:
        super().__init__(f"there is no {kind} {name!r}", hint=hint)
        self.kind = kind
        self.name = name


class Conflict(UsageError):
    """What is kept stands against it: it is there already, was changed meanwhile, still runs."""


class InvalidInput(OpsDrillError):
    """A document that breaks its format, with every problem found in it."""

    fault = "author"

    def __init__(self, what: str, problems: Sequence[Problem], *, hint: str | None = None) -> None:
        first = f": {problems[0]}" if problems else ""
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{what}{first}{more}", hint=hint)
        self.problems = tuple(problems)


class InvalidPattern(OpsDrillError):
    """A regular expression outside the dialect; `position` counts code points from 0."""

    fault = "author"

    def __init__(self, message: str, position: int | None) -> None:
        where = f" at position {position}" if position is not None else ""
        super().__init__(f"{message}{where}")
        self.position = position


class EventRefused(OpsDrillError):
    """An adapter reported an event that cannot follow those before it: a defect of the adapter.

    Args:
        event: the kind of event.
        why: what was wrong with it there.
    """

    def __init__(self, event: str, why: str) -> None:
        super().__init__(
            f"the event {event} was refused: {why}",
            hint="the adapter reports its events in a wrong order; that says nothing of the agent",
        )


class DriverUnavailable(OpsDrillError):
    fault = "operator"


class HostError(OpsDrillError):
    fault = "infrastructure"

    def __init__(self, host: str, message: str, *, hint: str | None = None) -> None:
        super().__init__(f"host {host}: {message}", hint=hint)
        self.host = host


class ProvisionFailed(HostError):
    pass


class HostUnreachable(HostError):
    pass


class LeaseLost(HostError):
    def __init__(self, hosts: str, why: str) -> None:
        super().__init__(
            hosts,
            f"the run was stopped, since its lease of the host was lost: {why}",
            hint="run it again; setup begins with the scenario's restore steps",
        )


class SetupFailed(OpsDrillError):
    fault = "author"


class NotReady(OpsDrillError):
    fault = "author"


class RequirementMissing(OpsDrillError):
    fault = "author"


class AgentUnavailable(OpsDrillError):
    fault: ClassVar[Fault] = "operator"


class ProviderRefused(AgentUnavailable):
    fault = "infrastructure"


class StoreError(OpsDrillError):
    """The store cannot be read or written: disk full, read-only, locked, damaged, not ours."""

    fault: ClassVar[Fault] = "infrastructure"


class StoreDamaged(StoreError):
    """One thing in the store cannot be read back; the rest of it can.

    Args:
        what: what is wrong, in words that follow `the store is damaged:`.
    """

    def __init__(self, what: str) -> None:
        super().__init__(
            f"the store is damaged: {what}",
            hint="restore the data folder from a backup, or delete the run",
        )
        self.what = what


class StoreTooNew(StoreError):
    fault = "operator"


class OutputLost(OpsDrillError):
    fault = "infrastructure"
