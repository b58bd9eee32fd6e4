"""The program `opsdrill` with one more driver, `lasting`: scripted hosts that outlive a run.

python lasting.py WORDS...     LEASE_SECONDS in the environment: how long a lease holds
"""

from __future__ import annotations

import os
from importlib.metadata import EntryPoint

from opsdrill.cli.main import main
from opsdrill.hosts.driver import DRIVERS
from opsdrill.hosts.drivers.fake import FakeDriver
from opsdrill.runner.leases import LeaseKeeper
from opsdrill.store.sql import SqlStore


class LastingDriver(FakeDriver):
    """Hosts that do not vanish with the run."""

    throw_away = False


def hold_for(seconds: float) -> None:
    """Let leases run out sooner than a test can wait."""
    for call in (LeaseKeeper.__init__, SqlStore.leases):
        assert call.__kwdefaults__ is not None
        call.__kwdefaults__["seconds"] = seconds


if __name__ == "__main__":
    for name, value in (
        ("lasting", "tests.integration.leases.lasting:LastingDriver"),
        ("ssh", "opsdrill.hosts.drivers.ssh.driver:SshDriver"),
    ):
        DRIVERS._entries[name] = EntryPoint(name, value, "opsdrill.drivers")
    hold_for(float(os.environ.get("LEASE_SECONDS", "30")))
    main()
