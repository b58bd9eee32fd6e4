"""The catalogue: found by key, tag, pack and path; what is broken hides nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from opsdrill.errors import InvalidInput, UnknownName, UsageError
from opsdrill.scenarios.catalogue import PACKS, Catalogue
from opsdrill.scenarios.lint import lint


def put(root: Path, place: str, key: str, *tags: str, more: str = "") -> Path:
    folder = root / place
    folder.mkdir(parents=True)
    text = f"key: {key}\ntitle: T {key}\nticket_title: t\ntags: [{', '.join(tags)}]\n{more}"
    (folder / "scenario.yaml").write_text(text)
    return folder


def keys(catalogue: Catalogue, *selection: str) -> list[str]:
    return [loaded.scenario.key for loaded in catalogue.select(selection)]


def test_every_scenario_below_the_roots(tmp_path: Path) -> None:
    """[S6.1] Sorted by key; hidden folders, linked folders and folders of scenarios passed over."""
    put(tmp_path, "b/deep/er/web", "web", "x")
    put(tmp_path, "a", "db", "x", "y")
    put(tmp_path, "a/inside", "never")
    put(tmp_path, ".git/hidden", "never-2")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    (tmp_path / "notes").mkdir()
    catalogue = Catalogue([tmp_path, tmp_path / "nowhere", tmp_path])
    assert [(e.key, e.title, e.pack) for e in catalogue.entries] == [
        ("db", "T db", None),
        ("web", "T web", "b"),
    ]
    assert (catalogue.keys(), catalogue.tags(), catalogue.packs()) == (
        ["db", "web"],
        ["x", "y"],
        ["b"],
    )
    assert catalogue.broken == ()


def test_a_key_twice(tmp_path: Path) -> None:
    """[S6.2] [S7.5] Both are named, and neither is taken for the other; a path still means one."""
    one, two = put(tmp_path, "one", "web"), put(tmp_path, "two", "web")
    put(tmp_path, "three", "db")
    catalogue = Catalogue([tmp_path])
    (first, second) = catalogue.broken
    (problem,) = first.problems
    assert (problem.code, problem.path, problem.line, problem.column) == ("OD005", "key", 1, 6)
    assert problem.file == str(one / "scenario.yaml")
    assert str(two / "scenario.yaml") in problem.message
    assert str(one / "scenario.yaml") in second.problems[0].message
    with pytest.raises(InvalidInput, match="is the key of"):
        catalogue.select(["web"])
    assert keys(catalogue, "db") == ["db"]
    assert catalogue.select([str(two)])[0].folder == two


def test_a_key_twice_in_other_letters(tmp_path: Path) -> None:
    """[S6.2] Letter case is ignored, also where one of the two is broken because of it."""
    put(tmp_path, "one", "web")
    put(tmp_path, "two", "WEB")
    catalogue = Catalogue([tmp_path])
    assert {e.key for e in catalogue.broken} == {"WEB", "web"}
    assert all("OD005" in [p.code for p in e.problems] for e in catalogue.broken)


def test_broken_scenarios_are_listed(tmp_path: Path) -> None:
    """[S6.3] With what can be read of them, and without hiding others."""
    put(tmp_path, "good", "good", "x")
    put(tmp_path, "wrong", "wrong", "x", more="zz: 1\n")
    put(tmp_path, "tag", "tag", more="title: !x\n")
    two = put(tmp_path, "two", "two")
    (two / "scenario.json").write_text("{}")
    catalogue = Catalogue([tmp_path])
    by_name = {entry.path.parent.name: entry for entry in catalogue.broken if entry.path}
    assert (by_name["wrong"].key, by_name["wrong"].tags) == ("wrong", ("x",))
    assert by_name["wrong"].problems[0].path == "zz"
    assert (by_name["tag"].key, by_name["tag"].problems[0].line) == (None, 5)
    (both,) = (e.problems[0] for e in catalogue.broken if "scenario.json" in e.problems[0].message)
    assert (both.code, both.file) == ("OD001", str(two))
    assert len(catalogue.entries) == 4
    assert keys(catalogue, "good") == ["good"]
    for word in ("wrong", "tag:x"):
        with pytest.raises(InvalidInput, match="zz is not a known key"):
            catalogue.select([word])


def test_selection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """[S6.4] By key, tag, pack and path, in the order given, each once."""
    put(tmp_path, "p/web", "web", "x")
    put(tmp_path, "p/db", "db", "x", "y")
    put(tmp_path, "q/mon", "mon", "y")
    catalogue = Catalogue([tmp_path])
    assert keys(catalogue, "web", "tag:x") == ["web", "db"]
    assert keys(catalogue, "tag:y", "tag:x") == ["db", "mon", "web"]
    assert keys(catalogue, "pack:p") == ["db", "web"]
    assert keys(catalogue, str(tmp_path / "q/mon/scenario.yaml"), "WEB") == ["mon", "web"]
    assert keys(catalogue, str(tmp_path / "p")) == ["db", "web"]
    monkeypatch.chdir(tmp_path / "p")
    assert keys(catalogue, ".") == ["db", "web"]
    assert keys(catalogue, "./web/scenario.yaml", "web") == ["web"]
    assert keys(Catalogue([tmp_path / "q"]), "web") == ["web"]  # no such key, but a folder


def test_a_key_goes_before_a_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[S6.4]"""
    put(tmp_path, "cat/a", "web")
    here = tmp_path / "here"
    put(here, "web", "other")
    monkeypatch.chdir(here)
    catalogue = Catalogue([tmp_path / "cat"])
    assert keys(catalogue, "web") == ["web"]
    assert keys(catalogue, "./web") == ["other"]


