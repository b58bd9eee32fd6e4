"""What a lab has to say is a state of its own, and comes with the command that adds it."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from opsdrill.app import doctor, hosts, labs
from opsdrill.app.settings import Settings
from opsdrill.app.wiring import Place
from opsdrill.errors import UnknownName, UsageError
from opsdrill.hosts.driver import DRIVERS, DriverContext, Finding
from opsdrill.hosts.drivers.fake import FakeDriver
from opsdrill.model.scenario import HostSpec

LINE = "defaults: {image: 100%}"


class Stand(FakeDriver):
    """A driver that makes hosts from an image, and from nothing else."""

    def __init__(self, context: DriverContext) -> None:
        super().__init__(DriverContext(context.state))
        self._image = context.image

    async def preflight(self, hosts: Sequence[HostSpec] = ()) -> list[Finding]:
        engine = Finding("engine", True)
        if self._image is not None:
            return [engine, Finding("hosts", True, self._image)]
        return [engine, Finding("image", False, "none", "say so", blocks=True, lab_line=LINE)]


class Works(FakeDriver):
    def __init__(self, context: DriverContext) -> None:
        super().__init__(DriverContext(context.state))


class Broken(Stand):
    async def preflight(self, hosts: Sequence[HostSpec] = ()) -> list[Finding]:
        broken = Finding("engine", False, "none", "apt-get install engine", blocks=True)
        return [broken, *await super().preflight(hosts)]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "here").mkdir()
    return Place(tmp_path / "home", tmp_path / "here")


def use(monkeypatch: pytest.MonkeyPatch, **drivers: str) -> None:
    entries = {
        name: EntryPoint(name, f"{__name__}:{maker}", "opsdrill.drivers")
        for name, maker in drivers.items()
    }
    monkeypatch.setattr(DRIVERS, "_entries", entries)


def states(place: Place) -> dict[str, tuple[str, bool]]:
    return {one.name: (one.state, one.usable) for one in doctor.examine(place).drivers}


def remedy(place: Place, driver: str) -> str:
    (report,) = [one for one in doctor.examine(place).drivers if one.name == driver]
    (found,) = [one for one in report.findings if one.lab_line is not None]
    assert found.remedy is not None
    return found.remedy


def test_three_states(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What needs a lab alone is not called broken; what needs more is."""
    use(monkeypatch, sandbox="Works", container="Stand", other="Broken")
    assert states(place) == {
        "sandbox": ("works", True),
        "container": ("needs a lab", False),
        "other": ("cannot work here", False),
    }


def test_the_command_adds_what_is_missing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Done as it is told, the driver works, and the lab says what it was to say."""
    use(monkeypatch, container="Stand")
    command = remedy(place, "container")
    assert command == r"printf 'driver: container\ndefaults: {image: 100%%}\n' >lab.yaml"
    subprocess.run(["sh", "-c", command], cwd=place.folder, check=True)
    lab = labs.choose(None, place).lab
    assert lab is not None
    assert lab.defaults.image == "100%"
    assert states(place) == {"container": ("works", True)}


def test_no_lab_file_is_written_over(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of another driver stays, and one that a setting hides is not written."""
    use(monkeypatch, container="Stand", sandbox="Works")
    hidden = Place(place.home, place.folder, Settings(lab="sandbox"))
    (place.folder / "lab.yaml").write_text("driver: sandbox\n")
    for told in (remedy(hidden, "container"), remedy(place, "container")):
        assert told.endswith(">container-lab.yaml, then `--lab container-lab.yaml`")


def test_a_lab_that_says_too_little(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line goes into the file that is there."""
    use(monkeypatch, container="Stand")
    (place.folder / "lab.yaml").write_text("driver: container\n")
    assert remedy(place, "container") == f"add `{LINE}` to the lab file"


def test_a_lab_for_whichever_driver(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lab without a driver is the lab of each that may give its hosts."""
    use(monkeypatch, container="Stand", sandbox="Stand", other="Stand")
    (place.folder / "lab.yaml").write_text("defaults: {image: d12}\n")
    assert states(place) == {
        "sandbox": ("works", True),
        "container": ("works", True),
        "other": ("needs a lab", False),
    }


def test_hosts_check_without_a_lab(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told what gives hosts by default, and how to begin with machines that exist."""
    use(monkeypatch, sandbox="Works", container="Stand")
    found = hosts.check(place, None)
    assert (found.lab.driver, found.usable, found.made) == ("sandbox", True, True)
    assert found.go_on == r"printf 'driver: ssh\nhosts: {web-01: ADDRESS}\n' >lab.yaml"
    use(monkeypatch, sandbox="Broken", container="Works")
    assert hosts.check(place, None).lab.driver == "container"
    use(monkeypatch, sandbox="Broken", container="Stand")
    found = hosts.check(place, None)
    assert (found.lab.driver, found.usable) == ("sandbox", False)
    assert hosts.check(place, "sandbox").go_on is None
    assert hosts.check(place, None, "container").lab.driver == "container"


def test_a_driver_is_named_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, sandbox="Works")
    with pytest.raises(UsageError, match="both say"):
        labs.named("sandbox", "sandbox", place)
    with pytest.raises(UnknownName, match="no driver named 'nosuch'"):
        labs.named(None, "nosuch", place)
