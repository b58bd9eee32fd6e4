"""A model that is asked again when its provider refuses, and whose every answer is heard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from opsdrill.agents.llm.meter import Meter, Tally
from opsdrill.agents.llm.refusal import tried


class WatchedModel(WrapperModel):
    """A model as one task, or the planner, uses it.

    Args:
        wrapped: the model itself.
        meter: what the whole job uses up; asked before each request, and after each answer.
        heard: told the text of each answer, empty where it has none, and what was used so far.
        waits: seconds before each further try when the provider refuses.
    """

    def __init__(
        self,
        wrapped: Model,
        meter: Meter,
        heard: Callable[[str, Tally], None],
        waits: Sequence[float],
    ) -> None:
        super().__init__(wrapped)
        self._meter = meter
        self._tally = Tally(meter.model)
        self._heard = heard
        self._waits = waits

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask the model.

        Raises:
            BudgetSpent: a budget is spent, by this answer at the latest.
            ProviderRefused, AgentUnavailable: the provider refuses.
        """
        self._meter.check()
        response = await tried(
            lambda: self.wrapped.request(messages, model_settings, model_request_parameters),
            self._waits,
        )
        for tally in (self._tally, self._meter.whole):
            _count(tally, response)
        self._heard(_text(response), self._tally)
        self._meter.check()
        return response


def _text(response: ModelResponse) -> str:
    return "".join(part.content for part in response.parts if isinstance(part, TextPart)).strip()


def _count(tally: Tally, response: ModelResponse) -> None:
    used = response.usage
    known = not used.unmeasured_requests
    tally.add(
        used.input_tokens if known else None,
        used.output_tokens if known else None,
        _cost(response),
    )


def _cost(response: ModelResponse) -> Decimal | None:
    """What the answer cost in US dollars; None where no price is known."""
    if response.usage.cost is not None:
        return response.usage.cost
    if not response.model_name or response.usage.unmeasured_requests:
        return None
    try:
        return response.cost().total_price
    except (LookupError, ValueError):
        return None
