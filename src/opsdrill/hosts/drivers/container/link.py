"""The way to a container: the engine's `exec`."""

from __future__ import annotations

from opsdrill.hosts.command import BOOT
from opsdrill.hosts.drivers.container.birth import exec_arguments
from opsdrill.hosts.drivers.container.engine import Engine
from opsdrill.hosts.process_link import ProcessLink
from opsdrill.hosts.process_session import ProcessSession
from opsdrill.hosts.session import Terminal
from opsdrill.hosts.shell_link import Exchange, NoAnswer, Tell

_LINGER_SECONDS = 2.0
"""Seconds that the client gets to end; where a background process holds the output it does not, and
the engine reads on without it."""
_STATES = {
    "exited": "the container has stopped",
    "stopped": "the container has stopped",
    "dead": "the container has stopped",
    "paused": "the container is paused",
}


class ContainerLink(ProcessLink):
    """Starts lines in one container.

    Args:
        engine: whose container it is.
        container: its name.
    """

    def __init__(self, engine: Engine, container: str) -> None:
        arguments = exec_arguments(container, "/bin/sh", "-c", BOOT)
        # An engine reads the output of a process for as long as that process lives, and no longer.
        super().__init__((engine.program, *arguments), linger=_LINGER_SECONDS, stays=True)
        self._engine = engine
        self._container = container

    async def session(self, line: bytes, terminal: Terminal | None, tell: Tell) -> ProcessSession:
        started = exec_arguments(self._container, "/bin/sh", "-c", terminal=terminal is not None)
        session = self._new_session(tell, client=True, look=self.check)
        return self._begin(session, (self._engine.program, *started), line, terminal)

    async def no_shell(self, exchange: Exchange) -> str | None:
        unread = await super().no_shell(exchange)
        if unread is not None:
            await self.check()
        return unread

    async def check(self) -> None:
        """See whether the engine still has the container, and it runs.

        Raises:
            NoAnswer: says what became of it.
        """
        shape = "--format={{.State.Status}}"
        reply = await self._engine.ask("inspect", "--type=container", shape, self._container)
        if reply.good:
            state = reply.out.strip()
            if state in _STATES:
                raise NoAnswer(_STATES[state])
            return
        if "no such" in reply.said.lower():
            raise NoAnswer("the container is gone", passing=False)
        raise NoAnswer(f"{self._engine.kind} does not answer ({reply.said})")
