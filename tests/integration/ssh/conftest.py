"""Machines with their own sshd for the tests of the ssh driver."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.integration import sshd


@pytest.fixture(scope="session")
def session_rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sshd.Rig]:
    if reason := sshd.why_not():
        pytest.skip(reason)
    with sshd.rig(tmp_path_factory.mktemp("rig")) as rig:
        yield rig


@pytest.fixture
def rig(session_rig: sshd.Rig) -> Iterator[sshd.Rig]:
    """The rig; machines that a test made end with it."""
    yield session_rig
    session_rig.end_machines()


@pytest.fixture
def machine(rig: sshd.Rig) -> sshd.Machine:
    return rig.machine()
