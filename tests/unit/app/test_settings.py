"""Settings: flags beat the environment, which beats the files; what is wrong names its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from opsdrill.app.settings import KEYS, Settings, read, variable
from opsdrill.app.wiring import find_place
from opsdrill.errors import InvalidInput


def here(folder: Path, text: str) -> Path:
    path = folder / "opsdrill.toml"
    path.write_text(text)
    return path


def test_without_any_file_nothing_is_set(tmp_path: Path) -> None:
    assert read(tmp_path, None, {}) == Settings()


def test_the_working_folder_beats_the_data_folder_key_by_key(tmp_path: Path) -> None:
    kept = tmp_path / "kept.toml"
    kept.write_text('lab = "fake"\nparallel = 2\n')
    here(tmp_path, "parallel = 3\n")
    found = read(tmp_path, kept, {})
    assert (found.lab, found.parallel) == ("fake", 3)


def test_the_environment_beats_the_files(tmp_path: Path) -> None:
    here(tmp_path, 'parallel = 3\nfail-on = "failed"\n')
    found = read(tmp_path, None, {"OPSDRILL_PARALLEL": "5", "OPSDRILL_FAIL_ON": ""})
    assert (found.parallel, found.fail_on) == (5, "failed")


def test_relative_paths_start_from_the_file(tmp_path: Path) -> None:
    here(
        tmp_path,
        'home = "data"\nagent-config = "agents.yaml"\nscenarios = ["a", "/b"]\nlab = "./l.yaml"\n',
    )
    found = read(tmp_path, None, {})
    assert found.home == str(tmp_path / "data")
    assert found.agent_config == str(tmp_path / "agents.yaml")
    assert found.scenarios == (str(tmp_path / "a"), "/b")
    assert found.lab == str(tmp_path / "l.yaml")


def test_one_agent_may_be_a_text(tmp_path: Path) -> None:
    here(tmp_path, 'agent = "noop"\n')
    assert read(tmp_path, None, {}).agent == ("noop",)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ('lab = "fake"\nparalel = 3\n', 2, "paralel"),
        ("\n\n[run]\nparallel = 3\n", 3, "run"),
        ("parallel = 0\n", 1, "parallel"),
        ("parallel = true\n", 1, "parallel"),
        ('parallel = "3"\n', 1, "parallel"),
        ('# x\nfail-on = "error"\n', 2, "fail-on"),
        ('fail_on = "failed"\n', 1, "fail_on"),
        ("agent = [3]\n", 1, "agent"),
        ("lab = \n", 1, "TOML"),
        ("lab = 1\nagent = [", 2, "TOML"),
        ("x = 1\nx = 2\n", 2, "TOML"),
        ('lab = "fake"\n[secrets]\nPW = "hunter2"\n', 2, "must say where the secret is found"),
        ('[secrets]\nPW = {env = "A", file = "b"}\n', 1, "exactly one of"),
    ],
)
def test_what_is_wrong_names_file_line_and_key(
    tmp_path: Path, text: str, line: int, says: str
) -> None:
    path = here(tmp_path, text)
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path, None, {})
    problem = caught.value.problems[0]
    assert (problem.file, problem.line) == (str(path), line)
    assert says in str(problem)


def test_a_wrong_variable_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="OPSDRILL_PARALLEL"):
        read(tmp_path, None, {"OPSDRILL_PARALLEL": "many"})


def test_the_file_in_the_data_folder_cannot_move_it(tmp_path: Path) -> None:
    kept = here(tmp_path, 'home = "elsewhere"\n')
    with pytest.raises(InvalidInput, match="home"):
        read(tmp_path / "work", kept, {})


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "opsdrill.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match=r"opsdrill\.toml: is not UTF-8"):
        read(tmp_path, None, {})


def test_a_flag_beats_the_setting_for_the_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPSDRILL_HOME", raising=False)
    here(tmp_path, 'home = "of-the-file"\n')
    assert find_place(None, tmp_path).home == tmp_path / "of-the-file"
    assert find_place(Path("of-the-flag"), tmp_path).home == tmp_path / "of-the-flag"
    monkeypatch.setenv("OPSDRILL_HOME", "/of/the/environment")
    assert find_place(None, tmp_path).home == Path("/of/the/environment")


def test_every_key_has_a_variable_of_its_own() -> None:
    assert len({variable(key) for key in KEYS}) == len(KEYS)


def test_secrets_of_all_layers_count(tmp_path: Path) -> None:
    """What one file names as secret is no less secret where another names more."""
    kept = tmp_path / "home" / "kept.toml"
    kept.parent.mkdir()
    kept.write_text('[secrets]\nA = {file = "a.txt"}\nB = {env = "OLD"}\n')
    here(tmp_path, '[secrets]\nB = {env = "NEW"}\nC = {command = ["pass", "show", "c"]}\n')
    found = read(tmp_path, kept, {"OPSDRILL_SECRETS": "D, E"}).secrets
    assert {name: (source.env, source.file, source.command) for name, source in found.items()} == {
        "A": (None, str(tmp_path / "home" / "a.txt"), None),
        "B": ("NEW", None, None),
        "C": (None, None, ("pass", "show", "c")),
        "D": ("D", None, None),
        "E": ("E", None, None),
    }


def test_a_value_in_place_of_a_reference_is_not_repeated(tmp_path: Path) -> None:
    here(tmp_path, '[secrets]\nPW = "hunter2"\n')
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path, None, {})
    assert "hunter2" not in str(caught.value)
    with pytest.raises(InvalidInput, match="OPSDRILL_SECRETS") as caught:
        read(tmp_path / "empty", None, {"OPSDRILL_SECRETS": "hunter2!"})
    assert "hunter2!" not in str(caught.value)
