"""Which lab is meant, which driver is taken when nobody says, and what a lab must have."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from opsdrill.app import hosts, labs
from opsdrill.app.settings import Settings
from opsdrill.app.wiring import Place
from opsdrill.errors import DriverUnavailable, InvalidInput, UnknownName, UsageError
from opsdrill.hosts.driver import DRIVERS, DriverContext, Finding
from opsdrill.hosts.drivers.fake import FakeDriver
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import HostSpec, Scenario

CONTEXTS: list[DriverContext] = []


class Stand(FakeDriver):
    """A driver that tells what it was told."""

    def __init__(self, context: DriverContext) -> None:
        super().__init__(DriverContext(context.state))
        CONTEXTS.append(context)


class Broken(Stand):
    async def preflight(self, hosts: Sequence[HostSpec] = ()) -> list[Finding]:
        return [Finding("namespaces", False, "forbidden", "allow them", blocks=True)]


class BrokenToo(Stand):
    async def preflight(self, hosts: Sequence[HostSpec] = ()) -> list[Finding]:
        return [Finding("engine", False, "none", "apt-get install podman", blocks=True)]


class Machines(Stand):
    """Machines that exist: what is found out about each by its name."""

    name = "ssh"
    throw_away = False

    async def preflight(self, hosts: Sequence[HostSpec] = ()) -> list[Finding]:
        return [
            Finding(
                "connection", "gone" not in spec.name, "a machine", "plug it in", host=spec.name
            )
            for spec in hosts
        ]


@pytest.fixture(autouse=True)
def drivers(monkeypatch: pytest.MonkeyPatch) -> None:
    CONTEXTS.clear()
    use(monkeypatch, sandbox="Stand", container="Stand", ssh="Machines")


def use(monkeypatch: pytest.MonkeyPatch, **drivers: str) -> None:
    for name, maker in drivers.items():
        entry = EntryPoint(name, f"{__name__}:{maker}", "opsdrill.drivers")
        monkeypatch.setitem(DRIVERS._entries, name, entry)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "here").mkdir()
    return Place(tmp_path / "home", tmp_path / "here")


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def spec(lab: LabChoice, *host_specs: object) -> RunSpec:
    scenario = Scenario.model_validate(
        {"key": "drill", "title": "t", "ticket_title": "t", "hosts": list(host_specs)}
    )
    return RunSpec(
        id="r1",
        scenario=scenario,
        scenario_version="v",
        agent=AgentChoice(adapter="noop"),
        lab=lab,
        created_at=datetime.now(UTC),
    )


# which lab


def test_a_drivers_name(place: Place) -> None:
    assert labs.choose("fake", place) == LabChoice(name="fake", driver="fake")


def test_a_path_a_kept_name_and_the_file_that_is_there(place: Place) -> None:
    path = write(place.folder / "labs" / "mine.yaml", "driver: fake")
    assert labs.choose("labs/mine.yaml", place).name == "mine"
    assert labs.choose(str(path), place).folder == str(path.parent)
    write(place.home / "labs" / "kept.yaml", "driver: fake")
    write(place.home / "labs" / "folder" / "lab.yaml", "driver: fake")
    assert labs.choose("kept", place).name == "kept"
    assert labs.choose("folder", place).folder == str(place.home / "labs" / "folder")
    write(place.folder / "lab.yaml", "driver: fake")
    assert labs.choose(None, place).driver == "fake"


def test_a_drivers_name_comes_before_a_file_of_that_name(place: Place) -> None:
    write(place.folder / "fake", "driver: sandbox")
    assert labs.choose("fake", place).driver == "fake"


def test_the_setting_stands_for_the_flag(place: Place) -> None:
    assert labs.choose(None, Place(place.home, place.folder, Settings(lab="fake"))).driver == "fake"


def test_a_name_that_nobody_has_lists_what_there_is(place: Place) -> None:
    write(place.home / "labs" / "kept.yaml", "driver: fake")
    with pytest.raises(UnknownName, match="no lab named 'nowhere'") as caught:
        labs.choose("nowhere", place)
    assert "kept" in str(caught.value.hint)
    with pytest.raises(UsageError, match="there is no lab file"):
        labs.choose("./nowhere", place)


def test_a_file_with_an_unknown_driver_is_refused_with_its_place(place: Place) -> None:
    write(place.folder / "lab.yaml", "driver: teleport")
    with pytest.raises(InvalidInput, match=r"lab\.yaml: driver cannot be had: .*'teleport'"):
        labs.choose(None, place)


def test_a_run_keeps_what_the_file_said_without_any_secret(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run can be worked off elsewhere, and its stored form holds references only."""
    monkeypatch.setenv("DRILL_PW", "hunter2")
    write(
        place.folder / "lab.yaml",
        "driver: ssh\nhosts: {web-01: {password: PW}}\nsecrets: {PW: {env: DRILL_PW}}",
    )
    choice = labs.choose(None, place)
    assert choice.lab is not None
    assert choice.digest == choice.lab.digest
    stored = spec(choice, "web-01").model_dump_json()
    assert "DRILL_PW" in stored
    assert "hunter2" not in stored


# which driver


async def test_the_default_is_the_sandbox_where_it_can_work(place: Place) -> None:
    settled = await labs.settle(place, [spec(labs.choose(None, place), "web-01")])
    assert (settled.lab.name, settled.lab.driver) == ("sandbox", "sandbox")


