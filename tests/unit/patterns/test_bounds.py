"""Bad patterns cannot hang a run: budgets, lost processes, memory, and nothing left behind."""

from __future__ import annotations

import ast
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from opsdrill.errors import OpsDrillError
from opsdrill.patterns import BoundedSearcher, Searched, compile_pattern
from opsdrill.patterns.turnstile import Turnstile

EVIL = compile_pattern(r"(?=a)(a+)+$")
HANG = "a" * 40 + "!"


_EARLIER: set[int] = set()


def all_child_processes() -> set[int]:
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # a thread that ended meanwhile
            found.update(int(pid) for pid in (task / "children").read_text().split())
    return found


def child_processes() -> set[int]:
    """Those that this test started; another test's may still be there."""
    return all_child_processes() - _EARLIER


@pytest.fixture(autouse=True)
def _remember_earlier() -> None:
    _EARLIER.clear()
    _EARLIER.update(all_child_processes())


def open_files() -> set[str]:
    return {entry.name for entry in Path("/proc/self/fd").iterdir()}


def wait_until(holds: Callable[[], bool], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def test_a_nested_quantifier_ends_and_other_values_are_found() -> None:
    """Fault 36: the value is exhausted in seconds, all others are searched as ever."""
    values = ["xa", HANG, "aaa", "b", HANG, "é aa"]
    begin = time.monotonic()
    with BoundedSearcher(0.2) as searcher:
        found = searcher.search(EVIL, values)
        assert found == Searched(((1, 2), None, (0, 3), None, None, (2, 4)), (1, 4))
        assert searcher.search(compile_pattern("(?=b)b"), values).spans[3] == (0, 1)
    assert time.monotonic() - begin < 30


def test_the_linear_engine_answers_where_python_would_hang() -> None:
    """`(a+)+$` needs no budget at all, and a foreign character cannot make it need one."""
    with BoundedSearcher(0.2) as searcher:
        assert searcher.search(compile_pattern("(a+)+$"), [HANG, "xaa"]) == Searched((None, (1, 3)))
        assert searcher.search(compile_pattern("(a+)+$"), [HANG + "é"]) == Searched((None,))


def test_a_search_as_a_whole_is_bounded() -> None:
    """Thousands of values that hang end too: what was not tried counts as exhausted."""
    begin = time.monotonic()
    with BoundedSearcher(0.05) as searcher:
        found = searcher.search(EVIL, ["aa", *[HANG] * 2000])
    assert found.spans[0] == (0, 2)
    assert found.exhausted == tuple(range(1, 2001))
    assert time.monotonic() - begin < 60


def test_a_slow_value_does_not_pay_for_those_before_it() -> None:
    """The budget is for each value: many that are slow together are all searched."""
    slow = "a" * 16 + "!"  # some milliseconds each
    with BoundedSearcher(0.5) as searcher:
        found = searcher.search(EVIL, [slow, "a"] * 150)
    assert found.exhausted == ()
    assert found.spans == (None, (0, 1)) * 150


def test_the_budget_counts_cpu_seconds_not_wall_seconds() -> None:
    """A process that is stopped for longer than the budget has used nothing of it."""
    with BoundedSearcher(1.0) as searcher:
        searcher.search(EVIL, ["a"])
        (worker,) = child_processes()
        os.kill(worker, signal.SIGSTOP)
        timer = threading.Timer(1.5, os.kill, (worker, signal.SIGCONT))
        timer.start()
        assert searcher.search(EVIL, ["ba"]) == Searched(((1, 2),))
        timer.join()
        assert child_processes() == {worker}


def test_a_process_that_stays_silent_is_replaced() -> None:
    with BoundedSearcher(1.0, patience=0.5) as searcher:
        searcher.search(EVIL, ["a"])
        (worker,) = child_processes()
        os.kill(worker, signal.SIGSTOP)
        assert searcher.search(EVIL, ["ba", "a"]) == Searched(((1, 2), (0, 1)))
        assert worker not in child_processes()


def test_a_process_that_somebody_killed_is_replaced() -> None:
    with BoundedSearcher() as searcher:
        searcher.search(EVIL, ["a"])
        (worker,) = child_processes()
        os.kill(worker, signal.SIGKILL)
        assert searcher.search(EVIL, ["ba"] * 3000) == Searched(((1, 2),) * 3000)


def test_a_value_whose_process_is_killed_every_time_is_not_known() -> None:
    """Not seen is not false: such a value is exhausted, the next search works."""
    stop = threading.Event()

    def killing() -> None:
        while not stop.is_set():
            for worker in child_processes():
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
            time.sleep(0.001)

    with BoundedSearcher(5.0) as searcher:
        killer = threading.Thread(target=killing)
        killer.start()
        found = searcher.search(EVIL, [HANG])
        stop.set()
        killer.join()
        assert found == Searched((None,), (0,))
        assert searcher.search(EVIL, ["a"]) == Searched(((0, 1),))


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that wants more memory than there is leaves the value open, not the run."""
    monkeypatch.setattr("opsdrill.patterns.search_process.MEMORY", 200 * 1024**2)
    values = ["ab" * 4_000_000, "ab"]
    with BoundedSearcher(20.0) as searcher:
        found = searcher.search(compile_pattern("(?=a)(?:(a)|(b))*$"), values)
    assert found == Searched((None, (0, 2)), (0,))


@pytest.mark.parametrize(
    ("filler", "count"),
    [("x", 20_000_000), ("é", 10_000_000), ("x\n", 10_000_000), ("\ud800", 9999)],
)
def test_values_of_tens_of_megabytes(filler: str, count: int) -> None:
    value = filler * count + "needle"
    with BoundedSearcher(20.0) as searcher:
        for text in ("needle", "(?=n)needle$"):
            found = searcher.search(compile_pattern(text), [value, "needle"])
            assert found == Searched(((len(value) - 6, len(value)), (0, 6)))


def test_closing_ends_a_search_that_is_under_way() -> None:
    searcher = BoundedSearcher(30.0)
    errors: list[str] = []

    def search() -> None:
        try:
            searcher.search(EVIL, [HANG])
        except OpsDrillError as error:
            errors.append(error.message)

    thread = threading.Thread(target=search)
    thread.start()
    wait_until(lambda: bool(child_processes()))
    time.sleep(0.2)
    searcher.close()
    thread.join(timeout=20)
    assert not thread.is_alive()
    assert errors == ["the search was stopped, because its searcher was closed"]
    assert child_processes() == set()
    searcher.close()


def test_nothing_is_left_after_use() -> None:
    files = open_files()
    with BoundedSearcher() as searcher:
        searcher.search(EVIL, ["a"])
        assert len(child_processes()) == 1
    assert child_processes() == set()
    assert open_files() == files


def test_no_process_is_started_for_what_the_linear_engine_can() -> None:
    with BoundedSearcher() as searcher:
        searcher.search(compile_pattern("a"), ["a", "b\nc"])
        assert child_processes() == set()


def test_the_search_process_ends_with_its_parent() -> None:
    """However the parent ends: its standard input ends with it."""
    script = (
        "import sys, os, signal\n"
        "from pathlib import Path\n"
        "from opsdrill.patterns import BoundedSearcher, compile_pattern\n"
        "searcher = BoundedSearcher()\n"
        "searcher.search(compile_pattern('(?=a)a'), ['a'])\n"
        "print(Path('/proc/self/task', str(os.getpid()), 'children').read_text(), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    worker = int(done.stdout)
    wait_until(lambda: not _alive(worker))


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/does/not/exist")
    with (
        BoundedSearcher() as searcher,
        pytest.raises(OpsDrillError, match="no process for regular expressions could be started"),
    ):
        searcher.search(EVIL, ["a"])


def test_alone_means_that_nobody_else_is_inside(tmp_path: Path) -> None:
    """One more try alone on the machine: others wait outside, and are let in afterwards."""
    inside: list[str] = []
    first, second = Turnstile(20, tmp_path / "locks"), Turnstile(20, tmp_path / "locks")

    def other() -> None:
        with second.among_others():
            inside.append("other")

    thread = threading.Thread(target=other)
    with first.alone():
        thread.start()
        time.sleep(0.2)
        assert inside == []
    thread.join(timeout=20)
    assert inside == ["other"]


def test_others_share_the_room(tmp_path: Path) -> None:
    first, second = Turnstile(20, tmp_path), Turnstile(20, tmp_path)
    with first.among_others(), second.among_others():
        pass


def test_whoever_holds_the_locks_for_ever_stops_nobody(tmp_path: Path) -> None:
    turnstile = Turnstile(0.1, tmp_path)
    with (tmp_path / "search-gate").open("w") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        with turnstile.alone():
            pass
        for _ in range(1000):  # it does not wait again
            with turnstile.among_others():
                pass


def test_a_folder_of_somebody_else_is_not_used(tmp_path: Path) -> None:
    """No lock file is opened through a link, or where others may write."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    (tmp_path / "open").mkdir(mode=0o777)
    (tmp_path / "open").chmod(0o777)
    for name in ("link", "open"):
        with Turnstile(1, tmp_path / name).alone():
            pass
        assert list((tmp_path / name).iterdir()) == []


def test_the_search_process_imports_nothing_of_ours() -> None:
    """A fresh `python -I` with the standard library only."""
    worker = Path(sys.modules["opsdrill.patterns"].__path__[0]) / "worker.py"
    tree = ast.parse(worker.read_text())
    names = {
        name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names
    }
    assert names
    assert names <= set(sys.stdlib_module_names)
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
