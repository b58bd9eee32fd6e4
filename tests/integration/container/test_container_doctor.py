"""`opsdrill doctor` where an engine works: what it tells to do is enough to have hosts made."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from tests.acceptance.program import Cli
from tests.integration import images
from tests.integration.engines import Engine

EXAMPLE = "debian:12"


@pytest.fixture
def cli(tmp_path: Path, engine: Engine) -> Cli:
    """The program where this engine is the only one."""
    folder, programs = tmp_path / "work", tmp_path / "programs"
    for path in (folder, programs):
        path.mkdir()
    kind = "podman" if "podman" in engine.ask("--version") else "docker"
    client = programs / kind
    client.write_text(f'#!/bin/sh\nPATH={os.environ["PATH"]} exec {engine.program} "$@"\n')
    client.chmod(0o755)
    environment = {"PATH": str(programs), "HOME": str(folder), "LANG": "C.UTF-8"}
    return Cli(folder, tmp_path / "home", environment)


def container(cli: Cli) -> tuple[str, list[str]]:
    """The state of the driver, and the remedies of what a lab has to say."""
    done = cli("doctor", "--format", "json")
    assert done.stderr == ""
    (found,) = [one for one in json.loads(done.stdout)["drivers"] if one["name"] == "container"]
    unsaid = [finding for finding in found["findings"] if finding["lab_line"]]
    return found["state"], [finding["remedy"] for finding in unsaid]


def test_what_doctor_tells_to_do_is_enough(cli: Cli, engine: Engine) -> None:
    """An image that is there is offered; once the lab names it, a host was made from it."""
    state, (remedy,) = container(cli)
    assert state == "needs-a-lab"
    assert "opsdrill-" in remedy
    subprocess.run(["/bin/sh", "-c", remedy], cwd=cli.folder, check=True)
    assert container(cli) == ("works", [])
    assert engine.ask("ps", "-aq", "--filter=label=opsdrill.run").split() == []


def test_an_image_that_was_made_here(cli: Cli, engine: Engine, tmp_path: Path) -> None:
    """The end of the command that makes one: the engine finds it by the name that a lab says."""
    with images.archive(images.BUSYBOX, tmp_path).open("rb") as archive:
        words = [str(engine.program), "import", "-", EXAMPLE]
        subprocess.run(words, stdin=archive, check=True, env=os.environ)
    try:
        lab = f"driver: container\ndefaults: {{image: '{EXAMPLE}'}}\n"
        (cli.folder / "lab.yaml").write_text(lab)
        assert container(cli) == ("works", [])
    finally:
        engine.ask("rmi", EXAMPLE)
