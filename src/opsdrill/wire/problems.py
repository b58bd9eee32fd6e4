"""The one shape of an error: problem details of RFC 9457."""

from __future__ import annotations

from pydantic import Field

from opsdrill.wire.body import Told


class ProblemItem(Told):
    """One thing that is wrong with what was sent."""

    path: str = Field(examples=["validation[2].pattern"])
    """Where in the document; empty for the whole of it."""
    message: str = Field(examples=["is not a valid pattern: unbalanced parenthesis at position 4"])
    severity: str = "error"
    code: str | None = Field(default=None, examples=["OD001"])
    line: int | None = None
    column: int | None = None
    suggestion: str | None = None
    replacement: str | None = None
    """A text that would be right in the place of the one at `path`."""


class ProblemDetails(Told):
    """Why a request was not done."""

    type: str = Field(examples=["urn:opsdrill:problem:invalid-input"])
    title: str = Field(examples=["Invalid input"])
    status: int = Field(examples=[422])
    detail: str = Field(examples=["scenario: validation[2].pattern is not a valid pattern"])
    """One sentence: where, what, and what to do."""
    hint: str | None = None
    instance: str = Field(examples=["urn:opsdrill:request:5f3a9c0d1e2b4a67"])
    """The request, as the log of the server names it."""
    errors: list[ProblemItem] = Field(default_factory=list)
