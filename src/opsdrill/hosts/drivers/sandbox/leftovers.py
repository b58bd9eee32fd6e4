"""What a killed OpsDrill and its killed fork server left behind: empty control groups."""

from __future__ import annotations

from pathlib import Path

from opsdrill.hosts.drivers.sandbox.forkserver.cgroups import (
    OURS,
    Groups,
    leftovers,
    places,
)


def remove_leftovers() -> list[str]:
    """Remove the groups of fork servers that are no more; one line each.

    Everything else that a host is made of the kernel takes away with its last process.
    """
    found = []
    for folder in leftovers(places()):
        if _owner_lives(Path(folder).name):
            continue
        Groups([folder]).remove()
        if not Path(folder).exists():
            found.append(f"removed the control group {folder}")
    return found


def _owner_lives(name: str) -> bool:
    named = OURS.fullmatch(name)
    if named is None:
        return True
    try:
        stat = Path(f"/proc/{named['pid']}/stat").read_bytes()
    except OSError:
        return False
    fields = stat.rpartition(b")")[2].split()
    # A dead process keeps its number until its parent takes notice.
    return fields[0] not in (b"Z", b"X") and fields[19].decode() == named["start"]
