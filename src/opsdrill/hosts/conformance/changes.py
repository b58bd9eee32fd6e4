"""The files that changed since setup, where a driver can tell."""

from __future__ import annotations

from opsdrill.hosts.conformance.asking import FOLDER, expect, expect_equal, printed
from opsdrill.hosts.conformance.check import on_host
from opsdrill.hosts.driver import Host

CANNOT_TELL = "changed files"
"""The entry in `HostFacts.limits` of a driver that cannot tell which files changed."""


async def _cannot_tell(host: Host) -> bool:
    """Whether the host cannot tell, and keeps to that."""
    changes = await host.changed()
    if CANNOT_TELL in host.facts.limits:
        expect_equal(changes, None, "what changed, where the driver says that it cannot tell")
        return True
    expect(changes is not None, f"nothing is told, and no limit {CANNOT_TELL!r} says why")
    return False


@on_host(scripted=True)
async def since_mark(host: Host) -> None:
    """Files added and changed since `mark` are listed by path with their size, others are not; a
    driver that cannot tell says None."""
    for name in ("kept", "other"):
        await host.put(f"{FOLDER}/{name}", b"x")
    await host.mark()
    if await _cannot_tell(host):
        return
    expect_equal(await host.changed(), (), "what changed before anything did")
    await host.put(f"{FOLDER}/other", b"yy")
    await host.put(f"{FOLDER}/new", b"zzz")
    changes = await host.changed() or ()
    seen = [(change.path, change.change, change.size) for change in changes]
    expected = [(f"{FOLDER}/new", "added", 3), (f"{FOLDER}/other", "changed", 2)]
    expect_equal(seen, expected, "what changed")


@on_host("throw-away")
async def every_kind(host: Host) -> None:
    """Removed files, modes, links and folders count as changes; reading does not."""
    await printed(host, f"cd {FOLDER}; echo x | tee gone moded linked read >/dev/null; mkdir dir")
    await host.mark()
    await printed(
        host,
        f"cd {FOLDER}; rm gone; chmod 600 moded; ln -sf /etc/hosts linked; cat read >/dev/null;"
        " chmod 700 dir; mkdir fresh; echo x > /etc/motd; sed -i s/root/root/ /etc/passwd",
    )
    if await _cannot_tell(host):
        return
    changes = await host.changed() or ()
    expected = {
        "/etc/motd": "changed",
        "/etc/passwd": "changed",
        f"{FOLDER}/dir": "changed",
        f"{FOLDER}/fresh": "added",
        f"{FOLDER}/gone": "removed",
        f"{FOLDER}/linked": "changed",
        f"{FOLDER}/moded": "changed",
    }
    expect_equal({change.path: change.change for change in changes}, expected, "what changed")


@on_host()
async def strange_names(host: Host) -> None:
    """A changed file whose name has a line break or is no UTF-8 is listed, and breaks nothing."""
    await host.mark()
    await printed(host, f"cd {FOLDER}; >'a\nb'; >\"$(printf 'c\\377d')\"; >'e f'")
    if await _cannot_tell(host):
        return
    changes = await host.changed() or ()
    names = [change.path.removeprefix(f"{FOLDER}/") for change in changes]
    expect("a\nb" in names and "e f" in names and len(names) == 3, f"the names are {names}")
