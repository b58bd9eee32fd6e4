"""What every peer is given and gives: checks over hosts, and how many answers were right.

Run as `PEER.py TASK RESULT`. Standard library only: peers run in environments of their own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Check:
    """A command, its exit status and what it prints."""

    run: str
    status: int
    output: str

    def holds(self, status: int | None, output: str) -> bool:
        return status == self.status and output == self.output


@dataclass(frozen=True)
class Task:
    """The same checks on every host.

    Attributes:
        hosts: addresses by name; everybody is root there.
        key: path of the private key.
        host_key: the public host key of all of them.
        checks: for each host, in this order.
    """

    hosts: dict[str, str]
    key: str
    host_key: str
    checks: list[Check]

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))


def read_task(path: str | Path) -> Task:
    found = json.loads(Path(path).read_text())
    found["checks"] = [Check(**check) for check in found["checks"]]
    return Task(**found)


def main(peer: Callable[[Task], tuple[int, float]]) -> None:
    """Run a peer that says how many answers were right, and the seconds from connecting on."""
    right, seconds = peer(read_task(sys.argv[1]))
    Path(sys.argv[2]).write_text(json.dumps({"right": right, "seconds": seconds}))
