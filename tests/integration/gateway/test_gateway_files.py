"""Files that are copied through the gateway: scp with both protocols, sftp, rsync."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.integration.gateway.conftest import Drill, need

from opsdrill.model.job import Coverage, Seen, ToolCall

pytestmark = pytest.mark.sandbox

WHOLE = Coverage(default=Seen(state="whole"))


def files(calls: list[ToolCall]) -> list[tuple[str, str, str]]:
    return [(call.kind, call.path, call.outcome) for call in calls if call.path]


@pytest.mark.parametrize("protocol", ["-O", "-s"])
async def test_scp_there_and_back(drill: Drill, tmp_path: Path, protocol: str) -> None:
    (tmp_path / "note").write_bytes(b"\0\xff" * 100_000)
    ran = await drill.run("scp", protocol, "note", "web-01:/tmp/copy")
    assert ran.status == 0, ran.err
    ran = await drill.run("scp", protocol, "web-01:/tmp/copy", "back")
    assert ran.status == 0, ran.err
    assert (tmp_path / "back").read_bytes() == b"\0\xff" * 100_000
    calls = await drill.returned(3)
    assert files(calls) == [("write_file", "/tmp/copy", "ran")]
    assert drill.gateway.coverage(WHOLE) == WHOLE


@pytest.mark.parametrize("protocol", ["-O", "-s"])
async def test_scp_of_a_folder(drill: Drill, tmp_path: Path, protocol: str) -> None:
    """[W2.7] Each file by its whole name, wherever the copy goes below its target."""
    (tmp_path / "tree" / "a b").mkdir(parents=True)
    (tmp_path / "tree" / "a b" / "one").write_text("1")
    (tmp_path / "tree" / "two").write_text("")
    assert (await drill.run("scp", protocol, "-rp", "tree", "web-01:/srv")).status == 0
    calls = await drill.returned(3)
    assert sorted(files(calls)) == [
        ("write_file", "/srv/tree/a b/one", "ran"),
        ("write_file", "/srv/tree/two", "ran"),
    ]
    assert await drill.on_host("cat '/srv/tree/a b/one'") == "1"


async def test_old_scp_into_a_folder_or_onto_a_file(drill: Drill, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x")
    for target in ("/tmp", "/tmp/", "/tmp/y"):
        assert (await drill.run("scp", "-O", "x", f"web-01:{target}")).status == 0
    calls = await drill.returned(6)
    assert [path for _, path, _ in files(calls)] == ["/tmp/x", "/tmp/x", "/tmp/y"]
    assert drill.gateway.coverage(WHOLE) == WHOLE


async def test_old_scp_whose_target_a_shell_makes(drill: Drill, tmp_path: Path) -> None:
    """[W3.4] What cannot be told makes the coverage partial, with the reason."""
    (tmp_path / "x").write_text("x")
    assert (await drill.run("scp", "-O", "x", "web-01:~/y*")).status == 0
    seen = drill.gateway.coverage(WHOLE).of("write_file")
    assert seen.state == "partial" and "scp" in (seen.why or "")
    assert drill.gateway.coverage(WHOLE).of("executed_commands").state == "whole"


async def test_sftp(drill: Drill, tmp_path: Path) -> None:
    """[W2.6] Opened for writing: written; not cut, or put in the place of another: edited."""
    (tmp_path / "x").write_text("0123456789")
    await drill.on_host("echo abc >/tmp/old; printf 0123 >/tmp/partial")
    batch = "\n".join(
        [
            "put x /tmp/new", "rename /tmp/new /tmp/old", "reput x /tmp/partial",
            "mkdir /tmp/d", "chmod 600 /tmp/old", "symlink /etc/passwd /tmp/link",
            "rm /tmp/link", "get /etc/hostname got", "-put x /proc/nowhere", "ls /tmp",
        ]
    )  # fmt: skip
    ran = await drill.run("sftp", "-b", "-", "web-01", data=batch.encode())
    assert ran.status == 0, ran.err
    assert (tmp_path / "got").read_text() == "web-01\n"
    calls = await drill.returned(9)
    assert files(calls) == [
        ("write_file", "/tmp/new", "ran"),
        ("update_file", "/tmp/old", "ran"),
        ("update_file", "/tmp/partial", "ran"),
        ("write_file", "/proc/nowhere", "failed"),
    ]
    assert await drill.on_host("cat /tmp/partial") == "0123456789"
    told = [call.arguments for call in calls if call.kind == "other"]
    assert {
        "operation": "symlink",
        "path": "/tmp/link",
        "to": "/etc/passwd",
        "user": "root",
    } in told
    assert {"operation": "open", "path": "/etc/hostname", "user": "root"} in told
    assert {"request": "sftp", "user": "root"} in told


async def test_rsync(drill: Drill, tmp_path: Path) -> None:
    """[W2.7, W3.4]"""
    need("rsync")
    (tmp_path / "x").write_text("x")
    if (await drill.ssh("web-01", "command -v rsync")).status:
        pytest.skip("rsync is not installed")
    remote = f"ssh -F {drill.config}"
    assert (await drill.run("rsync", "-a", "-e", remote, "x", "web-01:/tmp/")).status == 0
    assert await drill.on_host("cat /tmp/x") == "x"
    assert any("rsync --server" in call.command for call in drill.calls())
    assert drill.gateway.coverage(WHOLE).of("write_file").state == "partial"


async def test_what_a_file_transfer_sees_is_the_host(drill: Drill, tmp_path: Path) -> None:
    """The machine's files are not there, by whatever way."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    ways = f"""-get {secret} a
-get ../../../../../..{secret} b
-symlink {secret} /tmp/link
-get /tmp/link c
-get /proc/1/root{secret} d
"""
    await drill.run("sftp", "-b", "-", "web-01", data=ways.encode())
    await drill.run("scp", "-O", f"web-01:{secret}", "e")
    assert not [name for name in "abcde" if (tmp_path / name).exists()]


@pytest.mark.parametrize("protocol", ["-O", "-s"])
async def test_a_big_file_takes_bounded_memory(drill: Drill, tmp_path: Path, protocol: str) -> None:
    """200 MB there and back."""
    size = 200 * 1024 * 1024
    with (tmp_path / "big").open("wb") as file:
        file.truncate(size)
    before = peak()
    assert (await drill.run("scp", protocol, "big", "web-01:/tmp/big", seconds=240)).status == 0
    assert (await drill.run("scp", protocol, "web-01:/tmp/big", "back", seconds=240)).status == 0
    assert (tmp_path / "back").stat().st_size == size
    assert peak() - before < 32 * 1024 * 1024
    assert await drill.on_host("stat -c %s /tmp/big") == str(size)


def peak() -> int:
    """Bytes of memory that this process had at most, since the last time of asking."""
    with open("/proc/self/status") as status:  # noqa: PTH123
        found = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    with open("/proc/self/clear_refs", "w") as file:  # noqa: PTH123
        os.write(file.fileno(), b"5")
    return found * 1024
