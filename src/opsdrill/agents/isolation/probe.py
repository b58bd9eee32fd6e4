"""Whether a program can be isolated here."""

from __future__ import annotations

import os

from opsdrill.agents.isolation.confined import Confined
from opsdrill.agents.isolation.room import Room


async def why_not_isolated() -> str | None:
    """Why this machine gives a program no namespaces of its own; None: it does."""
    number = 1_899_999_999 if os.getuid() == 0 else os.getuid()
    room = Room(
        argv=("/bin/sh", "-c", ":"),
        environment={},
        home="/home/agent",
        work="/work",
        own="/run/opsdrill",
        user="agent",
        uid=number,
        gid=number if os.getuid() == 0 else os.getgid(),
        stdin="/dev/null",
    )
    try:
        ending = await Confined(room, _unheard, _unheard, _unheard).run()
    except OSError as error:
        return str(error)
    if ending.status == 0:
        return None
    return ending.refused or ending.cannot or "a program in them did not end as it should"


def _unheard(_part: object) -> None:
    """What it says is nothing."""
