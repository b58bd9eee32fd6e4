"""What the server did not do, as exceptions with its problem details.

ApiError
|-- Refused         400, 405, 408, 413, 415, 421, 422, 428   what was sent cannot be
|-- NotAllowed      401, 403           nobody that is known, or a role that is too low
|-- NotThere        404                there is no such run, scenario, token ...
|-- Conflict        409, 412           what is kept stands against it, or was changed meanwhile
|-- TooMany         429                too often, or too many at once
|-- Unavailable     500 and above      our fault, or something that it needs
`-- Unreachable     no answer          nobody knows whether it was done
"""

from __future__ import annotations

from typing import ClassVar

import httpx
from pydantic import ValidationError

from opsdrill.errors import Fault, OpsDrillError
from opsdrill.wire.problems import ProblemDetails

MOST_SHOWN = 200


class ApiError(OpsDrillError):
    """The server did not do what it was asked.

    Args:
        problem: why, as the server told it.
    """

    fault: ClassVar[Fault] = "operator"

    def __init__(self, problem: ProblemDetails) -> None:
        super().__init__(problem.detail, hint=problem.hint)
        self.problem = problem

    @property
    def status(self) -> int:
        """Of HTTP; 0 where no answer came."""
        return self.problem.status


class Refused(ApiError):
    """What was sent cannot be; `problem.errors` says where."""


class NotAllowed(ApiError):
    """A token is needed, or one of a higher role."""


class NotThere(ApiError):
    """There is no such thing, or not any more."""


class Conflict(ApiError):
    """It is there already, still runs, or was changed meanwhile (412)."""


class TooMany(ApiError):
    """Too many wrong tokens, or too many followers."""


class Unavailable(ApiError):
    """The server, its store, a lab or an agent cannot be used now."""

    fault = "infrastructure"


class Unreachable(ApiError):
    """No answer came, or none that can be read: whether it was done is not known."""

    fault = "infrastructure"

    def __init__(self, why: str) -> None:
        super().__init__(
            ProblemDetails(
                type="about:blank",
                title="No answer",
                status=0,
                detail=why,
                hint="is the address right, and does the server run?",
                instance="",
            )
        )


_KINDS: dict[int, type[ApiError]] = {
    401: NotAllowed, 403: NotAllowed, 404: NotThere, 409: Conflict, 412: Conflict, 429: TooMany,
}  # fmt: skip


def refusal(answer: httpx.Response, content: bytes) -> ApiError:
    """The exception for an answer that is none of those that were hoped for."""
    status = answer.status_code
    try:
        problem = ProblemDetails.model_validate_json(content)
    except ValidationError:
        problem = ProblemDetails(
            type="about:blank",
            title=answer.reason_phrase[:MOST_SHOWN] or "Error",
            status=status,
            detail=f"{answer.url.host} answered {status}, and not as OpsDrill does",
            hint="does something stand between, such as a proxy?",
            instance="",
        )
    if status >= 500:
        return Unavailable(problem)
    return _KINDS.get(status, Refused)(problem)
