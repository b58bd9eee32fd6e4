"""What a program is given: how its command is read, what it sees, and what it gets by name."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from opsdrill.agents.adapter import AdapterContext
from opsdrill.agents.adapters.command import CommandAdapter
from opsdrill.agents.choice import parse_agent
from opsdrill.agents.command.kept import KeptFiles
from opsdrill.agents.command.presets import PRESETS, TICKET
from opsdrill.agents.command.surroundings import (
    Layout,
    Links,
    passed,
    path_of,
    read_program,
    room_for,
)
from opsdrill.agents.isolation.shown import needed
from opsdrill.errors import AgentUnavailable, UsageError
from opsdrill.evidence.mask import Mask
from opsdrill.model.agent import AgentSettings, Budgets

LINKS = Links("r-1", "http://127.0.0.1:1/ticket", "token", {"config": "Host a\n"})


def test_a_command_is_split_as_a_shell_splits_words() -> None:
    program = read_program("""./a 'b c' "d\\"e" f\\ g $HOME ~ *""")
    assert program.argv == ("./a", "b c", 'd"e', "f g", "$HOME", "~", "*")


@pytest.mark.parametrize("argument", [None, "", "  ", "'unfinished", "''", "@none-such", "@"])
def test_a_command_that_cannot_be_is_refused(argument: str | None) -> None:
    with pytest.raises(UsageError):
        read_program(argument)


@pytest.mark.parametrize("name", PRESETS)
def test_more_arguments_of_a_preset_come_before_its_ticket(name: str, tmp_path: Path) -> None:
    choice = parse_agent(f"{name}:--more 'a b'", tmp_path)
    assert (choice.adapter, choice.argument) == ("command", f"@{name} --more 'a b'")
    argv = read_program(choice.argument).argv
    preset = PRESETS[name].argv
    assert [word for word in argv if word not in ("--more", "a b")] == list(preset)
    if TICKET in argv:
        assert argv[-1] == TICKET and argv.index("a b") < argv.index(TICKET)
    assert read_program(parse_agent(name, tmp_path).argument).argv == preset


@pytest.mark.parametrize("word", ["./agent.sh", "agent.sh", "sub/agent"])
def test_a_file_that_the_program_would_not_find_is_told(word: str, tmp_path: Path) -> None:
    """It begins in an empty folder, so a relative path leads nowhere; a whole one does."""
    (tmp_path / "sub").mkdir()
    place = tmp_path / word
    place.write_text("echo\n")
    with pytest.raises(AgentUnavailable, match="begins in an empty folder") as raised:
        path_of(read_program(f"sh {word}"), tmp_path)
    assert str(place) in (raised.value.hint or "")
    assert path_of(read_program(f"sh {place}"), tmp_path).endswith("/sh")
    assert path_of(read_program("sh -c sub . .. ./none 'echo a/b'"), tmp_path)


def test_a_program_is_looked_for_as_a_shell_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    for place in (tmp_path / "bin" / "tool", tmp_path / "tool"):
        place.write_text("#!/bin/sh\n")
        place.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert path_of(read_program("tool"), tmp_path) == str(tmp_path / "bin" / "tool")
    assert path_of(read_program("./tool"), tmp_path) == str(tmp_path / "tool")
    (tmp_path / "tool").chmod(0o644)
    for gone in ("./tool", "no-such-tool", "./bin"):
        with pytest.raises(AgentUnavailable, match="is not there"):
            path_of(read_program(gone), tmp_path)


def test_variables_are_passed_by_name_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PRESETS["codex"].keys, *PRESETS["codex"].passes):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WANTED", "yes")
    assert passed(read_program("tool"), ["WANTED"]) == {"WANTED": "yes"}
    with pytest.raises(AgentUnavailable, match="NOT_THERE, which is not set"):
        passed(read_program("tool"), ["NOT_THERE"])
    with pytest.raises(AgentUnavailable, match="needs one of CODEX_API_KEY"):
        passed(read_program("@codex"), [])
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert passed(read_program("@codex"), []) == {"OPENAI_API_KEY": "k"}


