"""Whether the process that works on a run still lives."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from opsdrill.runner.owner import is_gone, this_process
from opsdrill.store.store import Owner


def test_this_process_lives() -> None:
    """A process finds itself, the same each time."""
    owner = this_process()
    assert owner.pid == os.getpid()
    assert owner.started > 0
    assert owner == this_process()
    assert not is_gone(owner)


def test_a_dead_process_is_gone() -> None:
    """A process that ended is gone; its pid alone does not bring it back."""
    script = "from opsdrill.runner.owner import this_process as t; o = t(); print(o.pid, o.started)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    pid, started = map(int, done.stdout.split())
    assert is_gone(replace(this_process(), pid=pid, started=started))


def test_a_zombie_is_gone() -> None:
    """A process that ended and was not waited for does not work any more."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        stat = Path(f"/proc/{child.pid}/stat").read_text()
        owner = replace(
            this_process(), pid=child.pid, started=int(stat.rpartition(")")[2].split()[19])
        )
        assert not is_gone(owner)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert is_gone(owner)


def test_a_pid_used_again_is_another_process() -> None:
    """The same pid with another start is gone."""
    owner = this_process()
    assert is_gone(replace(owner, started=owner.started - 1))


def test_another_boot_is_gone() -> None:
    """Nothing lives on from before the machine was started."""
    assert is_gone(replace(this_process(), boot="another"))


def test_another_machine_cannot_be_seen() -> None:
    """Not seen is not gone: a process of another machine is left alone."""
    assert not is_gone(Owner("elsewhere", "another", 1, 1))
    assert not is_gone(replace(this_process(), machine="elsewhere", started=1))


def test_names_with_brackets(tmp_path: Path) -> None:
    """A command's name may hold anything, brackets and line breaks as well."""
    fields = " ".join(["S", *"123456789", *"012345678", "4242", "0"])
    folder = tmp_path / str(os.getpid())
    folder.mkdir()
    (folder / "stat").write_text(f"{os.getpid()} (a) (b\n) Z) {fields}\n")
    assert this_process(tmp_path).started == 4242


@pytest.mark.parametrize("alive", [True, False])
def test_without_proc(tmp_path: Path, alive: bool) -> None:
    """Where there is no /proc the pid is asked for, and that is all that can be known."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        owner = replace(this_process(tmp_path), pid=child.pid)
        assert (owner.boot, owner.started) == ("", 0)
        if not alive:
            child.kill()
            child.wait()
        assert is_gone(owner, tmp_path) is not alive
