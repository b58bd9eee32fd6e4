"""Every listing has the format, the rows and the fields that docs/reference/result.md gives."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.acceptance.program import QUEUE, Cli, lab

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "result.md").read_text()
TABLE = {
    row[0]: (row[1], row[2], re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", row[3])))
    for row in re.findall(r"^\| `([a-z ]+)` \| `(\S+)` \| `(\w+)` \| (.*) \|$", PAGE, re.MULTILINE)
}
BESIDE = {
    "runs list": {"cursor"},
    "scenarios list": {"problems"},
    "lint": {"fixes"},
    "import": {"refused", "known"},
    "regrade": {"graded", "changed", "preview", "summary", "notes"},
    "doctor": {"usable", "cleaned"},
    "hosts check": {"lab", "driver", "findings"},
    "hosts leases": set(),
}


def test_the_page_has_every_listing() -> None:
    assert set(TABLE) == set(BESIDE)
    for fields in BESIDE.values():
        assert all(f"`{field}`" in PAGE for field in fields)


@pytest.mark.parametrize("command", sorted(BESIDE))
def test_a_listing_is_what_the_page_says(cli: Cli, command: str) -> None:
    fake = lab(cli)
    cli("run", QUEUE, "--agent", "noop", "--lab", fake)
    loose = json.loads(cli("scenarios", "show", QUEUE, "--format", "json").stdout)
    loose["validation"] = [{"label": "L", "validator": "task_count", "min": 0}] * 2
    (cli.folder / "loose.json").write_text(json.dumps(loose))
    [kept] = json.loads(cli("runs", "list", "--format", "json").stdout)["runs"]
    (cli.folder / "record.json").write_text(cli("runs", "evidence", kept["id"]).stdout)
    more = {
        "scenarios list": [QUEUE],
        "lint": ["./loose.json"],
        "import": ["./record.json"],
        "regrade": ["--all", "--scenario", "./loose.json"],
        "hosts check": ["--lab", fake],
    }
    done = cli(*command.split(), *more.get(command, []), "--format", "json")
    found = json.loads(done.stdout)
    format, rows, fields = TABLE[command]
    assert found.pop("format") == format
    for row in found.pop(rows):
        assert list(row) == fields
    assert set(found) == BESIDE[command]
    if command not in ("hosts check", "hosts leases"):
        assert json.loads(done.stdout)[rows], "there is a row to compare"
