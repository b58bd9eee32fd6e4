"""Control groups: they bound the processes and memory of a host, root's own included.

All that a host runs shares one part of the processors, however many processes it has.

Version 1 and 2, wherever a new group turns out to have the controller; found once, by trying.
"""

# ruff: noqa: PTH102, PTH106, PTH123, PTH208, PTH120
from __future__ import annotations

import errno
import os
import re
import time
from dataclasses import dataclass, field

OURS = re.compile(r"opsdrill-(?P<pid>[0-9]+)-(?P<start>[0-9]+)-(?P<what>[0-9]+|trial)")
"""Names of ours: a process id alone may be somebody else's by now, with its start it is not."""

_LIMITS = {
    "pids": ("pids.max",),
    "memory": ("memory.max", "memory.limit_in_bytes"),
    "cpu": ("cpu.weight", "cpu.shares"),
}


@dataclass(frozen=True, slots=True)
class Place:
    """A group of ours under which new groups have these controllers."""

    folder: str
    controllers: tuple[str, ...]


@dataclass(slots=True)
class Groups:
    """The groups of one host."""

    folders: list[str] = field(default_factory=list)

    def join(self) -> None:
        """Move this very process into them."""
        for folder in self.folders:
            with open(f"{folder}/cgroup.procs", "wb", buffering=0) as procs:
                procs.write(b"0")

    def leave(self) -> None:
        """Move this very process to where they were made."""
        for folder in self.folders:
            with open(f"{os.path.dirname(folder)}/cgroup.procs", "wb", buffering=0) as procs:
                procs.write(b"0")

    def remove(self, patience: float = 2.0) -> None:
        """Remove them; their last processes may still be going."""
        end = time.monotonic() + patience
        for folder in self.folders:
            while not _removed(folder) and time.monotonic() < end:
                time.sleep(0.002)
        self.folders.clear()


def places() -> list[Place]:
    """Where groups can be made; the first that works for each controller."""
    found: list[Place] = []
    missing = set(_LIMITS)
    for folder in _candidates():
        have = _offers(folder) & missing
        if have:
            found.append(Place(folder, tuple(sorted(have))))
            missing -= have
    return found


def make(where: list[Place], name: str) -> Groups:
    """Make the groups of a host, without bounds."""
    groups = Groups()
    try:
        for place in where:
            folder = f"{place.folder}/{name}"
            os.mkdir(folder)
            groups.folders.append(folder)
    except OSError:
        groups.remove()
        raise
    return groups


def bound(groups: Groups, processes: int, memory: int) -> None:
    """Give groups their bounds, where they have the controller; 0 leaves one out."""
    wanted = {"pids": processes, "memory": memory}
    for folder in groups.folders:
        for controller, most in wanted.items():
            if most:
                _limit(folder, controller, most)
        if memory:
            # What was written out to a disk would not count: version 2 bounds that apart from
            # memory, version 1 both together.
            _set(f"{folder}/memory.swap.max", 0)
            _set(f"{folder}/memory.memsw.limit_in_bytes", memory)


def leftovers(where: list[Place]) -> list[str]:
    """Folders of ours, whoever made them."""
    return [
        f"{place.folder}/{name}"
        for place in where
        for name in sorted(os.listdir(place.folder))
        if OURS.fullmatch(name)
    ]


def own_name(what: str) -> str:
    """The name of a group of this process; `what` is a number or `trial`."""
    with open("/proc/self/stat", "rb") as stat:
        start = stat.read().rpartition(b")")[2].split()[19].decode()
    return f"opsdrill-{os.getpid()}-{start}-{what}"


def _candidates() -> list[str]:
    """Own group and root of every hierarchy that is mounted here."""
    own: dict[str, str] = {}
    with open("/proc/self/cgroup", encoding="utf-8") as lines:
        for line in lines:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            own.update(dict.fromkeys(controllers.split(","), path))
    found = []
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            fields, _, rest = line.rstrip("\n").partition(" - ")
            kind, _, options = rest.split(" ", 2)
            target = fields.split(" ")[4]
            if kind == "cgroup2":
                found += [target + own.get("", "/").rstrip("/"), target]
            elif kind == "cgroup":
                names = [name for name in options.split(",") if name in _LIMITS]
                found += [target + own.get(name, "/").rstrip("/") for name in names]
                found += [target for _ in names]
    return list(dict.fromkeys(found))


def _offers(folder: str) -> set[str]:
    """The controllers that a new group under this one has."""
    trial = f"{folder}/{own_name('trial')}"
    try:
        os.mkdir(trial)
    except OSError:
        return set()
    try:
        return {
            controller
            for controller, ways in _LIMITS.items()
            if any(os.access(f"{trial}/{name}", os.W_OK) for name in ways)
        }
    finally:
        os.rmdir(trial)


def _limit(folder: str, controller: str, most: int) -> None:
    for name in _LIMITS[controller]:
        if _set(f"{folder}/{name}", most):
            return


def _set(path: str, value: int) -> bool:
    """False where there is no such setting."""
    if not os.access(path, os.W_OK):
        return False
    with open(path, "wb", buffering=0) as setting:
        setting.write(b"%d" % value)
    return True


def _removed(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except OSError as error:
        return error.errno not in (errno.EBUSY, errno.ENOTEMPTY)
    return True
