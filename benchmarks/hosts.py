"""A thousand checks over ten machines with OpenSSH's sshd: OpsDrill beside what others use.

    .venv/bin/python benchmarks/hosts.py [--rounds N]

In turns, each a process of its own from start to end: OpsDrill's validate phase over its ssh
driver, the same with all checks at once, asyncssh alone with ten channels a host, pyinfra,
pytest-testinfra with shared connections, and Ansible with pipelining and a fork for each host: its
strategies with a task for each check, and all checks as the items of one task. All of Ansible's
ways run once, the fastest of either kind in every round. Every answer is compared with the right
one. Then twenty machines and two hundred rules: how many connections their kernels accepted.

Prints medians in seconds and peak memory in MB of a process with all its children, ssh clients
included (proportional: what several share counts once). Fails unless OpsDrill takes at most 1.5
times as long as asyncssh, pyinfra 3 times as long as OpsDrill (both from the first connection to
the last closed, without the interpreter's start), the best Ansible strategy 8 times (whole
processes), with one connection to each host; and when a peer is missing.

Takes root, the Debian packages openssh-server, openssh-client, iproute2, util-linux, sudo,
busybox-static, and pip's package index once: the peers are kept in ~/.cache/opsdrill-bench.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS = HERE / "hosts_peers"
sys.path.insert(0, str(HERE.parent))

from benchmarks.hosts_peers.playbooks import STRATEGIES, write_ansible  # noqa: E402
from benchmarks.hosts_peers.task import Check, Task  # noqa: E402
from tests.integration import sshd  # noqa: E402

HOSTS, CHECKS = 10, 100
FEW_RULES, MORE_HOSTS = 10, 20
MIX = (
    Check("true", 0, ""),
    Check("test -f /etc/passwd", 0, ""),
    Check("test -f /etc/no-such-file", 1, ""),
    Check("echo value=$((6 * 7))", 0, "value=42\n"),
    Check("head -n 1 /etc/group", 0, "root:x:0:\n"),
)
MOST_OF_ASYNCSSH, LEAST_OF_PYINFRA, LEAST_OF_ANSIBLE = 1.5, 3.0, 8.0
OURS, AT_ONCE, ASYNCSSH = "opsdrill", "opsdrill, all at once", "asyncssh, 10 channels"
PYINFRA, TESTINFRA = "pyinfra", "pytest-testinfra"
_SAMPLE_SECONDS = 0.05
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Peer:
    """One way to ask.

    Attributes:
        words: its process; `{result}` stands for a file it writes.
        environment: beside this process's own.
        passed: what it prints when all answers are right, where it writes no file.
    """

    words: list[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    passed: str | None = None


@dataclass(frozen=True)
class Figure:
    """One process: seconds from start to end, and from the first connection on, and megabytes."""

    whole: float
    inside: float
    megabytes: float = 0.0


def peers_python(wanted: Path = HERE / "requirements-hosts.txt") -> Path:
    """The interpreter of an environment with the peers, made when it is missing."""
    digest = hashlib.sha256(wanted.read_bytes() + sys.version.encode()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "opsdrill-bench"
    folder = cache / digest
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        print(f"installing the peers into {folder}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", wanted], check=True)
        (folder / "complete").touch()
    return python


def peers_of(task: Task, folder: Path, python: Path) -> dict[str, Peer]:
    """All ways to ask, by the name that is printed."""
    task.write(folder / "task.json")
    given = [str(folder / "task.json"), "{result}"]
    ours = [sys.executable, str(PEERS / "opsdrill_validate.py"), *given]
    (folder / "ssh_config").write_text(
        f"IdentityFile {task.key}\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
        f"LogLevel ERROR\nControlMaster auto\nControlPersist 60s\nControlPath {folder}/%C\n"
    )
    hosts = ",".join(f"ssh://root@{address}" for address in task.hosts.values())
    checks = str(PEERS / "testinfra_checks.py")
    found = {
        OURS: Peer(ours),
        AT_ONCE: Peer([*ours, "at-once"]),
        ASYNCSSH: Peer([sys.executable, str(PEERS / "bare_asyncssh.py"), *given]),
        PYINFRA: Peer([str(python), str(PEERS / "pyinfra_ops.py"), *given]),
        TESTINFRA: Peer(
            [
                *(str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null"),
                *("--rootdir", str(PEERS), f"--hosts={hosts}"),
                *(f"--ssh-config={folder}/ssh_config", checks),
            ],
            {"TASK": str(folder / "task.json")},
            passed=rf"\b{HOSTS * CHECKS} passed\b(?!.*failed)",
        ),
    }
    for strategy in STRATEGIES:
        playbook = write_ansible(strategy, task, folder)
        words = [str(python.with_name("ansible-playbook")), "-i", str(folder / "inventory.json")]
        recap = "".join(
            rf"(?s:.*)\b{name}\s+: ok={strategy.tasks(task)}\s.*failed=0"
            for name in sorted(task.hosts)
        )
        found[f"ansible {strategy.name}"] = Peer(
            [*words, str(playbook)],
            {
                "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
                "ANSIBLE_LOCAL_TEMP": str(folder / "t"),
            },
            passed=recap,
        )
    return found


def ask(name: str, peer: Peer, folder: Path, *, weigh: bool = False) -> Figure:
    """Run a peer's process and look at what it found out.

    Raises:
        SystemExit: not all of its answers were right.
    """
    result = folder / "result.json"
    result.unlink(missing_ok=True)
    words = [word.replace("{result}", str(result)) for word in peer.words]
    before = children(os.getpid())
    with (folder / "printed").open("wb") as printed:
        started = time.perf_counter()
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            env={**os.environ, **peer.environment, "PYTHONPATH": str(HERE.parent)},
        )
        scale = Scale(before) if weigh else None
        process.wait()
        whole = time.perf_counter() - started
    megabytes = scale.stop() if scale is not None else 0.0
    end_left_over(before)
    said = (folder / "printed").read_text(errors="replace")
    if peer.passed is not None:
        right = process.returncode == 0 and re.search(peer.passed, said) is not None
        inside = whole
    else:
        found = json.loads(result.read_text()) if result.exists() else {"right": 0, "seconds": 0}
        right, inside = found["right"] == HOSTS * CHECKS, found["seconds"]
    if not right:
        raise SystemExit(f"{name} did not answer all checks rightly:\n{said[-3000:]}")
    return Figure(whole, inside, megabytes)


class Scale:
    """Weighs all processes below this one, until it is stopped.

    Args:
        without: children of this process that do not count, nor what they started.
        every: seconds from one look to the next; weighing large processes takes time of theirs.
    """

    def __init__(self, without: set[int], every: float = _SAMPLE_SECONDS) -> None:
        self._without = without
        self._every = every
        self._most = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._weigh)
        self._thread.start()

    def stop(self) -> float:
        """The most megabytes that were seen."""
        self._done.set()
        self._thread.join()
        return self._most / 1024

    def _weigh(self) -> None:
        while not self._done.wait(self._every):
            waiting = list(children(os.getpid()) - self._without)
            total = 0
            while waiting:
                pid = waiting.pop()
                waiting += children(pid)
                with suppress(OSError):
                    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
                    found = re.search(r"^Pss:\s+(\d+)", rollup, re.MULTILINE)
                    total += int(found[1]) if found else 0
            self._most = max(self._most, total)


def children(pid: int) -> set[int]:
    found: set[int] = set()
    with suppress(OSError):  # it may end in any moment
        for thread in Path(f"/proc/{pid}/task").iterdir():
            found |= set(map(int, (thread / "children").read_text().split()))
    return found


def end_left_over(before: set[int]) -> None:
    """End what a peer left running, such as ssh clients that share connections."""
    for pid in children(os.getpid()) - before:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)


@contextmanager
def machines(
    names: list[str], folder: Path, checks: list[Check]
) -> Iterator[tuple[Task, list[sshd.Machine]]]:
    folder.mkdir()
    with sshd.rig(folder) as rig:
        # Ten channels at a time and not one refused: a server counts one off a moment late.
        made = rig.machines(names, config="MaxSessions 20\n")
        addresses = {machine.name: machine.address for machine in made}
        yield Task(addresses, str(made[0].key), made[0].host_key, checks), made


def accepted(machine: sshd.Machine) -> int:
    """TCP connections that a machine's kernel accepted so far; only its sshd listens."""
    counts = Path(f"/proc/{machine.first}/net/snmp").read_text()
    names, values = (line.split() for line in counts.splitlines() if line.startswith("Tcp:"))
    return int(values[names.index("PassiveOpens")])


