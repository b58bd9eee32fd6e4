"""pyinfra: one `server.shell` operation for each check, hosts side by side, none waits for others.

With `commands` as the third argument its connector alone, without operations.
"""

from __future__ import annotations

from gevent import monkey  # type: ignore[import-untyped]

monkey.patch_all()

import sys  # noqa: E402
import time  # noqa: E402
from typing import Any  # noqa: E402

import gevent  # noqa: E402
from benchmarks.hosts_peers.task import Task, main  # noqa: E402
from pyinfra.api import Config, Inventory, State, StringCommand  # type: ignore[import-not-found]  # noqa: E402
from pyinfra.api.connect import connect_all, disconnect_all  # type: ignore[import-not-found]  # noqa: E402
from pyinfra.api.operation import add_op  # type: ignore[import-not-found]  # noqa: E402
from pyinfra.api.operations import run_ops  # type: ignore[import-not-found]  # noqa: E402
from pyinfra.operations import server  # type: ignore[import-not-found]  # noqa: E402


def with_operations(state: Any, task: Task) -> int:
    added = [
        add_op(state, server.shell, commands=[check.run], _ignore_errors=True)
        for check in task.checks
    ]
    run_ops(state, no_wait=True)
    right = 0
    for check, results in zip(task.checks, added, strict=True):
        for result in results.values():
            output = "".join(f"{line}\n" for line in result.stdout_lines)
            # It tells success from failure, not one exit status from another.
            right += result.did_succeed() == (not check.status) and output == check.output
    return right


def with_commands(state: Any, task: Task) -> int:
    def on_host(host: Any) -> int:
        right = 0
        for check in task.checks:
            good, printed = host.run_shell_command(StringCommand(check.run))
            output = "".join(f"{line}\n" for line in printed.stdout_lines)
            right += good == (not check.status) and output == check.output
        return right

    jobs = [gevent.spawn(on_host, host) for host in state.inventory]
    return sum(job.get() for job in jobs)


def work(task: Task) -> tuple[int, float]:
    started = time.perf_counter()
    data = {
        "ssh_user": "root",
        "ssh_key": task.key,
        "ssh_strict_host_key_checking": "off",
        "ssh_known_hosts_file": "/dev/null",
    }
    inventory = Inventory((list(task.hosts.values()), data))
    state = State(inventory, Config())
    connect_all(state)
    right = (with_commands if "commands" in sys.argv else with_operations)(state, task)
    disconnect_all(state)
    return right, time.perf_counter() - started


if __name__ == "__main__":
    main(work)
