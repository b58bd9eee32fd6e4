"""Hosts whose answers are masked: for the phases, which keep what hosts answer.

A host gets every command as it is; only what comes back, and the command as it stands in the
answer, is masked. The agent has the hosts themselves: what it is told must be true.
"""

from __future__ import annotations

from opsdrill.evidence.mask import Mask
from opsdrill.evidence.masking import masked
from opsdrill.hosts.driver import Fleet, Host
from opsdrill.hosts.fleet import WrappedFleet
from opsdrill.hosts.session import Session, SessionRequest
from opsdrill.model.host import ChangedFile, Command, HostAnswer, HostFacts


def masked_answer(mask: Mask, answer: HostAnswer) -> HostAnswer:
    """The answer masked, also a secret that stands half at the end of cut output."""
    whole = masked(mask, answer)
    cuts = {
        name: mask.text(getattr(whole, name), cut=True)
        for name in ("stdout", "stderr")
        if getattr(whole, f"{name}_bytes") is not None
    }
    return whole.model_copy(update=cuts) if cuts else whole


class MaskedHost:
    """A host whose answers are masked (see `Host`)."""

    def __init__(self, host: Host, mask: Mask) -> None:
        self._host = host
        self._mask = mask

    @property
    def facts(self) -> HostFacts:
        return masked(self._mask, self._host.facts)

    async def run(self, command: Command) -> HostAnswer:
        return masked_answer(self._mask, await self._host.run(command))

    async def open(self, request: SessionRequest) -> Session:
        """What it says passes as it is: a session is for whoever works on the host."""
        return await self._host.open(request)

    async def put(
        self, path: str, content: bytes, *, mode: int | None = 0o644, owner: str | None = "root"
    ) -> None:
        await self._host.put(path, content, mode=mode, owner=owner)

    async def get(self, path: str, *, limit: int = 1024 * 1024) -> bytes:
        return await self._host.get(path, limit=limit)

    async def mark(self) -> None:
        await self._host.mark()

    async def changed(self) -> tuple[ChangedFile, ...] | None:
        changed = await self._host.changed()
        return None if changed is None else tuple(masked(self._mask, file) for file in changed)


class MaskedFleet(WrappedFleet[MaskedHost]):
    """The hosts of a run with their answers masked (see `Fleet`)."""

    def __init__(self, fleet: Fleet, mask: Mask) -> None:
        super().__init__(fleet, lambda host: MaskedHost(host, mask))
