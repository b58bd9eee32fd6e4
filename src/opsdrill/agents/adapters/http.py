"""`http:URL`: an agent that is a service."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

from opsdrill.agents.adapter import AdapterContext, Assignment
from opsdrill.agents.http.client import (
    WAITS,
    ProtocolBroken,
    Service,
    ServiceRefused,
    ServiceSilent,
)
from opsdrill.agents.http.job import HttpJob
from opsdrill.errors import AgentUnavailable, UsageError
from opsdrill.evidence.recorder import Recorder
from opsdrill.hosts.secret import Secrets
from opsdrill.model.secret import SecretSource


class HttpAdapter:
    """Drives a service that speaks `opsdrill.agent/1`.

    Attributes:
        waits: seconds before each further try when the service does not answer.
    """

    name = "http"
    keeps = frozenset({"token", "signing_key", "callback", "deny"})
    waits: tuple[float, ...] = WAITS

    def __init__(self, context: AdapterContext) -> None:
        self._url = _address(context.argument or "")
        self._settings = context.settings
        self._folder = context.folder or Path()
        if context.settings.callback is not None and context.settings.signing_key is None:
            raise UsageError("`callback` needs a `signing_key`, so that call-backs are known to be")

    async def preflight(self, hosts: tuple[str, ...]) -> None:  # noqa: ARG002
        await self.hello()

    async def hello(self) -> str:
        """The service that answers, having been asked. Raises as `preflight` does."""
        async with self._service() as service:
            try:
                greeting = await service.greet()
            except (ServiceSilent, ServiceRefused, ProtocolBroken) as error:
                raise AgentUnavailable(
                    f"the service at {self._url} cannot be used: {error}",
                    hint="it must answer GET as the page http-agents says",
                ) from error
        named = f"the service {greeting.name}" if greeting.name else f"the service at {self._url}"
        return f"{named}, the model {greeting.model}" if greeting.model else named

    async def work(self, assignment: Assignment, recorder: Recorder) -> None:
        settings = self._settings
        async with self._service() as service:
            job = HttpJob(
                service,
                assignment,
                recorder,
                deny=settings.deny,
                callback=settings.callback,
                key=self._key(),
            )
            await job.work()

    def _service(self) -> Service:
        token = self._secret("token", self._settings.token)
        return Service(self._url, token, self._key(), self.waits)

    def _key(self) -> bytes | None:
        key = self._secret("signing_key", self._settings.signing_key)
        return None if key is None else key.encode()

    def _secret(self, name: str, source: SecretSource | None) -> str | None:
        return None if source is None else Secrets({name: source}, self._folder).value(name)


def _address(text: str) -> str:
    """The address of a service, without a slash at its end.

    Raises:
        UsageError: it is none, or holds more than an address.
    """
    text = text.strip()
    hint = "write it as http:https://HOST/PATH, or http:http://127.0.0.1:PORT"
    if re.fullmatch(r"https?://[!-~]+", text) is None:
        raise UsageError(f"{text!r} is not the address of a service", hint=hint)
    try:
        parts = urlsplit(text)
        known = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        known, parts = False, urlsplit("")
    if not known:
        raise UsageError(f"{text!r} is not the address of a service", hint=hint)
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "the address of a service holds no login",
            hint="give a `token` in a file of --agent-config",
        )
    if parts.query or parts.fragment or "?" in text or "#" in text:
        raise UsageError("the address of a service has no ? and no #", hint=hint)
    return text.rstrip("/")
