"""Files of a host: put, get, and what changed since setup."""

from __future__ import annotations

import pytest

from opsdrill.errors import HostError
from opsdrill.hosts.driver import Host
from opsdrill.model.host import Command

CANNOT_TELL = "changed files"
"""The entry in `HostFacts.limits` of a driver that cannot tell which files changed."""


async def printed(host: Host, run: str) -> str:
    answer = await host.run(Command(run=run))
    assert answer.exit_code == 0, answer
    return answer.stdout


async def test_put_then_get(any_host: Host) -> None:
    """What was put is got, byte by byte."""
    content = bytes(range(256)) * 10
    await any_host.put("/srv/a/b/file", content)
    assert await any_host.get("/srv/a/b/file") == content


async def test_empty_file(any_host: Host) -> None:
    """An empty file is a file."""
    await any_host.put("/srv/empty", b"")
    assert await any_host.get("/srv/empty") == b""


async def test_get_stops_at_the_limit(any_host: Host) -> None:
    """`get` reads the first bytes up to its limit."""
    await any_host.put("/srv/long", b"0123456789")
    assert await any_host.get("/srv/long", limit=4) == b"0123"


async def test_put_replaces(any_host: Host) -> None:
    """A second `put` leaves nothing of the first."""
    await any_host.put("/srv/file", b"a long first content")
    await any_host.put("/srv/file", b"second")
    assert await any_host.get("/srv/file") == b"second"


async def test_get_of_nothing(any_host: Host) -> None:
    """A file that is not there is FileNotFoundError."""
    with pytest.raises(FileNotFoundError):
        await any_host.get("/srv/nothing")


@pytest.mark.parametrize("path", ["relative", "", "/srv/\0x"])
async def test_no_path_of_a_file(any_host: Host, path: str) -> None:
    """A path that cannot be is a HostError that names it."""
    with pytest.raises(HostError, match="path"):
        await any_host.put(path, b"x")


async def test_put_where_a_folder_is(any_host: Host) -> None:
    """A file cannot take a folder's place; the error says why."""
    await any_host.put("/srv/folder/file", b"x")
    with pytest.raises(HostError, match="/srv/folder"):
        await any_host.put("/srv/folder", b"x")


async def test_put_under_a_file(any_host: Host) -> None:
    """A file is no folder."""
    await any_host.put("/srv/file", b"x")
    with pytest.raises(HostError, match="/srv/file/below"):
        await any_host.put("/srv/file/below", b"x")


async def test_mode_owner_and_parents(host: Host) -> None:
    """Mode and owner are as asked; missing parent folders are 0755 and root's."""
    await host.put("/srv/new/deep/file", b"x", mode=0o640)
    out = await printed(host, "stat -c '%a %U' /srv/new /srv/new/deep /srv/new/deep/file")
    assert out == "755 root\n755 root\n640 root\n"


async def test_special_mode_bits(host: Host) -> None:
    """Four digits of mode are kept."""
    await host.put("/srv/file", b"x", mode=0o1755)
    assert await printed(host, "stat -c %a /srv/file") == "1755\n"


async def test_owner_of_another_user(host: Host) -> None:
    """A file can belong to another user and group."""
    if not host.facts.users:
        pytest.skip("users other than root need the Debian package uidmap")
    await host.put("/srv/file", b"x", owner="www-data:adm")
    assert await printed(host, "stat -c '%U %G' /srv/file") == "www-data adm\n"
    await host.put("/srv/file", b"y", owner="www-data")
    assert await printed(host, "stat -c '%U %G' /srv/file") == "www-data www-data\n"


async def test_owner_that_is_not_there(host: Host) -> None:
    """An owner that the host does not have is a HostError that names it."""
    with pytest.raises(HostError, match="nosuchuser"):
        await host.put("/srv/file", b"x", owner="nosuchuser")