async def test_else_a_container_engine(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, sandbox="Broken")
    runs = [spec(labs.choose(None, place), "web-01")]
    settled = await labs.settle(place, runs)
    assert settled.lab.driver == "container"
    assert [run.lab for run in settled.runs(runs)] == [settled.lab]


async def test_else_one_sentence_on_what_to_install_and_never_this_machine(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This very machine is taken only when it is named."""
    use(monkeypatch, sandbox="Broken", container="BrokenToo", local="Stand")
    with pytest.raises(DriverUnavailable) as caught:
        await labs.settle(place, [spec(labs.choose(None, place), "web-01")])
    assert "namespaces (forbidden)" in str(caught.value)
    assert "engine (none)" in str(caught.value)
    assert caught.value.hint == "allow them, or apt-get install podman"


async def test_a_named_driver_is_taken_or_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, sandbox="Broken")
    with pytest.raises(DriverUnavailable, match="namespaces"):
        await labs.settle(place, [spec(labs.choose("sandbox", place), "web-01")])
    write(place.folder / "lab.yaml", "driver: sandbox")
    with pytest.raises(DriverUnavailable, match="namespaces"):
        await labs.settle(place, [spec(labs.choose(None, place), "web-01")])


async def test_a_file_without_a_driver_is_for_the_first_that_can_work(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, sandbox="Broken")
    write(
        place.folder / "lab.yaml",
        "options: {sandbox: {size: 1G}, container: {engine: podman}}\n"
        "defaults: {image: d12}\nimages: {d12: {container: 'debian:12'}}",
    )
    settled = await labs.settle(place, [spec(labs.choose(None, place), "web-01")])
    assert (settled.lab.name, settled.lab.driver) == ("lab", "container")
    told = CONTEXTS[-1]
    assert told.options == {"engine": "podman"}
    assert (dict(told.images), told.image) == ({"d12": "debian:12"}, "d12")


async def test_without_hosts_nothing_is_tried(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, sandbox="Broken", container="BrokenToo")
    assert (await labs.settle(place, [spec(labs.choose(None, place))])).lab.driver == "sandbox"


# what a lab must have


async def test_a_driver_is_told_the_machines_that_are_used_and_their_secrets(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRILL_PW", "hunter2")
    write(
        place.folder / "lab.yaml",
        "driver: ssh\nhosts: {gate: {}, web-01: {via: gate, password: PW}, db-01: {password: NO}}\n"
        "secrets: {PW: {env: DRILL_PW}, NO: {env: NOT_SET_ANYWHERE}}",
    )
    await labs.settle(place, [spec(labs.choose(None, place), "web-01")])
    told = CONTEXTS[-1]
    assert sorted(told.hosts) == ["gate", "web-01"]
    assert told.hosts["web-01"].password == "hunter2"
    assert told.folder == place.folder
    with pytest.raises(UsageError, match="the secret 'NO' cannot be had"):
        await labs.settle(place, [spec(labs.choose(None, place), "db-01")])


async def test_a_host_that_the_lab_does_not_have_is_told_before_anything_runs(
    place: Place,
) -> None:
    write(place.folder / "lab.yaml", "driver: ssh\nhosts: {web-01: x}")
    with pytest.raises(UsageError, match="drill needs the host 'db-01'") as caught:
        await labs.settle(place, [spec(labs.choose(None, place), "web-01", "db-01")])
    assert caught.value.hint == "its hosts: web-01"


@pytest.mark.parametrize(
    ("image", "says"),
    [
        ("other", "needs the image 'other', which the lab lab does not have"),
        ("alpine", "does not say what the driver container makes of it"),
    ],
)
async def test_an_image_that_the_lab_does_not_know_is_refused(
    image: str, says: str, place: Place
) -> None:
    write(
        place.folder / "lab.yaml",
        "driver: container\nimages: {d12: {container: 'debian:12'}, alpine: {sandbox: ./tree}}",
    )
    choice = labs.choose(None, place)
    await labs.settle(place, [spec(choice, {"name": "a", "image": "d12"})])
    with pytest.raises(UsageError, match=says):
        await labs.settle(place, [spec(choice, {"name": "a", "image": image})])


async def test_the_sandbox_says_that_it_has_no_images(place: Place) -> None:
    """An image that is asked for is never silently something else."""
    choice = labs.choose("sandbox", place)
    with pytest.raises(UsageError, match="images of the sandbox are not part of this version"):
        await labs.settle(place, [spec(choice, {"name": "a", "image": "debian-12"})])


# hosts check


def test_hosts_check_asks_every_host_of_the_lab(place: Place) -> None:
    write(
        place.folder / "lab.yaml",
        "driver: ssh\ndefaults: {user: root}\n"
        "hosts: {web-01: {address: 10.0.0.1, via: gate}, gate: gate.example.org, gone: {}}",
    )
    found = hosts.check(place, None)
    assert found.usable
    assert {host.name: host.answers for host in found.hosts} == {
        "web-01": True,
        "gate": True,
        "gone": False,
    }
    assert found.hosts[0].address == "root@10.0.0.1:22 via gate"


def test_hosts_check_of_a_driver_that_makes_its_hosts(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hosts.check(place, "sandbox").usable
    use(monkeypatch, sandbox="Broken")
    found = hosts.check(place, "sandbox")
    assert (found.usable, found.hosts) == (False, ())
