"""Files: `put` and `get`."""

from __future__ import annotations

from opsdrill.errors import HostError
from opsdrill.hosts.conformance.asking import (
    FOLDER,
    expect_equal,
    expect_error,
    expect_printed,
    other_user,
    printed,
    ran,
)
from opsdrill.hosts.conformance.check import NotApplicable, on_host
from opsdrill.hosts.driver import Host
from opsdrill.model.host import Command

FILE = f"{FOLDER}/file"
NAMES = ("a b", "it's", 'say "x"', "line\nbreak", "日本", "$(touch x)", "-n", "*", "\\", "x ")


async def _expect_content(host: Host, path: str, content: bytes) -> None:
    expect_equal(await host.get(path), content, f"what is got of {path}")


@on_host(scripted=True)
async def put_then_get(host: Host) -> None:
    """What was put is got byte by byte, whatever the bytes are."""
    content = bytes(range(256)) * 10
    await host.put(f"{FOLDER}/a/b/file", content)
    await _expect_content(host, f"{FOLDER}/a/b/file", content)


@on_host(scripted=True)
async def empty_file(host: Host) -> None:
    """An empty file is a file."""
    await host.put(FILE, b"")
    await _expect_content(host, FILE, b"")


@on_host()
async def content_is_the_hosts(host: Host) -> None:
    """What is put is what the host's own programs read, and what they write is what is got."""
    await host.put(FILE, b"a\r\nb\xff\0c")
    await expect_printed(host, f"od -An -tx1 {FILE}", " 61 0d 0a 62 ff 00 63\n")
    await ran(host, rf"printf '\377\0\r\n' > {FILE}")
    await _expect_content(host, FILE, b"\xff\0\r\n")


@on_host()
async def large_file(host: Host) -> None:
    """A file of some megabytes arrives whole, both ways."""
    content = bytes(range(251)) * 20_000
    await host.put(FILE, content)
    await expect_printed(host, f"wc -c < {FILE}", f"{len(content)}\n")
    got = await host.get(FILE, limit=len(content) + 1)
    expect_equal(got == content, True, "whether the same bytes are got")


@on_host(scripted=True)
async def get_has_a_limit(host: Host) -> None:
    """`get` reads the first bytes up to its limit; without one that is one MiB."""
    await host.put(FILE, b"0123456789")
    for limit, expected in ((4, b"0123"), (10, b"0123456789"), (11, b"0123456789"), (0, b"")):
        expect_equal(await host.get(FILE, limit=limit), expected, f"what is got up to {limit}")
    await host.put(FILE, b"x" * 1_100_000)
    expect_equal(len(await host.get(FILE)), 1024 * 1024, "how much is got without a limit")


@on_host(scripted=True)
async def put_replaces(host: Host) -> None:
    """A second `put` leaves nothing of the first."""
    await host.put(FILE, b"a long first content")
    await host.put(FILE, b"second")
    await _expect_content(host, FILE, b"second")


@on_host(scripted=True)
async def get_of_nothing(host: Host) -> None:
    """A file that is not there is a FileNotFoundError."""
    for path in (f"{FOLDER}/nothing", f"{FOLDER}/no/folder"):
        await expect_error(host.get(path), FileNotFoundError, f"get {path}")


@on_host(scripted=True)
async def no_path_of_a_file(host: Host) -> None:
    """A path that can be no file's is a HostError that says so."""
    for path in ("relative", "", "/srv/\0x"):
        await expect_error(host.put(path, b"x"), HostError, f"put {path!r}", names="path")
        await expect_error(host.get(path), HostError, f"get {path!r}", names="path")


@on_host(scripted=True)
async def put_where_a_folder_is(host: Host) -> None:
    """A file does not take a folder's place, and no file becomes a folder; the error names the
    path."""
    await host.put(f"{FOLDER}/folder/file", b"x")
    for path in (f"{FOLDER}/folder", f"{FOLDER}/folder/file/below"):
        await expect_error(host.put(path, b"x"), HostError, f"put {path}", names=path)
    await _expect_content(host, f"{FOLDER}/folder/file", b"x")


@on_host()
async def mode_owner_and_parents(host: Host) -> None:
    """Mode and owner are as asked, without a word root's and 0644; missing folders are root's and
    0755."""
    file = f"{FOLDER}/new/deep/file"
    await host.put(file, b"x", mode=0o640)
    asked = f"stat -c '%a %U' {FOLDER}/new {FOLDER}/new/deep {file}"
    await expect_printed(host, asked, "755 root\n755 root\n640 root\n")
    await host.put(f"{FOLDER}/plain", b"x")
    await expect_printed(host, f"stat -c '%a %U %G' {FOLDER}/plain", "644 root root\n")


