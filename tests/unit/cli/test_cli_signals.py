"""Signals that the program was started with."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import signal, subprocess, time
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGCHLD):
    signal.signal(number, signal.SIG_IGN)
from opsdrill.cli.main import hand_down_no_ignoring
hand_down_no_ignoring()
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    signal.raise_signal(number)
subprocess.run(["grep", "SigIgn", "/proc/self/status"], restore_signals=True)
print("status", subprocess.run(["sh", "-c", "exit 3"]).returncode)
"""


def test_what_is_ignored_here_is_not_ignored_by_what_is_started() -> None:
    """Under `nohup` the program goes on, and a command of a drill hears SIGHUP all the same."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True
    )
    assert int(done.stdout.split()[1], 16) == 0


def test_ends_of_children_are_seen_whatever_was_ignored() -> None:
    """Where they were ignored, no program that is started here ends with a made-up status."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], check=True, capture_output=True, text=True
    )
    assert "status 3\n" in done.stdout
