"""One podman for the tests of the container driver."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from opsdrill.hosts.driver import DriverContext
from opsdrill.hosts.drivers.container.driver import ContainerDriver
from opsdrill.hosts.drivers.container.host import ContainerHost
from opsdrill.model.scenario import HostSpec

sys.path.insert(0, str(Path(__file__).parents[3]))
from tests.integration.podman import BUSYBOX, DEBIAN, MakeDriver, Podman, podman, why_not


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Podman]:
    if reason := why_not():
        pytest.skip(reason)
    with podman(tmp_path_factory.mktemp("podman"), DEBIAN, BUSYBOX) as made:
        yield made


@pytest.fixture
def make_driver(engine: Podman, tmp_path: Path) -> MakeDriver:
    def make(image: str = BUSYBOX, **options: str) -> ContainerDriver:
        given = {"engine": str(engine.program), **options}
        return ContainerDriver(DriverContext(tmp_path, given, image=image, images={"known": image}))

    return make


@pytest_asyncio.fixture(params=[BUSYBOX, DEBIAN], ids=["busybox", "debian"])
async def host(
    request: pytest.FixtureRequest, make_driver: MakeDriver
) -> AsyncIterator[ContainerHost]:
    driver = make_driver(request.param)
    async with await driver.provision("one", (HostSpec(name="web-01"),)) as fleet:
        yield fleet.hosts["web-01"]
