"""`opsdrill hosts check` on a machine with a real sshd: who answers, who does not, and why."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.program import Cli
from tests.integration.sshd import SSHD, own_sshd

from opsdrill.model.lab import LabHost

PROGRAM = Path(__file__).parent / "lasting.py"
ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(
    not Path(SSHD).exists(), reason="takes the Debian package openssh-server"
)


class SshCli(Cli):
    def command(self, *words: str) -> list[str]:
        return [sys.executable, str(PROGRAM), "--home", str(self.home), *words]

    def lab(self, text: str) -> str:
        path = self.folder / "lab.yaml"
        path.write_text(text)
        return str(path)


@pytest.fixture
def cli(tmp_path: Path) -> SshCli:
    folder = tmp_path / "work"
    folder.mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
    }
    return SshCli(folder, tmp_path / "home", environment)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[LabHost]:
    folder = tmp_path / "machine"
    folder.mkdir()
    with own_sshd(folder) as found:
        yield found


def defaults(machine: LabHost) -> str:
    return (
        f"driver: ssh\ndefaults: {{port: {machine.port}, user: {machine.user}, key: {machine.key}}}"
    )


def test_a_table_tells_host_by_host(cli: SshCli, machine: LabHost) -> None:
    known = str(machine.known_host).strip()
    cli.lab(
        f"{defaults(machine)}\nhosts: {{web-01: {{address: 127.0.0.1, known_host: {known}}}}}\n"
    )
    done = cli("hosts", "check")
    assert done.returncode == 0, done.stderr + done.stdout
    header, row = done.stdout.splitlines()[:2]
    assert header.split() == [
        "HOST", "ADDRESS", "ANSWERS", "CONNECTION", "LOGIN", "SHELL", "CLOCK", "MISSING",
    ]  # fmt: skip
    assert row.startswith(f"web-01  {machine.user}@127.0.0.1:{machine.port}  yes")
    assert "as here" in row


def test_a_host_that_does_not_answer_exits_with_3_and_says_why(
    cli: SshCli, machine: LabHost
) -> None:
    """A host whose key nobody knows is not talked to, beside one that answers."""
    known = str(machine.known_host).strip()
    cli.lab(
        f"{defaults(machine)}\nhosts:\n"
        f"  web-01: {{address: 127.0.0.1, known_host: {known}}}\n"
        "  strange: {address: 127.0.0.1}\n"
    )
    done = cli("hosts", "check")
    assert done.returncode == 3, done.stderr
    assert "strange: connection: host key not known" in done.stdout
    assert f"known_host: {' '.join(known.split()[:2])}" in done.stdout
    rows = json.loads(cli("hosts", "check", "--format", "json").stdout)["hosts"]
    assert {row["name"]: row["answers"] for row in rows} == {"web-01": True, "strange": False}


def test_a_secret_that_cannot_be_had_is_one_sentence(cli: SshCli) -> None:
    cli.lab("driver: ssh\nhosts: {web-01: {password: PW}}\nsecrets: {PW: {env: NOT_SET_HERE}}")
    done = cli("hosts", "check")
    assert done.returncode == 2
    assert done.stderr == (
        "error: the secret 'PW' cannot be had: the environment variable NOT_SET_HERE is not set\n"
    )


def test_a_password_from_a_command_is_shown_nowhere_and_stored_nowhere(
    cli: SshCli, machine: LabHost
) -> None:
    """The reference is kept with the run; the value never is."""
    (cli.folder / "pw").write_text("hunter2-" + "x" * 8)
    (cli.folder / "pw").chmod(0o600)
    known = str(machine.known_host).strip()
    cli.lab(
        f"{defaults(machine)}\n"
        f"hosts: {{web-01: {{address: 127.0.0.1, known_host: {known}, password: PW}}}}\n"
        "secrets: {PW: {command: [cat, pw]}}\n"
    )
    scenario = cli.folder / "scenario.yaml"
    scenario.write_text(
        "key: look\ntitle: t\nticket_title: t\nhosts: [web-01]\nreference: [{run: 'true'}]\n"
        "validation: [{label: up, validator: host_state, run: 'true'}]\n"
    )
    done = cli("run", str(scenario), "--agent", "reference")
    assert done.returncode == 0, done.stderr + done.stdout
    for folder in (cli.home,):
        for path in folder.rglob("*"):
            if path.is_file():
                assert b"hunter2" not in path.read_bytes(), path
    assert "hunter2" not in done.stdout + done.stderr
