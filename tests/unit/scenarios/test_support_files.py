"""Support files: regular files inside the scenario's folder, of bounded size."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from opsdrill.errors import InvalidInput
from opsdrill.scenarios.files import FILE_LIMIT
from opsdrill.scenarios.load import load_scenario


def scenario(folder: Path, source: str = "tool") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "scenario.yaml").write_text(
        "key: a\ntitle: t\nticket_title: t\nhosts: [web]\n"
        f"files:\n  - {{from: {source}, to: /opt/tool}}\n  - {{from: {source}, to: /opt/again}}\n"
    )
    return folder


def refusal(folder: Path) -> str:
    with pytest.raises(InvalidInput) as caught:
        load_scenario(folder)
    first = caught.value.problems[0]
    assert (first.path, first.line, first.column, first.code) == ("files[0].from", 6, 12, "OD004")
    return first.message


def test_digest_size_and_content(tmp_path: Path) -> None:
    """[S5.5] A file is read once for its digest, and its content later is the same or refused."""
    folder = scenario(tmp_path / "s")
    (folder / "tool").write_bytes(b"\xff\0x\r\n")
    file = load_scenario(folder).files["tool"]
    assert (file.digest, file.size) == (hashlib.sha256(b"\xff\0x\r\n").hexdigest(), 5)
    assert file.read() == b"\xff\0x\r\n"
    (folder / "tool").write_bytes(b"other")
    with pytest.raises(InvalidInput, match="changed after"):
        file.read()
    (folder / "tool").unlink()
    with pytest.raises(InvalidInput, match="cannot be opened"):
        file.read()


def test_missing_and_no_regular_file(tmp_path: Path) -> None:
    """[S5.5] [S7.4] Not there, a folder, a pipe that nobody writes to."""
    folder = scenario(tmp_path / "s")
    assert "there is no file 'tool'" in refusal(folder)
    (folder / "tool").mkdir()
    assert "no regular file" in refusal(folder)
    (folder / "tool").rmdir()
    os.mkfifo(folder / "tool")
    assert "no regular file" in refusal(folder)


def test_links(tmp_path: Path) -> None:
    """[S5.5] A link inside the folder is followed, one that leads out is refused."""
    folder = scenario(tmp_path / "s")
    (folder / "real").write_bytes(b"x")
    (folder / "tool").symlink_to("real")
    assert load_scenario(folder).files["tool"].read() == b"x"
    (tmp_path / "secret").write_bytes(b"s")
    (folder / "tool").unlink()
    (folder / "tool").symlink_to("../secret")
    assert "leads out" in refusal(folder)
    (folder / "tool").unlink()
    (folder / "tool").symlink_to("tool")
    assert "cannot be found" in refusal(folder)


def test_a_linked_folder_that_leads_out(tmp_path: Path) -> None:
    """[S5.5] Also where a folder on the way is the link."""
    folder = scenario(tmp_path / "s", "sub/tool")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "tool").write_bytes(b"s")
    (folder / "sub").symlink_to(tmp_path / "out")
    assert "leads out" in refusal(folder)


def test_a_scenario_reached_by_a_link(tmp_path: Path) -> None:
    """[S5.5] The folder itself may be a link."""
    folder = scenario(tmp_path / "s")
    (folder / "tool").write_bytes(b"x")
    (tmp_path / "link").symlink_to(folder)
    assert load_scenario(tmp_path / "link").files["tool"].size == 1


def test_size(tmp_path: Path) -> None:
    """[S5.5]"""
    folder = scenario(tmp_path / "s")
    with (folder / "tool").open("wb") as stream:
        stream.truncate(FILE_LIMIT)
    assert load_scenario(folder).files["tool"].size == FILE_LIMIT
    with (folder / "tool").open("ab") as stream:
        stream.write(b"x")
    assert "larger than 16 MiB" in refusal(folder)


def test_told_beside_what_else_is_wrong(tmp_path: Path) -> None:
    """[S1.4] [S7.4] A file that is not there is told at once with the mistakes in the scenario."""
    folder = scenario(tmp_path / "s")
    file = folder / "scenario.yaml"
    file.write_text(
        f"{file.read_text()}  - {{from: /etc/passwd, to: /x}}\n  - {{from: 3, to: /y}}\n"
    )
    with pytest.raises(InvalidInput) as caught:
        load_scenario(folder)
    assert [(problem.path, problem.code) for problem in caught.value.problems] == [
        ("files[0].from", "OD004"),
        ("files[1].from", "OD004"),
        ("files[2].from", "OD002"),
        ("files[3].from", "OD002"),
    ]