def connections(folder: Path) -> bool:
    """Whether two hundred rules over twenty hosts take one connection to each."""
    names = [f"m{number:02}" for number in range(MORE_HOSTS)]
    checks = [MIX[number % len(MIX)] for number in range(FEW_RULES)]
    with machines(names, folder / "more", checks) as (task, made):
        task.write(folder / "more.json")
        before = [accepted(machine) for machine in made]
        words = [sys.executable, str(PEERS / "opsdrill_validate.py"), str(folder / "more.json")]
        environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
        subprocess.run([*words, str(folder / "result.json")], check=True, env=environment)
        opened = [accepted(machine) - count for machine, count in zip(made, before, strict=True)]
    right = json.loads((folder / "result.json").read_text())["right"]
    print(
        f"{right} of {FEW_RULES * MORE_HOSTS} rules answered over {MORE_HOSTS} hosts:"
        f" {sum(opened)} connections, at most {max(opened)} to a host"
    )
    return right == FEW_RULES * MORE_HOSTS and max(opened) == 1


def measure(folder: Path, rounds: int) -> dict[str, list[Figure]]:
    python = peers_python()
    names = [f"h{number:02}" for number in range(HOSTS)]
    figures: dict[str, list[Figure]] = {}
    with machines(names, folder / "rig", [MIX[number % len(MIX)] for number in range(CHECKS)]) as (
        task,
        _,
    ):
        peers = peers_of(task, folder, python)
        strategies = [name for name in peers if name.startswith("ansible")]
        for name, peer in peers.items():  # also warms caches up
            figure = ask(name, peer, folder, weigh=True)
            figures[name] = [figure]
            print(f"{name:28}{figure.whole:8.1f} s {figure.megabytes:8.0f} MB", flush=True)
        best = {fastest(figures, loop=False), fastest(figures, loop=True)}
        again = [name for name in peers if name not in strategies or name in best]
        timed: dict[str, list[Figure]] = {name: [] for name in again}
        for _ in range(rounds):
            for name in again:
                timed[name].append(ask(name, peers[name], folder))
    return {
        name: [
            Figure(one.whole, one.inside, figures[name][0].megabytes)
            for one in timed.get(name, figures[name])
        ]
        for name in peers
    }


