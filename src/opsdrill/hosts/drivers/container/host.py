"""One container, as a run sees it."""

from __future__ import annotations

from opsdrill.hosts.command import ask_line, next_nonce
from opsdrill.hosts.drivers.container.changes import (
    Files,
    compare,
    diff_arguments,
    parse_diff,
    parse_entries,
    stat_text,
)
from opsdrill.hosts.drivers.container.engine import Engine
from opsdrill.hosts.drivers.container.link import ContainerLink
from opsdrill.hosts.shell_host import ShellHost
from opsdrill.hosts.shell_link import NoAnswer
from opsdrill.model.host import ChangedFile, HostFacts

_FILES_SECONDS = 120.0
_FILES_LIMIT = 64 * 1024 * 1024
"""Bytes of the description of all files; beyond it changes are not told."""


class ContainerHost(ShellHost):
    """A host while a run has it.

    Args:
        facts: what it is made of.
        link: the way to it.
        engine: whose container it is.
        container: its name.
    """

    def __init__(
        self, facts: HostFacts, link: ContainerLink, engine: Engine, container: str
    ) -> None:
        super().__init__(facts, link)
        self._engine = engine
        self._container = container
        self._marked: Files | None = None

    async def mark(self) -> None:
        self._marked = await self._files()

    async def changed(self) -> tuple[ChangedFile, ...] | None:
        now = await self._files() if self._marked is not None else None
        if now is None or self._marked is None:
            return None
        return compare(self._marked, now)

    async def _files(self) -> Files | None:
        nonce, between = next_nonce(), next_nonce()
        line = ask_line(nonce, stat_text(between)).encode()
        try:
            told = await self._link.talk(nonce, line, seconds=_FILES_SECONDS, limit=_FILES_LIMIT)
        except NoAnswer:
            return None
        arguments = diff_arguments(self._engine.kind, self._container)
        listed = await self._engine.ask(*arguments, seconds=_FILES_SECONDS)
        entries = parse_entries(told.out.text, between)
        if told.out.full_size is not None or "/" not in entries or not listed.good:
            return None
        try:
            return Files(parse_diff(self._engine.kind, listed.out), entries)
        except ValueError:
            return None
