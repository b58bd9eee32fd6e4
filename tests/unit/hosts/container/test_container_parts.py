"""Options, arguments, owners, images and clients of the container driver."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from opsdrill.errors import DriverUnavailable, ProvisionFailed, UsageError
from opsdrill.hosts.driver import DriverContext
from opsdrill.hosts.drivers.container import images
from opsdrill.hosts.drivers.container.birth import (
    FIRST_PROCESS,
    Names,
    addresses,
    names_text,
    network_arguments,
    remove_arguments,
    run_arguments,
)
from opsdrill.hosts.drivers.container.driver import ContainerDriver
from opsdrill.hosts.drivers.container.engine import Engine, find_engine
from opsdrill.hosts.drivers.container.images import image_name
from opsdrill.hosts.drivers.container.options import Options, parse_options
from opsdrill.hosts.drivers.container.owner import Owner
from opsdrill.model.scenario import HostSpec

NAMES = Names("f00", "run-1", "1:2:3:4:5")
WEB = HostSpec(name="web-01")


def test_options() -> None:
    """Options come as texts; `run_options` is split as a shell splits."""
    given = {"run_options": "--memory 1g --env 'A=b c'", "systemd": "true", "internet": "yes"}
    assert parse_options({**given, "engine": "bin/podman"}, Path("/lab")) == Options(
        engine="/lab/bin/podman",
        internet=True,
        run_options=("--memory", "1g", "--env", "A=b c"),
        systemd=True,
    )
    assert parse_options({"engine": "docker"}, Path("/lab")).engine == "docker"


BAD = {
    "size": ("1G", "no option 'size'"),
    "systemd": ("maybe", "systemd: 'maybe' is neither yes nor no"),
    "run_options": ("--env 'A", "run_options cannot be split"),
}


@pytest.mark.parametrize("name", sorted(BAD))
def test_bad_options(name: str) -> None:
    """One clear sentence that says which option and what is wrong with it."""
    value, said = BAD[name]
    with pytest.raises(UsageError, match=said):
        ContainerDriver(DriverContext(Path("/"), {name: value}))


def test_run_arguments() -> None:
    """The lab's own arguments stand before the image; labels say whose the container is."""
    options = Options(run_options=("--memory=1g",))
    words = run_arguments("podman", NAMES, "web-01", "sha", options, network=True)
    assert words[words.index("sha") - 1] == "--memory=1g"
    assert words[-3:] == ("sha", "-c", FIRST_PROCESS)
    assert {"--network=opsdrill-f00", "--hostname=web-01", "--label=opsdrill.run=run-1"} <= set(
        words
    )
    assert "--network=none" in run_arguments("docker", NAMES, "a", "sha", options, network=False)


def test_systemd_arguments() -> None:
    """The image's init is the first process."""
    for kind in ("docker", "podman"):
        words = run_arguments(
            "docker" if kind == "docker" else "podman",
            NAMES,
            "a",
            "sha",
            Options(systemd=True),
            network=False,
        )
        assert words[-1] == "sha"
        assert "--entrypoint=/sbin/init" in words


def test_network_is_inside() -> None:
    """Hosts reach only each other unless the lab says `internet: yes`."""
    assert "--internal" in network_arguments(NAMES, Options())
    assert "--internal" not in network_arguments(NAMES, Options(internet=True))


def test_removal_takes_no_time() -> None:
    """Each engine is told in its own words to end containers at once, with their volumes."""
    assert remove_arguments("docker", "a", "b") == ("rm", "--force", "--volumes", "a", "b")
    assert remove_arguments("podman", "a") == ("rm", "--force", "--volumes", "--time=0", "a")


def test_addresses() -> None:
    """One line for each host; what is no address is refused."""
    assert addresses("10.0.0.2 \nfd00::1\n", ["a", "b"]) == {"a": "10.0.0.2", "b": "fd00::1"}
    for printed in ("10.0.0.2\n", "10.0.0.2\n\n", "10.0.0.2\n$(reboot)\n"):
        with pytest.raises(ValueError, match=r".*"):
            addresses(printed, ["a", "b"])


@pytest.mark.parametrize("shell", ["bash", "dash", "busybox sh"])
def test_names_are_added_where_missing(shell: str, tmp_path: Path) -> None:
    """Each name has one line, whatever the engine wrote, with nothing but a shell."""
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 localhost\n10.0.0.2\tweb-01 long-name\n")
    text = names_text({"web-01": "10.0.0.2", "db-01": "10.0.0.3"}).replace("/etc/hosts", str(hosts))
    subprocess.run(
        [*shell.split(), "-c", text],
        check=True,
        env={"PATH": ""},
        executable=shutil.which(shell.split()[0]),
    )
    assert hosts.read_text().splitlines()[1:] == ["10.0.0.2\tweb-01 long-name", "10.0.0.3 db-01"]


