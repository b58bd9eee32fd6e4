"""What background processes write to the output of what started them, after its end: read and
dropped.

A closed pipe would kill them, a full one would hold them up. One thread does it for all hosts: a
process for each such command could be had without end by running commands on a host.
"""

from __future__ import annotations

import os
import select
import threading
import time
from collections import Counter

MOST_PIPES = 1024
"""Pipes of one host that are kept; a further one is closed, as when its reader went away."""
_CHUNK = 1 << 16
_PAUSE_SECONDS = 0.005
"""One who writes without end must not take a processor from those who do not."""


class Drains:
    """Reads pipes until their last writer is gone."""

    def __init__(self) -> None:
        self._poll = select.epoll()
        self._end = os.eventfd(0, os.EFD_CLOEXEC)
        self._poll.register(self._end, select.EPOLLIN)
        self._hosts: dict[int, str] = {}
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def take(self, host: str, pipe: int) -> None:
        """Read this pipe from now on; the caller keeps, and may close, the descriptor given.

        Args:
            host: whose processes write to it.
            pipe: the reading end, which does not block.
        """
        with self._lock:
            if self._counts[host] >= MOST_PIPES:
                return
            try:
                own = os.dup(pipe)
            except OSError:
                return  # as many as this process may open
            self._hosts[own] = host
            self._counts[host] += 1
            self._poll.register(own, select.EPOLLIN)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="drains", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Let go of all pipes; nothing can be taken afterwards."""
        os.eventfd_write(self._end, 1)
        if self._thread is not None:
            self._thread.join()
        for pipe in self._hosts:
            os.close(pipe)
        self._hosts.clear()
        self._poll.close()
        os.close(self._end)

    def _work(self) -> None:
        while True:
            for pipe, _ in self._poll.poll():
                if pipe == self._end:
                    return
                if _is_over(pipe):
                    self._drop(pipe)
            time.sleep(_PAUSE_SECONDS)

    def _drop(self, pipe: int) -> None:
        with self._lock:
            self._poll.unregister(pipe)
            host = self._hosts.pop(pipe)
            self._counts[host] -= 1
            if not self._counts[host]:
                del self._counts[host]
            os.close(pipe)


def _is_over(pipe: int) -> bool:
    try:
        return not os.read(pipe, _CHUNK)
    except BlockingIOError:
        # Somebody on the host, who may open it too, was first.
        return False
