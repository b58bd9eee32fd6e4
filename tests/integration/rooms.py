"""Rooms for programs of the tests, and what came of them."""

from __future__ import annotations

import os
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from opsdrill.agents.isolation.confined import Confined, Ending
from opsdrill.agents.isolation.room import Room

UID = 1_700_000_123
"""Nobody's number."""


@dataclass
class Came:
    """What a program wrote and left."""

    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    kept: dict[str, bytes] = field(default_factory=dict)
    ending: Ending | None = None

    @property
    def said(self) -> str:
        return self.out.decode()

    def keep(self, stream: IO[bytes]) -> None:
        with tarfile.open(fileobj=stream, mode="r|") as archive:
            for member in archive:
                content = archive.extractfile(member)
                self.kept[member.name] = content.read() if content else b""


def room(script: str, base: Path | None = None, **other: object) -> Room:
    """A room for a shell script; `base`: without namespaces, in that folder."""
    root = str(base) if base else ""
    nobody = os.getuid() == 0 and base is None
    given: dict[str, object] = {
        "argv": ("/bin/bash", "-c", script),
        "environment": {"PATH": "/usr/bin:/bin", "HOME": f"{root}/home/agent"},
        "home": f"{root}/home/agent",
        "work": f"{root}/work",
        "own": f"{root}/run/opsdrill",
        "user": "agent",
        "uid": UID if nobody else os.getuid(),
        "gid": UID if nobody else os.getgid(),
        "stdin": f"{root}/run/opsdrill/ticket",
        "files": {f"{root}/run/opsdrill/ticket": "the ticket\n"},
        "isolated": base is None,
    }
    return Room(**(given | other))  # type: ignore[arg-type]


async def ran(given: Room, *, stop_at: bytes | None = None) -> Came:
    """Run it; ended by force once it wrote `stop_at`."""
    came = Came()
    confined: Confined

    def out(part: bytes) -> None:
        came.out.extend(part)
        if stop_at is not None and stop_at in came.out:
            confined.stop()

    confined = Confined(given, out, came.err.extend, came.keep)
    came.ending = await confined.run()
    return came