def test_owner_lives() -> None:
    """This very process is not gone; its label says the same."""
    owner = Owner.this()
    assert not owner.gone
    assert Owner.parse(str(owner)) == owner


def test_owner_that_is_gone() -> None:
    """A number that another process has by now, or of another start of this machine, is gone."""
    owner = Owner.this()
    assert replace(owner, start="1").gone
    assert replace(owner, boot="other").gone
    child = subprocess.Popen(["true"])
    # It ended, and nobody took note of it yet.
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    started = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19]
    assert replace(owner, pid=child.pid, start=started).gone
    child.wait()


def test_owner_that_cannot_be_seen() -> None:
    """Not seen is not false: what is of another machine or process space may live."""
    owner = Owner.this()
    assert not replace(owner, start="1", space="other").gone
    assert not replace(owner, start="1", boot="other", machine="other").gone


@pytest.mark.parametrize("label", ["", "1:2", "x:1:2:3:4", "1:2:3:4:5:6", "<no value>"])
def test_label_that_is_none(label: str) -> None:
    """A label that is not ours names nobody, and nothing is removed for it."""
    assert Owner.parse(label) is None


def test_image_of_a_host() -> None:
    """A scenario names the lab's images only; the default may be the engine's own name."""
    known = {"debian-12": "debian:12"}
    named = HostSpec(name="web-01", image="debian-12")
    assert image_name(named, known, None) == "debian:12"
    assert image_name(WEB, known, "debian-12") == "debian:12"
    assert image_name(WEB, known, "alpine:3") == "alpine:3"


REFUSED = {
    "unknown": (HostSpec(name="web-01", image="x"), None, "which the lab does not have"),
    "none": (WEB, None, "no image is named for host web-01"),
    "an argument": (WEB, "--privileged", "no name of a container image"),
    "a space": (WEB, "a b", "no name of a container image"),
}


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_image_that_is_refused(case: str) -> None:
    """Bad names are refused in a sentence, before the engine sees them."""
    spec, default, said = REFUSED[case]
    with pytest.raises(DriverUnavailable, match=said):
        image_name(spec, {}, default)