def test_an_environment_has_what_is_allowed_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/tmp/agent")
    monkeypatch.setenv("LC_TIME", "C")
    room = room_for(
        read_program("/bin/true"),
        "/bin/true",
        Layout("", "/home/agent", "agent", 1, 1),
        LINKS,
        "words",
        hosts=("a", "b"),
        variables={"MORE": "1"},
        hidden=(),
        transcripts=("~/x/*.jsonl", "y.json"),
    )
    assert "AWS_SECRET_ACCESS_KEY" not in room.environment
    assert "SSH_AUTH_SOCK" not in room.environment
    assert (room.environment["LC_TIME"], room.environment["MORE"]) == ("C", "1")
    assert room.environment["OPSDRILL_HOSTS"] == "a b"
    assert room.transcripts == ("/home/agent/x/*.jsonl", "/work/y.json")
    assert room.files["/home/agent/.ssh/config"] == "Host a\n"


def test_a_ticket_that_is_too_long_for_an_argument_is_refused() -> None:
    layout = Layout("", "/home/agent", "agent", 1, 1)
    with pytest.raises(UsageError, match="too long to be an argument of opencode"):
        room_for(
            read_program("@opencode"), "/bin/true", layout, LINKS, "x" * 200_000,
            hosts=(), variables={}, hidden=(), transcripts=(),
        )  # fmt: skip


def test_what_a_program_needs_is_its_installation_and_never_a_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    venv = home / ".venvs" / "tool"
    for folder in (home / "bin", home / "lib", venv / "bin", home / "n" / "node_modules" / "cli"):
        folder.mkdir(parents=True)
    (venv / "pyvenv.cfg").write_text("home = /usr/bin\n")
    for path in (venv / "bin" / "tool", home / "bin" / "own", home / "n/node_modules/cli/run.js"):
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    (home / "bin" / "tool").symlink_to(venv / "bin" / "tool")
    (home / "bin" / "cli").symlink_to(home / "n/node_modules/cli/run.js")
    found = {
        name: needed(str(home / "bin" / name), "", str(home)) for name in ("tool", "own", "cli")
    }
    assert str(venv) in found["tool"]
    assert found["own"] == (str(home / "bin" / "own"),)
    assert str(home / "n" / "node_modules") in found["cli"]
    assert all(str(home) not in paths for paths in found.values())
    assert needed("/usr/bin/env", "", str(home), ["/etc/hosts", str(home / "bin/own"), "bin"]) == (
        str(home / "bin/own"),
    )


@pytest.mark.parametrize("key", ["tokens", "tasks"])
def test_a_budget_that_nobody_could_keep_is_refused(key: str) -> None:
    settings = AgentSettings(budgets=Budgets.model_validate({key: 5, "seconds": 9}))
    with pytest.raises(UsageError, match=f"cannot keep to a budget of {key}"):
        CommandAdapter(AdapterContext(argument="true", settings=settings))


def archive(*entries: tuple[str, bytes]) -> io.BytesIO:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w|") as made:
        for name, content in entries:
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            made.addfile(entry, io.BytesIO(content))
    stream.seek(0)
    return stream


def test_names_of_kept_files_lead_nowhere_else(tmp_path: Path) -> None:
    kept = KeptFiles(tmp_path / "kept", Mask([("PASSWORD", "correct-horse")]))
    kept.take(
        archive(
            ("work/../../outside", b"x"),
            ("/etc/outside", b"x"),
            ("work/a", b"the correct-horse\n"),
            ("work/a/b", b"x"),
            ("work/correct-horse.txt", b""),
            ("transcripts/home/.x/t.jsonl", b"{}"),
            ("left-out/2", b""),
        )
    )
    kept.close()
    found = {str(p.relative_to(kept.folder)) for p in kept.folder.rglob("*") if p.is_file()}
    assert found == {
        "stdout.txt", "stderr.txt", "work/a", "work/[masked:PASSWORD].txt",
        "transcripts/home/.x/t.jsonl",
    }  # fmt: skip
    assert (kept.folder / "work/a").read_text() == "the [masked:PASSWORD]\n"
    assert kept.left_out == 5
    assert not (tmp_path / "outside").exists()