def fastest(figures: dict[str, list[Figure]], *, loop: bool) -> str:
    """Ansible's fastest way, with a task for each check or one task for all."""
    ways = [f"ansible {one.name}" for one in STRATEGIES if one.loop == loop]
    return min(ways, key=lambda name: statistics.median(one.whole for one in figures[name]))


def report(figures: dict[str, list[Figure]]) -> bool:
    """Print all figures; whether OpsDrill keeps its ratios."""
    whole = {name: statistics.median(one.whole for one in of) for name, of in figures.items()}
    inside = {name: statistics.median(one.inside for one in of) for name, of in figures.items()}
    print(f"{'median seconds':28}{'process':>9}{'checks':>9}{'ratio':>8}{'MB':>8}{'rounds':>8}")
    for name, of in figures.items():
        print(
            f"{name:28}{whole[name]:9.2f}{inside[name]:9.2f}{whole[name] / whole[OURS]:8.2f}"
            f"{of[0].megabytes:8.0f}{len(of):8}"
        )
    asyncssh, pyinfra = inside[OURS] / inside[ASYNCSSH], inside[PYINFRA] / inside[OURS]
    tasks, loop = (whole[fastest(figures, loop=loop)] / whole[OURS] for loop in (False, True))
    wanted = (
        (
            asyncssh <= MOST_OF_ASYNCSSH,
            asyncssh,
            f"times asyncssh alone, at most {MOST_OF_ASYNCSSH:g}",
        ),
        (
            pyinfra >= LEAST_OF_PYINFRA,
            pyinfra,
            f"times faster than pyinfra, at least {LEAST_OF_PYINFRA:g}",
        ),
        (
            tasks >= LEAST_OF_ANSIBLE,
            tasks,
            f"times faster than Ansible's best strategy, at least {LEAST_OF_ANSIBLE:g}",
        ),
        (True, loop, "times faster than one Ansible task that loops over all checks"),
    )
    for kept, ratio, what in wanted:
        print(f"{'' if kept else 'MISSED: '}{ratio:.2f} {what}")
    return all(kept for kept, _, _ in wanted)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    if reason := sshd.why_not():
        print(reason)
        return 1
    # What a peer leaves running in the background becomes a child of this process: weighed, ended.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    folder = Path(tempfile.mkdtemp(prefix="odb-"))
    try:
        kept = report(measure(folder, rounds))
        return 0 if connections(folder) and kept else 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
