"""What an `agents.yaml` says about an agent beside its adapter and its argument."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from opsdrill.model.fields import Filled, Items, NotBlank, Seconds, Written
from opsdrill.model.secret import VARIABLE, SecretReference

Variable = Annotated[str, StringConstraints(pattern=VARIABLE)]
"""The name of an environment variable."""

LISTENING = r"^([0-9.]{7,15}|\[[0-9a-f:]{2,39}\]|localhost):[0-9]{1,5}$"

ServerName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,29}$")]


def _url(text: str) -> str:
    if not text.isprintable() or " " in text or not text.startswith(("http://", "https://")):
        raise PydanticCustomError("url", "must be an http or https address")
    return text


Url = Annotated[NotBlank, Field(max_length=2000), AfterValidator(_url)]


class Budgets(Written):
    """What an agent may use up in one job; running into one is its own limit."""

    seconds: Seconds | None = None
    """Seconds of the whole job, where the agent shall have less than the scenario gives."""
    tokens: Annotated[int, Field(ge=1)] | None = None
    """Tokens that its models read and write."""
    cost_usd: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Dollars that its models cost."""
    tasks: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Tasks that it may make."""


class McpServer(Written):
    """How an MCP server is reached: exactly one of `command` and `url`."""

    command: Filled[NotBlank] | None = None
    """A program of this machine and its arguments; it speaks over standard input and output."""
    environment: Items[Variable] = ()
    """Variables of this process that the program gets; it gets no others but PATH and HOME."""
    url: Url | None = None
    token: SecretReference | None = None
    """Sent to `url` as a bearer token."""

    @model_validator(mode="after")
    def _one_way(self) -> McpServer:
        if (self.command is None) == (self.url is None):
            raise PydanticCustomError("one_way", "needs exactly one of `command` and `url`")
        return self


class AgentSettings(Written):
    """The keys of an agent that only some adapters can keep to; others refuse them."""

    base_url: Url | None = None
    """Where an OpenAI-compatible server is, for a model that no provider knows."""
    token: SecretReference | None = None
    """What the agent's own service or the model's server is logged in to with."""
    signing_key: SecretReference | None = None
    """What call-backs of the agent's service are signed with."""
    callback: Annotated[str, StringConstraints(pattern=LISTENING)] | None = None
    """Where call-backs are listened for, `ADDRESS:PORT`; left out, events are polled."""
    budgets: Budgets | None = None
    deny: Items[NotBlank] = ()
    """Patterns of commands that are refused before they run."""
    mcp_servers: dict[ServerName, McpServer] | None = None
    environment: Items[Variable] = ()
    """Variables of this process that the agent gets."""
    transcript: NotBlank | None = None
    """Where the agent leaves its own transcript: a pattern of paths in its folder."""

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    @property
    def written(self) -> frozenset[str]:
        """The keys that say something."""
        return frozenset(
            name for name in type(self).model_fields if getattr(self, name) not in (None, (), {})
        )
