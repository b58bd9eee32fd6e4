"""What a host answers, and what was asked of it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from opsdrill.model.fields import AskedText, Instant, Items, Recorded

OUTPUT_LIMIT = 1024 * 1024
"""Bytes of each output stream that are kept; more is read and dropped."""


class Command(Recorded):
    """A command for a host: shell text, never an argument list.

    Args:
        run: the text, handed to a fresh shell as written.
        user: a user of the host.
        timeout: seconds until the command and all its descendants are killed.
    """

    run: str
    user: str = "root"
    timeout: Annotated[float, Field(gt=0)] = 60.0


class HostAnswer(Recorded):
    """What became of one command on one host: an exit status, a time-out, or no answer.

    Exactly one of `exit_code` (128+n when killed by signal n), `timed_out` and `unreachable` is
    set; a missing exit status never equals an expected one. `stdout_bytes` is the full size where
    the kept text was cut.
    """

    on: str
    run: AskedText
    exit_code: Annotated[int, Field(ge=0, le=255)] | None = None
    timed_out: Literal[True] | None = None
    unreachable: Literal[True] | None = None
    dropped: Literal[True] | None = None
    """The connection ended half way, yet the host answered when asked again."""
    stdout: str = ""
    stderr: str = ""
    stdout_bytes: int | None = None
    stderr_bytes: int | None = None
    shell: str | None = None
    user: str | None = None
    timeout: float | None = None
    reason: str | None = None
    last_answered_at: Instant | None = None
    started_at: Instant | None = None
    ended_at: Instant | None = None

    @model_validator(mode="after")
    def _one_outcome(self) -> HostAnswer:
        outcomes = (self.exit_code, self.timed_out, self.unreachable, self.dropped)
        if sum(outcome is not None for outcome in outcomes) != 1:
            raise PydanticCustomError(
                "one_outcome",
                "needs exactly one of `exit_code`, `timed_out`, `unreachable` and `dropped`",
            )
        return self

    @property
    def truncated(self) -> bool:
        """Some output was dropped because it went past `OUTPUT_LIMIT`."""
        return self.stdout_bytes is not None or self.stderr_bytes is not None


class HostAnswers(Recorded):
    """What the hosts answered, in the order asked: the file of `--host-answers`."""

    answers: Items[HostAnswer] = ()


class ChangedFile(Recorded):
    """A path that differs from what it was when setup ended."""

    path: str
    change: Literal["added", "changed", "removed"]
    size: int | None = None


class HostFacts(Recorded):
    """What a host was made of, since results can depend on it."""

    name: str
    driver: str
    shell: str
    distribution: str | None = None
    kernel: str | None = None
    packages_digest: str | None = None
    users: bool | None = None
    """Commands can run as users other than root; None where the driver cannot tell."""
    limits: dict[str, str] = {}
    """What is bounded here and what is not, in words."""
