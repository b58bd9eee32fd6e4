"""A model by its name: any provider that pydantic-ai knows, or an OpenAI-compatible server."""

from __future__ import annotations

from types import TracebackType

from openai import AsyncOpenAI
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from opsdrill.errors import AgentUnavailable

SERVER = "server"
"""What a model of an OpenAI-compatible server is called by before its own name."""
REQUEST_SECONDS = 300.0
"""How long a server may take for one answer."""


class ServerModel(OpenAIChatModel):
    """A model of an OpenAI-compatible server; closes its own connections when it is left."""

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        try:
            return await super().__aexit__(kind, error, trace)
        finally:
            await self.client.close()


def open_model(name: str, base_url: str | None, token: str | None) -> Model:
    """The model called `name`.

    Args:
        name: `PROVIDER:MODEL`; the server's own name of the model where there is a `base_url`.
        base_url: where an OpenAI-compatible server is.
        token: what that server is logged in to with.

    Raises:
        AgentUnavailable: there is no such provider or model, its package is not installed, or its
            login is missing.
    """
    if base_url is not None:
        # The server's refusals are tried again by us, and by nobody else.
        client = AsyncOpenAI(
            base_url=base_url, api_key=token or "none", max_retries=0, timeout=REQUEST_SECONDS
        )
        return ServerModel(name, provider=OpenAICompatibleProvider(SERVER, openai_client=client))
    try:
        return infer_model(name)
    except (UserError, ImportError, ValueError) as error:
        said = " ".join(str(error).split()).partition(". ")[0][:300]  # what follows is advice
        raise AgentUnavailable(
            f"the model {name} cannot be used: {said}",
            hint="write it as llm:PROVIDER:MODEL, with the provider's login in the environment",
        ) from error
