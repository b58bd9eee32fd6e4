"""A thousand recorded jobs graded by twelve rules: OpsDrill beside what others use.

    .venv/bin/python benchmarks/grading.py [--rounds N] [--runs N] [--most N]

Every job has two hundred commands and messages. In turns, each a process of its own from start to
end: OpsDrill from the records in its store, pydantic-evals from the same records as JSON lines,
`inspect score` on a log of Inspect AI, promptfoo with a provider that gives back what is stored.
What a process takes for one job counts as its start-up. Slower peers than the fastest run once.
Then, over records in this process's memory, by seconds of CPU: a plain loop of `re` that gives the
same counts and spans, `re2.Set` for each value and nothing else, and grading. Then more runs, up to
a hundred thousand: the same thousand records of the store again and again.

All must find the same. Prints medians in seconds, of the clock and of CPU, and peak memory in MB of
a process with all its children (proportional: what several share counts once). Fails unless
OpsDrill takes, from stored records to verdicts, at most a twentieth of the time of the fastest peer
without start-up and a fifth with it; unless grading in memory takes at most a fifth of the plain
loop and twice the bare set; when time grows faster than the number of runs; and when a peer is
missing. Where others use the processors too, the ratios of CPU tell more than those of the clock:
OpsDrill divides its seconds by the number of processors, and the peers do not.

Measured on two cores that others used too: 8.3 times the fastest peer (pydantic-evals) without
start-up, 4.2 times with it, 6.4 times the plain loop, 1.67 times the bare set; 0.6 ms of CPU a run,
the peer's 2.9; 97 MB. Twenty times would leave 0.29 ms for a run on two cores, and of that the bare
set alone takes 0.21.

Takes Node.js 20 with npm, and the package indexes of pip and npm once: the peers are kept in
~/.cache/opsdrill-bench.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS = HERE / "grading_peers"
sys.path.insert(0, str(HERE.parent))

from benchmarks.grading_peers import in_memory  # noqa: E402
from benchmarks.grading_peers.jobs import RULES, jobs, values  # noqa: E402
from benchmarks.grading_peers.scenario import SCENARIO  # noqa: E402
from benchmarks.hosts import Scale, children, peers_python  # noqa: E402

from opsdrill.model.job import JobRecord  # noqa: E402
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec  # noqa: E402
from opsdrill.model.sealed import AnyRecord, read_record  # noqa: E402
from opsdrill.runner.owner import this_process  # noqa: E402
from opsdrill.store.home import open_store  # noqa: E402

OURS, PYDANTIC, INSPECT, PROMPTFOO = "opsdrill", "pydantic-evals", "inspect score", "promptfoo"
LEAST_NET, LEAST_WHOLE = 20.0, 5.0
LEAST_OF_PLAIN, MOST_OF_SET = 5.0, 2.0
MOST_GROWTH = 1.25
"""Seconds a run among the most runs, as a multiple of those among the first thousand."""
IN_MEMORY = 200
"""Jobs of which the loops in memory are timed, again and again."""


@dataclass(frozen=True)
class Peer:
    """One way to grade.

    Attributes:
        words: its process for a number of runs.
        passed: how many rules of runs it says have passed.
        environment: beside this process's own, for a number of runs.
    """

    words: Callable[[int], list[str]]
    passed: Callable[[], float]
    environment: Callable[[int], Mapping[str, str]] = field(default=lambda _: {})


def node_modules() -> Path:
    """The folder of programs of the peers that run on Node.js, installed when it is missing."""
    wanted = PEERS / "package.json"
    digest = hashlib.sha256(wanted.read_bytes()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "opsdrill-bench"
    folder = cache / digest
    if not (folder / "complete").exists():
        print(f"installing the peers into {folder}", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        shutil.copy(wanted, folder)
        words = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--silent"]
        subprocess.run(words, cwd=folder, check=True)
        (folder / "complete").touch()
    return folder / "node_modules" / ".bin"


def peers_of(folder: Path, runs: int) -> dict[str, Peer]:
    """All ways to grade, by the name that is printed; what they read is in `folder`."""
    python, programs = peers_python(HERE / "requirements-grading.txt"), node_modules()
    records, result, graded = folder / "records.jsonl", folder / "result.json", folder / "graded"

    def by_file() -> float:
        return float(json.loads(result.read_text())["passed"])

    def script(interpreter: str | Path, name: str, given: Path) -> Callable[[int], list[str]]:
        return lambda count: [
            str(interpreter), str(PEERS / name), str(given), str(count), str(result)
        ]  # fmt: skip

    for count in (1, runs):
        log = folder / f"{count}.eval"
        words = [str(python), str(PEERS / "inspect_log.py"), str(records), str(count), str(log)]
        environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
        subprocess.run(words, check=True, env=environment)
        (folder / f"{count}.json").write_text(json.dumps(promptfoo_config(count)))
    return {
        OURS: Peer(script(sys.executable, "opsdrill_grade.py", folder / "home"), by_file),
        PYDANTIC: Peer(script(python, "pydantic_evals_cases.py", records), by_file),
        INSPECT: Peer(
            lambda count: [
                str(python.with_name("inspect")), "score", str(folder / f"{count}.eval"),
                *("--scorer", f"{PEERS / 'inspect_rules.py'}@rules", "--action", "append"),
                *("--overwrite", "--output-file", str(graded.with_suffix(".eval"))),
            ],
            lambda: inspect_passed(python, graded.with_suffix(".eval"), runs),
        ),
        PROMPTFOO: Peer(
            lambda count: [
                str(programs / "promptfoo"), "eval", "-c", str(folder / f"{count}.json"),
                *("--no-cache", "--no-write", "--no-table", "--no-progress-bar"),
                *("-o", str(graded.with_suffix(".json"))),
            ],
            lambda: promptfoo_passed(graded.with_suffix(".json")),
            lambda count: {
                "RECORDS": str(records), "RUNS": str(count),
                "PROMPTFOO_CONFIG_DIR": str(folder / "promptfoo"),
                "PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1",
                "PROMPTFOO_FAILED_TEST_EXIT_CODE": "0",
            },
        ),
    }  # fmt: skip


def promptfoo_config(count: int) -> dict[str, object]:
    rules = []
    for rule in RULES:
        found = f"some(v => new RegExp({json.dumps(rule.pattern)}, 'i').test(v))"
        negated = "!" if rule.negate else ""
        rules.append({"type": "javascript", "value": f"{negated}output.{rule.where}.{found}"})
    return {
        "prompts": ["{{run}}"],
        "providers": [f"file://{PEERS / 'promptfoo_stored.cjs'}"],
        "defaultTest": {"assert": rules},
        "tests": [{"vars": {"run": str(number)}} for number in range(count)],
    }


def promptfoo_passed(path: Path) -> float:
    found = json.loads(path.read_text())["results"]["results"]
    parts = [part for one in found for part in one["gradingResult"]["componentResults"]]
    assert len(parts) == len(RULES) * len(found)
    return float(sum(part["pass"] for part in parts))


def inspect_passed(python: Path, log: Path, runs: int) -> float:
    read = (
        "import sys; from inspect_ai.log import read_eval_log as read;"
        "found = read(sys.argv[1], header_only=True).results.scores;"
        "print(sum(one.metrics['mean'].value for one in found))"
    )
    said = subprocess.run([python, "-c", read, log], check=True, capture_output=True, text=True)
    return float(said.stdout) * runs


@dataclass(frozen=True)
class Taken:
    """Seconds of the clock and of CPU, and the most megabytes, where it was weighed."""

    wall: float
    cpu: float
    megabytes: float = 0.0


def ask(
    name: str, peer: Peer, count: int, folder: Path, *, weigh_every: float | None = None
) -> Taken:
    """What a peer's process takes for so many runs.

    Raises:
        SystemExit: it failed.
    """
    before = children(os.getpid())
    spent = cpu_of_children()
    environment = {**os.environ, **peer.environment(count), "PYTHONPATH": str(HERE.parent)}
    with (folder / "printed").open("wb") as printed:
        started = time.perf_counter()
        process = subprocess.Popen(
            peer.words(count), stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT,
            cwd=folder, env=environment,
        )  # fmt: skip
        scale = Scale(before, weigh_every) if weigh_every else None
        process.wait()
        whole = time.perf_counter() - started
    megabytes = scale.stop() if scale is not None else 0.0
    if process.returncode:
        raise SystemExit(f"{name} failed:\n{(folder / 'printed').read_text(errors='replace')}")
    return Taken(whole, cpu_of_children() - spent, megabytes)


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def check(name: str, peer: Peer, expected: int) -> None:
    """Raises SystemExit where a peer found something else."""
    passed = peer.passed()
    if abs(passed - expected) > 0.01:
        raise SystemExit(f"{name} says that {passed} rules passed, it should be {expected}")


def keep(folder: Path, runs: int) -> int:
    """Write the records for all peers; returns how many rules pass."""
    compiled = [re.compile(rule.pattern, re.IGNORECASE) for rule in RULES]
    store = open_store(folder / "home")
    owner, names, passed = this_process(), [], 0
    with (folder / "records.jsonl").open("w") as lines:
        for number, made in enumerate(jobs(runs)):
            lines.write(json.dumps(made) + "\n")
            found = values(made)
            passed += sum(
                any(map(pattern.search, found[rule.where])) != rule.negate
                for rule, pattern in zip(RULES, compiled, strict=True)
            )
            spec = RunSpec(
                id=f"run-{number}",
                scenario=SCENARIO,
                scenario_version=SCENARIO.version(),
                agent=AgentChoice(adapter="noop"),
                lab=LabChoice(name="fake", driver="fake"),
                created_at=datetime.now(UTC),
            )
            store.plan(spec)
            store.save_record(spec.id, store.begin(spec.id, owner), JobRecord.model_validate(made))
            names.append(spec.id)
    store.close()
    (folder / "home" / "runs.json").write_text(json.dumps(names))
    return passed


def stored(home: Path) -> list[AnyRecord]:
    """Some records of the store, read as for grading."""
    names = json.loads((home / "runs.json").read_text())
    store = open_store(home)
    found = [read_record(sealed.record or b"") for sealed in store.sealed(names[:IN_MEMORY])]
    store.close()
    return found


@dataclass(frozen=True)
class Figure:
    """Seconds of a process, of the same for one run, and the most megabytes.

    `cpu_net` is in seconds of CPU.
    """

    whole: float
    start: float
    cpu_net: float
    megabytes: float

    @property
    def net(self) -> float:
        return self.whole - self.start


def measure(folder: Path, runs: int, rounds: int, expected: int) -> dict[str, Figure]:
    peers = peers_of(folder, runs)
    wholes: dict[str, list[Taken]] = {}
    starts: dict[str, list[Taken]] = {}
    megabytes = {}
    for name, peer in peers.items():  # also warms caches up
        starts[name] = [ask(name, peer, 1, folder)]
        whole = ask(name, peer, runs, folder, weigh_every=0.05)
        check(name, peer, expected)
        wholes[name], megabytes[name] = [whole], whole.megabytes
        print(f"{name:20}{whole.wall:8.1f} s {whole.megabytes:8.0f} MB", flush=True)
    others = (name for name in peers if name != OURS)
    again = {OURS, min(others, key=lambda name: wholes[name][0].wall)}
    for name in again:
        wholes[name], starts[name] = [], []
    for _ in range(rounds):
        for name in sorted(again):
            starts[name].append(ask(name, peers[name], 1, folder))
            wholes[name].append(ask(name, peers[name], runs, folder))
    return {name: figure(wholes[name], starts[name], megabytes[name]) for name in peers}


def figure(wholes: Sequence[Taken], starts: Sequence[Taken], megabytes: float) -> Figure:
    median = statistics.median
    return Figure(
        whole=median(taken.wall for taken in wholes),
        start=median(taken.wall for taken in starts),
        cpu_net=median(taken.cpu for taken in wholes) - median(taken.cpu for taken in starts),
        megabytes=megabytes,
    )


def growth(folder: Path, first: Figure, runs: int, most: int) -> float:
    """How much longer a run takes among the most runs than among the first."""
    peer = Peer(
        lambda count: [
            *(sys.executable, str(PEERS / "opsdrill_grade.py"), str(folder / "home")),
            *(str(count), str(folder / "result.json")),
        ],
        lambda: 0,
    )
    taken = ask(OURS, peer, most, folder, weigh_every=1.0)
    grown = ((taken.wall - first.start) / most) / (first.net / runs)
    print(
        f"{most} runs: {taken.wall:.1f} s, {grown:.2f} times as long a run, "
        f"{taken.megabytes:.0f} MB"
    )
    return grown


def report(figures: dict[str, Figure], loops: dict[str, float], grown: float) -> bool:
    """Print all figures; whether OpsDrill keeps its ratios."""
    ours = figures[OURS]
    print(
        f"{'median seconds':20}{'process':>9}{'start':>8}{'net':>8}{'ratio':>8}"
        f"{'net CPU':>9}{'ratio':>8}{'MB':>7}"
    )
    for name, of in figures.items():
        print(
            f"{name:20}{of.whole:9.2f}{of.start:8.2f}{of.net:8.2f}{of.net / ours.net:8.1f}"
            f"{of.cpu_net:9.2f}{of.cpu_net / ours.cpu_net:8.1f}{of.megabytes:7.0f}"
        )
    print(f"{'in memory':20}{'ms a run':>9}")
    for name, milliseconds in loops.items():
        print(f"{name:20}{milliseconds:9.3f}")
    peers = [of for name, of in figures.items() if name != OURS]
    net = min(of.net for of in peers) / ours.net
    whole = min(of.whole for of in peers) / ours.whole
    plain = loops["plain re"] / loops["grading"]
    bare = loops["grading"] / loops["bare re2.Set"]
    wanted = (
        (net >= LEAST_NET, net, f"times the fastest peer without start-up, {LEAST_NET:g} wanted"),
        (whole >= LEAST_WHOLE, whole, f"times the fastest peer with it, {LEAST_WHOLE:g} wanted"),
        (plain >= LEAST_OF_PLAIN, plain, f"times a plain loop of re, {LEAST_OF_PLAIN:g} wanted"),
        (bare <= MOST_OF_SET, bare, f"times as long as the bare set, at most {MOST_OF_SET:g}"),
        (grown <= MOST_GROWTH, grown, f"times as long a run among many, at most {MOST_GROWTH:g}"),
    )
    for kept, ratio, what in wanted:
        print(f"{'' if kept else 'MISSED: '}{ratio:.2f} {what}")
    return all(kept for kept, _, _ in wanted)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--most", type=int, default=100_000)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="odb-"))
    try:
        expected = keep(folder, given.runs)
        figures = measure(folder, given.runs, given.rounds, expected)
        loops = in_memory.measure(stored(folder / "home"), 3 * given.rounds)
        grown = growth(folder, figures[OURS], given.runs, given.most)
        return 0 if report(figures, loops, grown) else 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
