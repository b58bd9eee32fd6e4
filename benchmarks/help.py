"""What `opsdrill --help` costs, beside the bare interpreter and the library that prints it.

    .venv/bin/python benchmarks/help.py [--rounds N]

CPU seconds of the whole process (user and system), medians. Fails at 0.3 s, the most that the
command line may cost before it does anything.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
from pathlib import Path

MOST_SECONDS = 0.3
OPSDRILL = Path(sys.executable).with_name("opsdrill")
PEERS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "python -c 'import typer.main, rich.console'": [
        sys.executable,
        "-c",
        "import typer.main, rich.console",
    ],
    "opsdrill --help": [str(OPSDRILL), "--help"],
}


def cpu_seconds(command: list[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    figures: dict[str, list[float]] = {name: [] for name in PEERS}
    for _ in range(rounds + 1):
        for name, command in PEERS.items():
            figures[name].append(cpu_seconds(command))
    medians = {name: statistics.median(taken[1:]) for name, taken in figures.items()}
    bare = medians["python -c pass"]
    for name, seconds in medians.items():
        print(f"{name:45} {seconds * 1000:6.0f} ms of CPU, {seconds / bare:.1f} times bare python")
    return int(medians["opsdrill --help"] >= MOST_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
