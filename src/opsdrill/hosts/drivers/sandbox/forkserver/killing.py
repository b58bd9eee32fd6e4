"""A command is ended with everything it started, `setsid` and double forks included.

All of it carries the number of one UTS namespace, which it can neither change nor shed.
"""

# ruff: noqa: PTH208
from __future__ import annotations

import os
import signal
import time
from collections.abc import Set

PATIENCE = 5.0
"""Seconds after which killing gives up; a process may be stuck in the kernel."""
_STOP_ROUNDS = 50


def kill_marked(mark: int) -> int:
    """Kill every process with this mark of the host whose files this process sees.

    This process stands outside the host's process namespace: nobody inside can stop or kill it.
    So it cannot use the process ids in the host's `/proc`, but the folders there are processes
    to `pidfd_send_signal` as pidfds are.

    Returns:
        How many processes were left when time was up.
    """
    end = time.monotonic() + PATIENCE
    # Stop all first, so that none can start another, then kill until none is left.
    stopped: set[int] = set()
    for _ in range(_STOP_ROUNDS):
        fresh = _signal(mark, signal.SIGSTOP, but=stopped) - stopped
        if not fresh or time.monotonic() > end:
            break
        stopped |= fresh
    while (left := _signal(mark, signal.SIGKILL)) and time.monotonic() < end:
        time.sleep(0.001)
    return len(left)


def _signal(mark: int, number: signal.Signals, but: Set[int] = frozenset()) -> set[int]:
    """Send a signal to all with this mark, but to those named; the numbers of all."""
    found = set()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            process = os.open(f"/proc/{name}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            continue  # it ended meanwhile
        try:
            if os.stat("ns/uts", dir_fd=process).st_ino != mark:
                continue
            found.add(int(name))
            if int(name) not in but:
                signal.pidfd_send_signal(process, number)
        except OSError:
            # It ended meanwhile, or it is another command on its way into the host.
            continue
        finally:
            os.close(process)
    return found
