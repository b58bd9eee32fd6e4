"""The engines for the tests of the container driver, each made when it is first needed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import pytest_asyncio
from tests.integration import engines
from tests.integration.images import BUSYBOX, DEBIAN

from opsdrill.hosts.driver import DriverContext
from opsdrill.hosts.drivers.container.driver import ContainerDriver
from opsdrill.hosts.drivers.container.host import ContainerHost
from opsdrill.model.scenario import HostSpec

HOSTS = {
    "podman-busybox": ("podman", BUSYBOX),
    "docker-debian": ("docker", DEBIAN),
    "ordinary-user-debian": ("podman of an ordinary user", DEBIAN),
}


@pytest.fixture(scope="session")
def get_engine(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Callable[[str], engines.Engine]]:
    made: dict[str, engines.Engine] = {}
    with ExitStack() as stack:

        def get(name: str) -> engines.Engine:
            if name not in made:
                if reason := engines.why_not(name):
                    pytest.skip(reason)
                folder = tmp_path_factory.mktemp("engine")
                made[name] = stack.enter_context(engines.engine(name, folder, DEBIAN, BUSYBOX))
            return made[name]

        yield get


@pytest.fixture(params=["docker", "podman"])
def engine(
    request: pytest.FixtureRequest, get_engine: Callable[[str], engines.Engine]
) -> engines.Engine:
    return get_engine(request.param)


@pytest.fixture
def podman(get_engine: Callable[[str], engines.Engine]) -> engines.Engine:
    return get_engine("podman")


@pytest.fixture
def make_driver(tmp_path: Path) -> engines.MakeDriver:
    def make(engine: engines.Engine, image: str = BUSYBOX, **options: str) -> ContainerDriver:
        given = {"engine": str(engine.program), **options}
        return ContainerDriver(DriverContext(tmp_path, given, image=image, images={"known": image}))

    return make


@pytest_asyncio.fixture(params=sorted(HOSTS))
async def host(
    request: pytest.FixtureRequest,
    get_engine: Callable[[str], engines.Engine],
    make_driver: engines.MakeDriver,
) -> AsyncIterator[ContainerHost]:
    name, image = HOSTS[request.param]
    driver = make_driver(get_engine(name), image)
    async with await driver.provision("one", (HostSpec(name="web-01"),)) as fleet:
        yield fleet.hosts["web-01"]
