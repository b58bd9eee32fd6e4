"""What `init` writes: valid, every field with a comment, never over anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from opsdrill.errors import UsageError
from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint import lint
from opsdrill.scenarios.load import load_scenario
from opsdrill.scenarios.template import key_for, write_template


def test_a_new_scenario_is_valid_and_lints_clean(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "My Disk_Drill 2"
    written = write_template(folder)
    assert [path.relative_to(folder).as_posix() for path in written] == [
        "scenario.yaml", "agents/by-the-book.yaml", "files/report",
    ]  # fmt: skip
    loaded = load_scenario(folder)
    assert loaded.scenario.key == "my-disk-drill-2"
    assert lint(loaded) == []


def test_every_field_is_there_under_a_comment(tmp_path: Path) -> None:
    write_template(tmp_path)
    lines = (tmp_path / "scenario.yaml").read_text().splitlines()
    for name in Scenario.model_fields:
        (place,) = [n for n, line in enumerate(lines) if line.startswith(f"{name}:")]
        above = lines[place - 1]
        assert above.startswith("#") or name in ("ticket_body",), name


def test_all_validators_are_shown(tmp_path: Path) -> None:
    write_template(tmp_path)
    rules = load_scenario(tmp_path).scenario.validation
    assert {rule.validator for rule in rules} == {
        "host_state", "job_resolution_status", "pattern_match", "task_count", "turns",
    }  # fmt: skip


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")
    for place in (tmp_path, tmp_path / "mine"):
        with pytest.raises(UsageError, match="holds something already"):
            write_template(place)
    with pytest.raises(UsageError, match="cannot write"):
        write_template(tmp_path / "mine" / "below")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Web Down!", "web-down"),
        ("été", "t"),
        ("---", "my-drill"),
        ("x" * 200, "x" * 100),
        ("7z", "7z"),
    ],
)
def test_key_of_a_folder(tmp_path: Path, name: str, key: str) -> None:
    """The folder's name as a key, whatever it holds."""
    assert key_for(tmp_path / name) == key
