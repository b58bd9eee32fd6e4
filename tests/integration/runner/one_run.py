"""A process that works off one run on a sandbox host, for the tests that kill it.

python one_run.py HOME SPEC     SPEC: a run as JSON
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from opsdrill.hosts.driver import DRIVERS, DriverContext
from opsdrill.model.run import RunSpec
from opsdrill.patterns import BoundedSearcher
from opsdrill.runner.archive import Archive
from opsdrill.runner.inprocess import InProcessEngine
from opsdrill.runner.owner import this_process
from opsdrill.runner.tools import RunTools
from opsdrill.store.home import open_store


async def work(home: Path, spec: RunSpec) -> None:
    """Submit the run and wait for its end."""
    archive = Archive(open_store(home))
    driver = DRIVERS.get("sandbox")(DriverContext(home / "drivers"))
    with BoundedSearcher() as searcher:
        engine = InProcessEngine(RunTools(archive, lambda _: driver, searcher, this_process()))
        await engine.submit([spec])
        async for _ in engine.subscribe([spec.id]):
            pass
        await engine.close()
    archive.close()
    archive.store.close()
    await driver.close()


if __name__ == "__main__":
    asyncio.run(work(Path(sys.argv[1]), RunSpec.model_validate_json(Path(sys.argv[2]).read_text())))
