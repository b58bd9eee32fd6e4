"""Gives every test here the program, in an empty folder and with a data folder of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.acceptance.program import Cli


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    """The program, started from an empty folder."""
    folder = tmp_path / "work"
    folder.mkdir()
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return Cli(folder, tmp_path / "home", {**kept, "LANG": "C.UTF-8"})
