"""Scenarios that are kept in the store are scenarios like those of files, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.acceptance.program import DATA, Cli

from opsdrill.app.library import Library
from opsdrill.app.scenario_files import NewFile
from opsdrill.app.stores import opened_store
from opsdrill.app.wiring import Place
from opsdrill.scenarios.load import load_text

KEY = "in-the-store"
TEXT = f"""
key: {KEY}
title: Kept in the store
tags: [kept]
ticket_title: Please look
hosts: [web-01]
files: [{{from: etc/a.conf, to: /etc/a.conf}}]
validation:
  - {{label: nothing done, validator: task_count, max: 5}}
"""


@pytest.fixture
def kept(cli: Cli) -> Cli:
    """A store with one scenario in it."""
    place = Place(cli.home, cli.folder)
    with opened_store(place) as store:
        files = {"etc/a.conf": NewFile("etc/a.conf", b"a=1\n")}
        Library(place, store).add(load_text(TEXT, files))
    return cli


def test_it_is_listed_and_shown(kept: Cli) -> None:
    """[S6.6]"""
    rows = json.loads(kept("scenarios", "list", "tag:kept", "--format", "json").stdout)
    assert [(row["key"], row["path"]) for row in rows["scenarios"]] == [(KEY, None)]
    assert "(in the store)" in kept("scenarios", "show", KEY).stdout


def test_it_runs_by_its_key_with_its_files(kept: Cli) -> None:
    """[S6.6]"""
    done = kept("run", KEY, "--agent", "noop", "--lab", "fake", "--format", "json")
    result = json.loads(done.stdout)
    assert (done.returncode, result["scenario"]) == (0, KEY), done.stderr
    assert result["verdict"] in ("passed", "failed")


def test_it_is_linted_and_grades(kept: Cli) -> None:
    assert kept("lint", KEY).returncode == 0
    done = kept("grade", KEY, str(DATA / "record.json"), "--format", "json")
    assert json.loads(done.stdout)["scenario"] == KEY, done.stderr


def test_a_file_of_its_name_still_wins_as_a_path(kept: Cli) -> None:
    """[S6.6]"""
    folder = Path(kept.folder) / KEY
    folder.mkdir()
    (folder / "scenario.yaml").write_text("key: by-path\ntitle: x\nticket_title: x\n")
    by_path = kept("scenarios", "show", f"./{KEY}", "--format", "json")
    assert json.loads(by_path.stdout)["key"] == "by-path"
    by_key = kept("scenarios", "show", KEY, "--format", "json")
    assert json.loads(by_key.stdout)["key"] == KEY


def test_two_of_one_key_are_refused_by_name(kept: Cli) -> None:
    folder = Path(kept.folder) / "scenarios" / "other"
    folder.mkdir(parents=True)
    (folder / "scenario.yaml").write_text(TEXT.replace("files:", "# files:"))
    done = kept("run", KEY, "--agent", "noop", "--lab", "fake")
    assert done.returncode == 2
    assert "in the store" in done.stderr


def test_a_store_that_cannot_be_read_hides_no_file(cli: Cli) -> None:
    cli.home.mkdir()
    (cli.home / "store.db").write_text("no database" * 1000)
    folder = Path(cli.folder) / "scenarios" / "own"
    folder.mkdir(parents=True)
    (folder / "scenario.yaml").write_text("key: own\ntitle: x\nticket_title: x\n")
    done = cli("scenarios", "show", "own", "--format", "json")
    assert (done.returncode, json.loads(done.stdout)["key"]) == (0, "own")
    assert done.stderr.count("warning: scenarios in the store were not looked at") == 1