def test_broken_ones_are_meant_too(tmp_path: Path) -> None:
    """[S6.3] By tag, by the path of a file and of a folder: with their problems, beside others."""
    put(tmp_path, "p/good", "good", "x")
    put(tmp_path, "p/wrong", "wrong", "x", more="zz: 1\n")
    catalogue = Catalogue([tmp_path])
    for word, meant in (
        ("tag:x", ["good", "wrong"]),
        ("WRONG", ["wrong"]),
        (str(tmp_path / "p"), ["good", "wrong"]),
        (str(tmp_path / "p/wrong"), ["wrong"]),
        (str(tmp_path / "p/wrong/scenario.yaml"), ["wrong"]),
    ):
        entries = catalogue.meant(word)
        assert [entry.key for entry in entries] == meant
        assert [p.path for entry in entries for p in entry.problems] == ["zz"]
        with pytest.raises(InvalidInput, match=r"the scenario wrong is refused.*zz is not a known"):
            catalogue.select([word])


def test_selections_that_mean_nothing(tmp_path: Path) -> None:
    """[S6.5] Unknown names are refused with close ones; an empty selection is no run of nothing."""
    put(tmp_path, "p/web-down", "web-down", "network")
    put(tmp_path, "p/other", "other", "disk")
    catalogue = Catalogue([tmp_path])
    for word, kind, hint in (
        ("web-dwn", "scenario", "did you mean web-down? known: other, web-down"),
        ("tag:netwrk", "tag", "did you mean network? known: disk, network"),
        ("pack:zz", "pack", "known: p"),
    ):
        with pytest.raises(UnknownName, match=f"no {kind} named") as caught:
            catalogue.select([word])
        assert caught.value.hint == hint
    with pytest.raises(UsageError, match="no scenario is selected"):
        catalogue.select([])
    for nothing in ("", " "):
        with pytest.raises(UsageError, match="an empty word selects nothing"):
            catalogue.select([nothing])
    with pytest.raises(UsageError, match="no file or folder"):
        catalogue.select(["./nowhere"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="holds no scenario"):
        catalogue.select([str(tmp_path / "empty")])


def test_the_packs_are_whole() -> None:
    """What ships loads, has unique keys, and gives lint nothing to say."""
    catalogue = Catalogue([PACKS])
    assert catalogue.entries
    assert catalogue.broken == ()
    for entry in catalogue.entries:
        assert [p for p in lint(entry.scenario()) if p.severity != "note"] == [], entry.key
