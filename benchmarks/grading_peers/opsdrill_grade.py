"""OpsDrill: stored runs of one store, read and graded as a regrade does it, on all processors.

    opsdrill_grade.py HOME RUNS RESULT

Processes are forked when everything is imported and before the store is opened. `RUNS` may be more
than the store holds: they are then graded again and again.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

from benchmarks.grading_peers.scenario import SCENARIO

from opsdrill.grading.engine import Grader
from opsdrill.model.sealed import read_record
from opsdrill.patterns import BoundedSearcher
from opsdrill.store.home import open_store

AT_ONCE = 100


def work(
    home: Path, chunks: Sequence[Sequence[str]], results: multiprocessing.SimpleQueue[int]
) -> None:
    store = open_store(home)
    passed = 0
    with BoundedSearcher() as searcher:
        grader = Grader(SCENARIO, searcher)
        for runs in chunks:
            for sealed in store.sealed(runs):
                grade = grader.grade(read_record(sealed.record or b""), ())
                passed += sum(rule.status == "passed" for rule in grade.rules)
    store.close()
    results.put(passed)


def main() -> None:
    home, count = Path(sys.argv[1]), int(sys.argv[2])
    context = multiprocessing.get_context("fork")
    names = json.loads((home / "runs.json").read_text())
    wanted = list(islice(cycle(names), count))
    chunks = [wanted[start : start + AT_ONCE] for start in range(0, count, AT_ONCE)]
    processes = max(1, min(len(os.sched_getaffinity(0)), len(chunks)))
    results = context.SimpleQueue()
    started = [
        context.Process(target=work, args=(home, chunks[first::processes], results))
        for first in range(processes)
    ]
    for process in started:
        process.start()
    passed = sum(results.get() for _ in started)
    for process in started:
        process.join()
    Path(sys.argv[3]).write_text(json.dumps({"passed": passed}))


if __name__ == "__main__":
    main()
