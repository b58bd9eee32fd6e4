"""The text of a shell that stays, in every shell that may stand at /bin/sh."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from opsdrill.hosts.command import BOOT, Account, next_mark
from opsdrill.hosts.resident import stay_input, stay_line

SHELLS = {"dash": ["dash"], "bash": ["bash", "--posix"], "busybox": ["busybox", "sh"]}
ACCOUNT = Account("root", 0, 0, "/")


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> list[str]:
    words = SHELLS[request.param]
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not there")
    if os.geteuid() != 0:
        pytest.skip("only root sees what others hold open")
    return words


def told(shell: list[str], *texts: str, more: bytes = b"") -> tuple[list[str], list[str]]:
    """What such a shell writes on both streams for some commands."""
    given = stay_line("FIRST", ACCOUNT).encode() + more
    for number, text in enumerate(texts):
        given += stay_input(f"N{number}", next_mark(), text.encode())
    done = subprocess.run(
        [*shell, "-c", BOOT], input=given, capture_output=True, timeout=60, check=False, env={}
    )
    return done.stdout.decode().splitlines(), done.stderr.decode().splitlines()


def test_commands_one_after_another(shell: list[str]) -> None:
    """Each is framed on standard output, and told on standard error with its own exit status."""
    out, err = told(shell, "echo a; echo b >&2", "exit 7", "kill -9 $$")
    assert out == ["FIRST", "a", "N0", "N1", "N2"]
    assert err == ["N0 bash", "b", "N0 0 free", "N1 bash", "N1 7 free", "N2 bash", "N2 137 free"]


def test_output_that_is_held_open(shell: list[str]) -> None:
    """While a background process holds its output open, a shell takes no further command."""
    for held in (
        "sleep 1 &",
        "(setsid sleep 1 &)",
        "sleep 1 2>/dev/null &",
        "sleep 1 >/dev/null &",
    ):
        out, err = told(shell, held, "echo never")
        assert out == ["FIRST", "N0"]
        assert err == ["N0 bash", "N0 0 held"]


def test_question_in_between(shell: list[str]) -> None:
    """An empty line is answered by one."""
    out, _ = told(shell, "echo a", more=b"\n\n")
    assert out == ["FIRST", "", "", "a", "N0"]


def test_text_that_no_shell_read(shell: list[str], tmp_path: Path) -> None:
    """What was left unread is never run, and said to be unread."""
    broken = stay_line("FIRST", ACCOUNT).replace("/bin/bash", "/no/bash").encode()
    text = f"touch {tmp_path}/ran\ntouch {tmp_path}/ran\n".encode()
    done = subprocess.run(
        [*shell, "-c", BOOT],
        input=broken + stay_input("N0", next_mark(), text),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.stderr.decode().splitlines()[-1] == "N0 127 none"
    assert not (tmp_path / "ran").exists()


def test_text_that_was_cut_off(shell: list[str], tmp_path: Path) -> None:
    """A text whose end did not arrive is another command: none of it runs."""
    given = stay_input("N0", next_mark(), f"touch {tmp_path}/ran\n: more".encode())
    end = given.index(b"\0")
    for size in (end, end - 1, end - 5):
        subprocess.run(
            [*shell, "-c", BOOT],
            input=stay_line("FIRST", ACCOUNT).encode() + given[:size],
            capture_output=True,
            timeout=60,
            check=False,
        )
    assert not (tmp_path / "ran").exists()
    told(shell, f"touch {tmp_path}/ran")
    assert (tmp_path / "ran").exists()


def test_process_group_is_the_commands_own(shell: list[str]) -> None:
    """A command that kills its process group leaves the shell that stays alive."""
    _, err = told(shell, "kill -9 0", "kill 0; sleep 9", "echo on")
    assert err == ["N0 bash", "N0 137 free", "N1 bash", "N1 143 free", "N2 bash", "N2 0 free"]


def test_foreign_proc_is_not_believed(shell: list[str]) -> None:
    """Where /proc tells of other process numbers, nothing is known, and so all is held."""
    unshare = ["unshare", "--pid", "--fork"]
    if subprocess.run([*unshare, "true"], check=False).returncode != 0:
        pytest.skip("takes process namespaces")
    _, err = told([*unshare, *shell], "true", "true")
    assert err == ["N0 bash", "N0 0 held"]
