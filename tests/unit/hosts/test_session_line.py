"""The text that becomes a session's program, run by the shells of this machine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opsdrill.hosts.command import Account, next_mark, quote
from opsdrill.hosts.login_shell import Login
from opsdrill.hosts.session import SessionRequest, Terminal
from opsdrill.hosts.session_line import session_line, signal_text

HERE = Account("root", os.getuid(), os.getgid(), "/")
SECONDS = 800_000_000 + os.getpid()
"""For sleeping: a number that nobody else on the machine sleeps for."""
SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]


def run(line: bytes, shell: str = "sh") -> bytes:
    words: list[str | bytes] = [shell, "sh"] if shell == "busybox" else [shell]
    words += ["-c", line]
    done = subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize("shell", SHELLS)
@settings(max_examples=15, deadline=None)
@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=99))
def test_any_text_arrives(shell: str, text: str) -> None:
    """Whatever a command's text is, it arrives as written, by any shell that starts it."""
    request = SessionRequest(f"printf %s {quote(text)}")
    assert run(session_line(next_mark(), HERE, request), shell) == text.encode()


def test_all_separators_in_a_text() -> None:
    """A text that has every character that could part its pieces is one piece."""
    text = "\x1f\x1e\x1d\x1c\x16\x15 a  *"
    line = session_line(next_mark(), HERE, SessionRequest(f"printf %s {quote(text)}"))
    assert run(line) == text.encode()


def test_no_name_stands_on_the_line() -> None:
    """Names of a command are taken apart, so that nobody finds them on a command line."""
    line = session_line(next_mark(), HERE, SessionRequest("python3 badlog.py"))
    assert b"badlog" not in line
    assert b"python3" not in line


def test_line_has_no_line_break() -> None:
    """A shell of another kind than POSIX's may have to read it as one line."""
    request = SessionRequest("echo 1\necho 2", environment={"A": "x\ny"})
    line = session_line(next_mark(), HERE, request)
    assert b"\n" not in line
    assert run(line) == b"1\n2\n"
    entry = Login("other").around(line.decode())
    assert run(entry.encode()) == b"1\n2\n"


def test_environment_is_exact() -> None:
    """What is asked for stands in place of what a command has; nothing of ours is left."""
    request = SessionRequest(
        "env", terminal=Terminal("vt100"), environment={"LANG": "C", "A": "='"}
    )
    lines = run(session_line(next_mark(), HERE, request)).decode().splitlines()
    found = dict(line.split("=", 1) for line in lines)
    for own in ("PWD", "OLDPWD", "SHLVL", "_", "PATH", "SHELL"):
        found.pop(own, None)
    wanted = {"HOME": "/", "USER": "root", "LOGNAME": "root", "LANG": "C", "TERM": "vt100"}
    assert found == {**wanted, "A": "='"}


@pytest.mark.parametrize("shell", SHELLS)
def test_signals_reach_the_group_of_a_session(shell: str) -> None:
    """All of the session's process group gets the signal, and no other session."""
    marks = next_mark(), next_mark()
    request = SessionRequest(f"sleep {SECONDS}; sleep 864197531")
    first, second = (
        subprocess.Popen(["sh", "-c", session_line(mark, HERE, request)], start_new_session=True)
        for mark in marks
    )
    try:
        deadline = time.monotonic() + 20
        while len(sleepers()) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        words = [shell, "sh"] if shell == "busybox" else [shell]
        text = "n='\n';" + signal_text(marks[0], "TERM")
        subprocess.run([*words, "-c", text], check=True, stdin=subprocess.DEVNULL)
        assert first.wait(20) == -signal.SIGTERM
        assert len(sleepers()) == 1
        assert second.poll() is None
    finally:
        for process in (first, second):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def sleepers() -> list[str]:
    found = subprocess.run(
        ["pgrep", "-x", "-f", f"sleep {SECONDS}"], capture_output=True, text=True, check=False
    )
    return found.stdout.split()
