"""Secrets: found where the lab says, checked, bounded, and repeated by no message."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from opsdrill.errors import UsageError
from opsdrill.hosts.lab import machines
from opsdrill.hosts.secret import VALUE_LIMIT, Secrets
from opsdrill.model.lab import Lab
from opsdrill.model.secret import SecretSource


def value(source: SecretSource, folder: Path, seconds: float = 20, **environment: str) -> str:
    variables = {"PATH": os.environ["PATH"], **environment}
    return Secrets({"S": source}, folder, variables, seconds=seconds).value("S")


def refusal(source: SecretSource, folder: Path, seconds: float = 20, **environment: str) -> str:
    with pytest.raises(UsageError) as caught:
        value(source, folder, seconds, **environment)
    message = f"{caught.value} {caught.value.hint or ''}"
    assert message.startswith("the secret 'S' cannot be had: ")
    assert "hunter2" not in message
    return message


def file(folder: Path, content: bytes = b"hunter2\n", mode: int = 0o600) -> SecretSource:
    path = folder / "secret"
    path.write_bytes(content)
    path.chmod(mode)
    return SecretSource(file="secret")


def test_from_the_environment(tmp_path: Path) -> None:
    assert value(SecretSource(env="WORD"), tmp_path, WORD="hunter2") == "hunter2"
    assert "variable WORD is not set" in refusal(SecretSource(env="WORD"), tmp_path)
    assert "it is empty" in refusal(SecretSource(env="WORD"), tmp_path, WORD="")


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"hunter2", "hunter2"),
        (b"hunter2\n", "hunter2"),
        (b"hunter2\r\n", "hunter2"),
        (b" two  words \n", " two  words "),
        (b"one\ntwo\n", "one\ntwo"),
        ("gehe\u00ed\u30a4m\n".encode(), "gehe\u00ed\u30a4m"),
    ],
)
def test_from_a_file_without_the_line_break_at_its_end(
    content: bytes, found: str, tmp_path: Path
) -> None:
    assert value(file(tmp_path, content), tmp_path) == found


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o620, 0o601])
def test_a_file_that_others_may_use_is_refused(mode: int, tmp_path: Path) -> None:
    said = refusal(file(tmp_path, mode=mode), tmp_path)
    assert f"may be used by others (mode {mode:04o})" in said
    assert f"chmod 600 {tmp_path}/secret" in said


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (b"\n", "it is empty"),
        (b"hunter2\xff", "it is not UTF-8"),
        (b"hunter2\0x", "it holds a NUL character"),
        (b"hunter2" * VALUE_LIMIT, "it is longer than 64 KiB"),
    ],
)
def test_a_file_that_holds_no_secret_is_refused(content: bytes, why: str, tmp_path: Path) -> None:
    assert why in refusal(file(tmp_path, content), tmp_path)


def test_what_is_no_file_is_refused_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    assert "is no file" in refusal(SecretSource(file="pipe"), tmp_path)
    assert "No such file" in refusal(SecretSource(file="missing"), tmp_path)
    assert "Is a directory" in refusal(SecretSource(file=str(tmp_path)), tmp_path)


def test_words_are_run_without_a_shell(tmp_path: Path) -> None:
    source = SecretSource(command=("printf", "%s\n", "$(echo x); `id`"))
    assert value(source, tmp_path) == "$(echo x); `id`"


def test_one_text_is_a_line_for_a_shell_in_the_labs_folder(tmp_path: Path) -> None:
    (tmp_path / "word").write_text("hunter2 and more\n")
    assert value(SecretSource(command="cut -d' ' -f1 < word"), tmp_path) == "hunter2"


def test_a_command_that_fails_says_how_and_nothing_of_what_it_said(tmp_path: Path) -> None:
    source = SecretSource(command="echo hunter2; echo hunter2 >&2; exit 3")
    assert "its command ended with status 3" in refusal(source, tmp_path)
    assert "signal 9" in refusal(SecretSource(command="kill -9 $$"), tmp_path)
    missing = SecretSource(command=("no-such-program",))
    assert "cannot be run: No such file" in refusal(missing, tmp_path)


@pytest.mark.parametrize("line", ["sleep 100", "sleep 100 & echo hunter2", "yes & sleep 100"])
def test_a_command_has_a_time_limit_with_all_that_it_started(line: str, tmp_path: Path) -> None:
    start = time.monotonic()
    said = refusal(SecretSource(command=f"{line} # {tmp_path}"), tmp_path, 0.5)
    assert "did not end within 0.5 s" in said or "longer than" in said
    assert time.monotonic() - start < 20
    assert not [
        entry
        for entry in Path("/proc").glob("[0-9]*/cmdline")
        if str(tmp_path).encode() in _read(entry)
    ]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_secret_is_looked_up_once_and_shown_nowhere(tmp_path: Path) -> None:
    source = SecretSource(command="echo x >> count; echo hunter2")
    secrets = Secrets({"S": source}, tmp_path, {"PATH": os.environ["PATH"]})
    assert [secrets.value("S") for _ in range(3)] == ["hunter2"] * 3
    assert (tmp_path / "count").read_text() == "x\n"
    assert "hunter2" not in repr(secrets)


def test_only_the_secrets_of_hosts_that_are_used_are_looked_up(tmp_path: Path) -> None:
    lab = Lab.model_validate(
        {
            "driver": "ssh",
            "hosts": {
                "bastion": {"password": "GATE"},
                "web-01": {"via": "bastion"},
                "db-01": {"password": "MISSING"},
            },
            "secrets": {"GATE": {"command": "echo open"}, "MISSING": {"env": "NOT_SET_ANYWHERE"}},
        }
    )
    found = machines(lab, tmp_path, ["web-01", "elsewhere"])
    assert sorted(found) == ["bastion", "web-01"]
    assert (found["bastion"].password, found["web-01"].password) == ("open", None)
    assert machines(lab, tmp_path, []) == {}
    with pytest.raises(UsageError, match="'MISSING' cannot be had"):
        machines(lab, tmp_path)