async def test_none_keeps_mode_and_owner(host: Host) -> None:
    """`mode` and `owner` None: an existing file keeps its own, a new one gets the default."""
    await host.put("/srv/file", b"x", mode=0o600)
    await host.put("/srv/file", b"y", mode=None, owner=None)
    await host.put("/srv/other", b"z", mode=None, owner=None)
    out = await printed(host, "stat -c '%a %U' /srv/file /srv/other; cat /srv/file")
    assert out == "600 root\n644 root\ny"


async def test_put_over_a_running_or_read_only_file(host: Host) -> None:
    """A file that nobody may write is written all the same: it is put by root."""
    await host.put("/srv/file", b"x", mode=0o444)
    await host.put("/srv/file", b"y", mode=0o444)
    assert await host.get("/srv/file") == b"y"


async def test_links_lead_inside(host: Host) -> None:
    """A link leads where it leads on the host, for `put` and `get`."""
    await printed(host, "mkdir /srv/real; ln -s /srv/real /srv/link; ln -s /etc/hostname /srv/name")
    await host.put("/srv/link/file", b"x")
    assert await printed(host, "cat /srv/real/file") == "x"
    assert (await host.get("/srv/name")).strip() == b"web-01"


@pytest.mark.parametrize("path", ["/dev/zero", "/srv/pipe", "/srv"])
async def test_only_regular_files_are_read(host: Host, path: str) -> None:
    """A device, a named pipe, a folder: a HostError at once, nothing hangs."""
    await printed(host, "mkfifo /srv/pipe")
    with pytest.raises(HostError, match=path):
        await host.get(path)


async def test_put_into_a_pipe(host: Host) -> None:
    """`put` on a named pipe does not wait for a reader."""
    await printed(host, "mkfifo /srv/pipe")
    with pytest.raises(HostError, match="/srv/pipe"):
        await host.put("/srv/pipe", b"x")


async def test_strange_names(host: Host) -> None:
    """Names with spaces, quotes, line breaks and any Unicode are names."""
    for name in ("a b", "it's", 'say "x"', "line\nbreak", "日本", "$(touch x)", "-n", "*"):
        await host.put(f"/srv/{name}", name.encode())
        assert await host.get(f"/srv/{name}") == name.encode()


async def test_full_disk(host: Host) -> None:
    """A file for which there is no room is a HostError that says so."""
    await host.run(Command(run="head -c 900M /dev/zero > /srv/full"))
    with pytest.raises(HostError, match=r"[Nn]o space"):
        await host.put("/srv/file", b"x" * 100_000)


async def test_changed_since_mark(any_host: Host) -> None:
    """Files added, changed and removed since `mark` are listed by path; others are not."""
    for name in ("kept", "other"):
        await any_host.put(f"/srv/{name}", b"x")
    await any_host.mark()
    if CANNOT_TELL in any_host.facts.limits:
        assert await any_host.changed() is None
        return
    assert await any_host.changed() == ()
    await any_host.put("/srv/other", b"yy")
    await any_host.put("/srv/new", b"zzz")
    changes = await any_host.changed()
    assert changes is not None
    assert [(change.path, change.change, change.size) for change in changes] == [
        ("/srv/new", "added", 3),
        ("/srv/other", "changed", 2),
    ]


async def test_every_kind_of_change(host: Host) -> None:
    """Removed files, modes, links and folders count; reading does not."""
    await printed(host, "cd /srv; echo x | tee gone moded linked read >/dev/null; mkdir dir")
    await host.mark()
    await printed(
        host,
        "cd /srv; rm gone; chmod 600 moded; ln -sf /etc/hosts linked; cat read >/dev/null;"
        " chmod 700 dir; mkdir fresh; echo x > /etc/motd; sed -i s/root/root/ /etc/passwd",
    )
    changes = await host.changed()
    if CANNOT_TELL in host.facts.limits:
        assert changes is None
        return
    assert changes is not None
    assert {change.path: change.change for change in changes} == {
        "/etc/motd": "changed",
        "/etc/passwd": "changed",
        "/srv/dir": "changed",
        "/srv/fresh": "added",
        "/srv/gone": "removed",
        "/srv/linked": "changed",
        "/srv/moded": "changed",
    }
