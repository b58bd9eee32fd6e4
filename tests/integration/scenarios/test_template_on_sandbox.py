"""The scenario that `init` writes, on real hosts: right agents pass it, doing nothing does not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from opsdrill.hosts.driver import DRIVERS, DriverContext
from opsdrill.scenarios.template import write_template

pytestmark = pytest.mark.sandbox

PROGRAM = Path(sys.executable).parent / "opsdrill"


@pytest.fixture
async def sandbox(tmp_path: Path) -> None:
    """Skips where this machine cannot give hosts, saying what is missing."""
    driver = DRIVERS.get("sandbox")(DriverContext(tmp_path / "state"))
    blocked = [f for f in await driver.preflight() if f.blocks and not f.good]
    await driver.close()
    if blocked:
        pytest.skip(f"no sandbox hosts here: {blocked[0].detail}; {blocked[0].remedy}")


@pytest.mark.usefixtures("sandbox")
def test_the_template_is_a_working_drill(tmp_path: Path) -> None:
    write_template(tmp_path / "drill")
    agents = ("script:agents/by-the-book.yaml", "reference", "noop")
    asked = [word for agent in agents for word in ("--agent", agent)]
    done = subprocess.run(
        [PROGRAM, "--home", tmp_path / "home", "run", ".", *asked, "--format", "json"],
        cwd=tmp_path / "drill",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    results = json.loads(done.stdout)["results"]
    assert {result["agent"]: result["verdict"] for result in results} == {
        "script:agents/by-the-book.yaml": "passed",
        "reference": "passed",
        "noop": "failed",
    }
    assert [rule["status"] for rule in results[0]["rules"]] == ["passed"] * 7
