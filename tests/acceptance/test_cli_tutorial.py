"""The tutorial is true: its files are made, its commands run, and they say what the page shows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.acceptance.program import Cli

pytestmark = pytest.mark.sandbox

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "tutorial" / "first-drill.md").read_text()
[ADDED] = re.findall(r"end of `scenario.yaml`:\n\n```yaml\n(.*?)```", PAGE, re.DOTALL)
RUN = re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{8}\b")


@pytest.fixture
def drill(cli: Cli) -> Cli:
    """A folder with the files that the page tells to write; skips where no host can be made."""
    report = json.loads(cli("doctor", "--format", "json").stdout)
    driver = next(driver for driver in report["drivers"] if driver["name"] == "sandbox")
    for finding in driver["findings"]:
        if finding["blocks"] and not finding["good"]:
            pytest.skip(f"{finding['what']}: {finding['detail']}; {finding['remedy']}")
    files = re.findall(r"`(stale-lock/[\w./-]+)`:\n\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    assert len(files) == 4
    for name, content in files:
        path = cli.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return cli


def shown(text: str) -> set[str]:
    """The lines without their runs, whose ids and order are never the same."""
    return {re.sub(r" +", " ", RUN.sub("ID", line)) for line in text.splitlines() if line.strip()}


def test_every_command_of_the_tutorial_says_what_the_page_shows(drill: Cli) -> None:
    page = shown(PAGE)
    assert "nothing found" in drill("lint", "stale-lock").stderr
    book, hasty = "script:agents/by-the-book.yaml", "script:agents/hasty.yaml"
    for agents in (("noop", "reference"), (book, hasty)):
        words = [word for agent in agents for word in ("--agent", agent)]
        done = drill("run", "stale-lock", *words, "--lab", "sandbox")
        assert done.returncode == 0, done.stderr
        assert shown(done.stdout) <= page
    scenario = drill.folder / "stale-lock" / "scenario.yaml"
    scenario.write_text(scenario.read_text() + ADDED)
    done = drill("regrade", "--all", "--scenario", "stale-lock")
    assert shown(done.stdout) | shown(done.stderr) <= page
    [kept] = json.loads(drill("runs", "list", "--agent", hasty, "--format", "json").stdout)["runs"]
    evidence = drill("runs", "evidence", kept["id"], "--format", "table").stdout
    assert shown(evidence) <= page


def test_the_recorded_job_of_the_how_to_is_graded_as_its_page_shows(drill: Cli) -> None:
    page = (DOCS / "how-to" / "grade-a-recorded-job.md").read_text()
    for name, content in re.findall(r"`(\w+\.json)`,.*?```json\n(.*?)```", page, re.DOTALL):
        (drill.folder / name).write_text(content)
    scenario = drill.folder / "stale-lock" / "scenario.yaml"
    scenario.write_text(scenario.read_text() + ADDED)
    done = drill("grade", "stale-lock", "record.json", "--host-answers", "answers.json")
    assert (done.returncode, shown(done.stdout) - shown(page)) == (0, set())
    assert drill("grade", "stale-lock", "record.json").returncode == 3


def test_the_mistake_on_the_page_is_told_in_these_words(drill: Cli) -> None:
    scenario = drill.folder / "stale-lock" / "scenario.yaml"
    scenario.write_text(scenario.read_text().replace("\nsetup:", "\nsetpu:"))
    assert drill("lint", "stale-lock").stdout.strip() in PAGE