@on_host()
async def special_mode_bits(host: Host) -> None:
    """All twelve bits of a mode are kept, and a program that was put can be run."""
    for mode in (0o1755, 0o4755, 0o2755, 0o000):
        await host.put(FILE, b"x", mode=mode)
        await expect_printed(host, f"stat -c %a {FILE}", f"{mode:o}\n")
    await host.put(f"{FOLDER}/program", b"#!/bin/sh\necho ran\n", mode=0o755)
    await expect_printed(host, f"{FOLDER}/program", "ran\n")


@on_host("users")
async def owner_of_another_user(host: Host) -> None:
    """A file can belong to another user, with a group that is named or the user's own."""
    name, _ = await other_user(host)
    own = (await printed(host, f"id -gn {name}")).strip()
    named = await ran(host, "grep -o -e ^adm: -e ^sys: /etc/group")
    group = (named.stdout or "root").partition(":")[0].strip()
    await host.put(FILE, b"x", owner=f"{name}:{group}")
    await expect_printed(host, f"stat -c '%U %G' {FILE}", f"{name} {group}\n")
    await host.put(FILE, b"y", owner=name)
    await expect_printed(host, f"stat -c '%U %G' {FILE}", f"{name} {own}\n")
    await expect_printed(host, f"cat {FILE}", "y")


@on_host()
async def unknown_owner(host: Host) -> None:
    """An owner that the host does not have is a HostError that names it, and nothing is written."""
    await expect_error(
        host.put(FILE, b"x", owner="nosuchuser"), HostError, "put for nobody", names="nosuchuser"
    )
    await expect_printed(host, f"ls -A {FOLDER}", "")


@on_host()
async def none_keeps_mode_and_owner(host: Host) -> None:
    """Where neither mode nor owner is asked for, a file keeps its own and a new one is root's and
    0644."""
    await host.put(FILE, b"x", mode=0o600)
    await host.put(FILE, b"y", mode=None, owner=None)
    await host.put(f"{FOLDER}/other", b"z", mode=None, owner=None)
    asked = f"stat -c '%a %U' {FILE} {FOLDER}/other; cat {FILE}"
    await expect_printed(host, asked, "600 root\n644 root\ny")


@on_host()
async def read_only_file(host: Host) -> None:
    """A file that nobody may write is written all the same."""
    await host.put(FILE, b"x", mode=0o444)
    await host.put(FILE, b"y", mode=0o444)
    await _expect_content(host, FILE, b"y")


@on_host()
async def links_lead_on(host: Host) -> None:
    """A link to a file or a folder leads where it leads on the host, for `put` and for `get`."""
    await printed(host, f"cd {FOLDER}; mkdir real; ln -s {FOLDER}/real link; ln -s real/file name")
    await host.put(f"{FOLDER}/link/file", b"x")
    await expect_printed(host, f"cat {FOLDER}/real/file", "x")
    await _expect_content(host, f"{FOLDER}/name", b"x")
    await host.put(f"{FOLDER}/name", b"y")
    await expect_printed(host, f"cat {FOLDER}/real/file; readlink {FOLDER}/name", "yreal/file\n")


@on_host("throw-away")
async def links_of_the_host(host: Host) -> None:
    """An absolute link leads to the host's own file, not to one of the machine that asks."""
    await printed(host, f"ln -s /etc/hostname {FOLDER}/name")
    name = await host.get(f"{FOLDER}/name")
    expect_equal(name.strip(), host.facts.name.encode(), "what is got of /etc/hostname")


@on_host()
async def only_regular_files_are_read(host: Host) -> None:
    """`get` of a device, a named pipe or a folder is a HostError at once; nothing hangs."""
    await printed(host, f"mkfifo {FOLDER}/pipe")
    for path in ("/dev/zero", f"{FOLDER}/pipe", FOLDER):
        await expect_error(host.get(path), HostError, f"get {path}", names=path)


@on_host()
async def put_into_a_pipe(host: Host) -> None:
    """`put` on a named pipe does not wait for a reader, and is a HostError that names it."""
    pipe = f"{FOLDER}/pipe"
    await printed(host, f"mkfifo {pipe}")
    await expect_error(host.put(pipe, b"x"), HostError, "put on a pipe", names=pipe)


@on_host()
async def strange_names(host: Host) -> None:
    """Names with spaces, quotes, line breaks, shell text and any Unicode are names."""
    for name in NAMES:
        await host.put(f"{FOLDER}/{name}", name.encode())
        await _expect_content(host, f"{FOLDER}/{name}", name.encode())
    await expect_printed(host, f"cd {FOLDER}; set -- *; echo $#", f"{len(NAMES)}\n")


@on_host("throw-away", seconds=180)
async def full_disk(host: Host) -> None:
    """Where there is no room for a file, that is a HostError that says so."""
    fill = Command(run=f"head -c 900M /dev/zero > {FOLDER}/full", timeout=120)
    if (await host.run(fill)).exit_code == 0:
        raise NotApplicable("the host has room for more than 900 MiB")
    await expect_error(host.put(FILE, b"x" * 100_000), HostError, "put", names="no space")
