"""The same hosts from three labs: the sandbox, a podman of its own, machines with a real sshd."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.acceptance.program import Cli
from tests.integration import engines, images, sshd

HOSTS = {"web-config": ["web-01"], "patch-web-hosts": ["web-01", "web-02", "web-03", "mon-01"]}
"""The hosts of each scenario."""


@dataclass(frozen=True)
class Labs:
    """The content of lab files, and the engine behind one of them."""

    engine: engines.Engine
    files: dict[str, dict[str, object]] = field(default_factory=dict)

    def get(self, name: str, scenario: str) -> dict[str, object]:
        """The lab of that name for a scenario's hosts."""
        return self.files.get(name) or self.files[f"{name} for {scenario}"]


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    folder = tmp_path / "work"
    folder.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"}
    return Cli(folder, tmp_path / "home", environment)


@pytest.fixture
def labs(tmp_path: Path) -> Iterator[Labs]:
    """A lab of each kind; machines that exist are others for each scenario."""
    if reason := sshd.why_not() or engines.why_not("podman"):
        pytest.skip(reason)
    for name in ("engine", "machines"):
        (tmp_path / name).mkdir()
    with ExitStack() as given_back:
        engine = given_back.enter_context(
            engines.engine("podman", tmp_path / "engine", images.DEBIAN)
        )
        rig = given_back.enter_context(sshd.rig(tmp_path / "machines"))
        found: dict[str, dict[str, object]] = {
            "sandbox": {"driver": "sandbox"},
            "container": {
                "driver": "container",
                "options": {"engine": str(engine.program), "image": images.DEBIAN},
            },
        }
        for scenario, names in HOSTS.items():
            machines = rig.machines(names)
            hosts = {
                machine.name: {
                    "address": machine.address,
                    "key": str(machine.key),
                    "known_host": machine.host_key,
                }
                for machine in machines
            }
            found[f"ssh for {scenario}"] = {"driver": "ssh", "hosts": hosts}
        yield Labs(engine, found)
