"""What all tests share: `--no-skips`, under which a skipped test is a failed one, and the path
under which they import each other's machines and programs (`tests.integration.sshd`)."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

from opsdrill.cli.main import hand_down_no_ignoring

# As our own program does: under `nohup`, or behind `&` in a script, programs would ignore signals.
hand_down_no_ignoring()
# No test measures time: machines are busy.
settings.register_profile("opsdrill", deadline=None)
settings.load_profile("opsdrill")
sys.path.insert(0, str(Path(__file__).parents[1]))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--no-skips", action="store_true", help="a skipped test counts as a failure (as root in CI)"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and item.config.getoption("--no-skips") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped where nothing may skip: {report.longrepr}"
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what drives a program of others that is not here, and say how it gets here."""
    for item in items:
        mark = item.get_closest_marker("program")
        if mark is not None and shutil.which(mark.args[0]) is None:
            reason = f"the program {mark.args[0]} is not on PATH: `scripts/agents` installs it"
            item.add_marker(pytest.mark.skip(reason=reason))