def client(folder: Path, name: str, script: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


async def test_podman_that_is_called_docker(tmp_path: Path) -> None:
    """What answers decides which engine it is, not what it is called."""
    path = client(tmp_path, "docker", "echo podman version 5.0.0")
    engine = await find_engine(str(path))
    assert (engine.kind, engine.version) == ("podman", "podman version 5.0.0")


async def test_client_without_its_daemon(tmp_path: Path) -> None:
    """A client alone is no engine; its own words say why."""
    script = 'case $1 in --version) echo Docker version 28;; *) echo "no daemon" >&2; exit 1;; esac'
    path = client(tmp_path, "docker", script)
    with pytest.raises(DriverUnavailable, match=r"docker does not answer \(no daemon\)"):
        await find_engine(str(path))


COMPLAINTS = {
    "Error: no such image": "no such image",
    "docker: Error response from daemon: no.\nSee 'docker run --help'.": (
        "Error response from daemon: no."
    ),
    "Trying to pull...\nError: unknown flag: --x\nSee 'podman run --help'": "unknown flag: --x",
    "\x1b[31mred": "[31mred",
    "": "",
}


@pytest.mark.parametrize("said", sorted(COMPLAINTS))
async def test_what_went_wrong(tmp_path: Path, said: str) -> None:
    """Of all that a client says, one line that tells what went wrong, fit for a terminal."""
    (tmp_path / "said").write_text(said)
    path = client(tmp_path, "client", f"cat {tmp_path}/said >&2; exit 125")
    reply = await Engine(str(path), "docker", "").ask("run")
    assert (reply.status, reply.good, reply.said) == (125, False, COMPLAINTS[said])


async def test_client_that_says_nothing(tmp_path: Path) -> None:
    """A client that hangs is ended, and that is said; no status is made up."""
    path = client(tmp_path, "client", "sleep 4713; :")
    reply = await Engine(str(path), "docker", "").ask("run", seconds=0.2)
    # What it had started is ended too.
    async with asyncio.timeout(20):
        while subprocess.run(["pgrep", "-f", "sleep 4713"], check=False).returncode == 0:
            await asyncio.sleep(0.05)
    assert (reply.status, reply.said) == (None, "it says nothing for 0.2 s")


async def test_client_that_is_not_there() -> None:
    """A client that cannot be started is an answer too."""
    reply = await Engine("/nosuch/docker", "docker", "").ask("run")
    assert reply.status is None
    assert "/nosuch/docker cannot be started" in reply.said


async def test_no_more_networks(tmp_path: Path) -> None:
    """An engine that has no more networks to give: its words, and what helps."""
    said = "could not find an available, non-overlapping IPv4 address pool among the defaults"
    script = (
        'echo "$*" >> asked; case $1 in --version) echo Docker version 28;; version) echo 28;;'
        f" image) echo sha256:1;; network) [ $2 = rm ] || {{ echo '{said}' >&2; exit 1; }};; esac"
    )
    path = client(tmp_path, "docker", f"cd {tmp_path}; {script}")
    driver = ContainerDriver(DriverContext(tmp_path, {"engine": str(path)}, image="debian:12"))
    with pytest.raises(ProvisionFailed, match="address pool") as caught:
        await driver.provision("run", (WEB, HostSpec(name="db-01")))
    assert "docker network prune" in (caught.value.hint or "")
    asked = (tmp_path / "asked").read_text().splitlines()
    assert any(line.startswith("rm --force") for line in asked)
    assert not [line for line in asked if line.startswith("run")]


def answering(folder: Path, *images: str) -> Path:
    """A docker that answers, and has these images."""
    listed = ";".join(f"echo {image}" for image in images)
    script = f"case $1 in --version) echo Docker version 28;; version) echo 28;; images) {listed};;"
    return client(folder, "docker", f"{script} *) echo $* >>{folder}/asked; exit 1;; esac")


async def test_no_image_is_named(tmp_path: Path) -> None:
    """The engine works; a lab's word and an image are missing, and how to get each is told."""
    path = answering(tmp_path)
    found = await ContainerDriver(DriverContext(tmp_path, {"engine": str(path)})).preflight()
    engine, there, named = found
    assert (engine.good, there.good, named.good) == (True, False, False)
    assert [finding.blocks for finding in found] == [False, False, True]
    assert named.lab_line == "defaults: {image: debian:12}"
    assert f"{path} pull debian:12" in (there.remedy or "")
    assert not (tmp_path / "asked").exists(), "nothing is fetched and no host is made"


async def test_images_that_are_there_are_offered(tmp_path: Path) -> None:
    """The newest with a common name; what is no plain name is not repeated."""
    there = ("'<none>:<none>'", "'x;reboot'", "localhost/mine:1", "alpine:3")
    path = answering(tmp_path, *there)
    driver = ContainerDriver(DriverContext(tmp_path, {"engine": str(path)}))
    _, there_, named = await driver.preflight((WEB,))
    assert (there_.good, there_.detail) == (True, "localhost/mine:1, alpine:3")
    assert (named.lab_line, named.host) == ("defaults: {image: localhost/mine:1}", "web-01")


async def test_a_lab_whose_scenarios_name_its_images(tmp_path: Path) -> None:
    """Where a lab has images and no default, one of them is tried."""
    path = client(
        tmp_path,
        "docker",
        "case $1 in --version) echo Docker version 28;; version) echo 28;; *) exit 1;; esac",
    )
    context = DriverContext(tmp_path, {"engine": str(path)}, images={"d12": "nosuch:9"})
    _, hosts = await ContainerDriver(context).preflight()
    assert "the image nosuch:9 is not there" in hosts.detail
    assert hosts.lab_line is None


@pytest.mark.parametrize("root", [True, False])
@pytest.mark.parametrize("installed", [True, False])
def test_how_an_image_is_made(
    root: bool, installed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One command with all of its steps, also for whoever is not root; the image is his own."""
    monkeypatch.setattr(images, "_SYSTEM", str(tmp_path))
    for name in ("apt-get", *(["debootstrap"] if installed else [])):
        client(tmp_path, name, "")
    monkeypatch.setenv("PATH", str(tmp_path))
    told = images.image_remedy(Engine("/opt/podman", "podman", ""), root=root)
    assert ("apt-get install -y debootstrap && " in told) is not installed
    assert told.count("sudo ") == (0 if root else 2 + (not installed))
    assert told.endswith(" | /opt/podman import - debian:12")
    (tmp_path / "apt-get").unlink()
    told = images.image_remedy(Engine("/opt/podman", "podman", ""), root=root)
    assert told == "/opt/podman pull debian:12"


REMEDIES = {
    "nothing is there": ((), None, "apt-get install -y podman"),
    "docker is wanted": ((), "docker", "apt-get install -y docker.io"),
    "a client without its daemon": (("docker",), None, "systemctl start docker"),
    "one that is broken": (("podman",), None, "podman info"),
}


@pytest.mark.parametrize("case", sorted(REMEDIES))
async def test_how_an_engine_is_got(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One command, by what is there already."""
    there, wanted, remedy = REMEDIES[case]
    for name in there:
        client(tmp_path, name, "exit 1")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DriverUnavailable) as caught:
        await find_engine(wanted)
    assert caught.value.hint == remedy
