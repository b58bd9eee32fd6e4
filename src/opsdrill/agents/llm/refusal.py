"""When a provider refuses: which refusals are worth another try, and what the others mean."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelRateLimitError,
    ModelRequestTimeout,
    ModelServerError,
    ModelUnavailableError,
)

from opsdrill.errors import AgentUnavailable, ProviderRefused

T = TypeVar("T")

WAITS = (1.0, 4.0, 15.0)
"""Seconds before each further try."""
LONGEST_WAIT = 60.0
"""Seconds that a provider may ask us to wait."""

_PASSING = (
    ModelRateLimitError,
    ModelUnavailableError,
    ModelServerError,
    ModelConnectionError,
    ModelRequestTimeout,
)


async def tried(ask: Callable[[], Awaitable[T]], waits: Sequence[float]) -> T:
    """What a provider answers, asked again after refusals that may pass.

    Args:
        ask: asks once.
        waits: seconds before each further try; a provider's own wish goes before.

    Raises:
        ProviderRefused: it still refuses after the last try.
        AgentUnavailable: it refuses for a reason that does not pass.
        ModelContextWindowExceededError: the conversation has become too long for the model.
    """
    left = list(waits)
    while True:
        try:
            return await ask()
        except ModelContextWindowExceededError:
            raise
        except ModelAPIError as error:
            if not isinstance(error, _PASSING):
                raise AgentUnavailable(
                    f"the model provider refuses {error.model_name}: {_said(error)}",
                    hint="look at the name of the model and at the provider's login",
                ) from error
            if not left:
                raise ProviderRefused(
                    f"the model provider of {error.model_name} did not answer in "
                    f"{len(waits) + 1} tries: {_said(error)}"
                ) from error
            await asyncio.sleep(min(max(left.pop(0), error.retry_after or 0.0), LONGEST_WAIT))


def _said(error: ModelAPIError) -> str:
    """One bounded line of what went wrong."""
    if isinstance(error, ModelHTTPError):
        text = f"status {error.status_code}: {error.body}"
    else:
        text = error.message
    return " ".join(text.split())[:300]
