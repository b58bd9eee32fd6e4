"""pytest-testinfra: one test for each check and host; the environment names the task's file."""

from __future__ import annotations

import os
from typing import Any

import pytest
from benchmarks.hosts_peers.task import Check, read_task


@pytest.mark.parametrize("check", read_task(os.environ["TASK"]).checks)
def test_check(host: Any, check: Check) -> None:
    answer = host.run(check.run)
    assert check.holds(answer.rc, answer.stdout)
