"""Whether the process lives, and whether it can work."""

from __future__ import annotations

from typing import Literal

from opsdrill.wire.body import Told


class Health(Told):
    """The process lives."""

    status: Literal["alive"] = "alive"


class Readiness(Told):
    """The process can work."""

    status: Literal["ready"] = "ready"
