"""One scenario file, three labs: the sandbox, containers, machines over SSH. Equal results."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.acceptance.program import Cli
from tests.integration import engines, images, sshd

AGENTS = ("by-the-book", "wrong-way", "only-claims")
HOSTS = {"web-config": ["web-01"], "patch-web-hosts": ["web-01", "web-02", "web-03", "mon-01"]}
KEPT = ("label", "status", "reason", "vacuous", "match_count", "matches", "fault")

pytestmark = pytest.mark.skipif(
    bool(reason := sshd.why_not() or engines.why_not("podman")), reason=str(reason)
)


@pytest.fixture
def cli(tmp_path: Path) -> Cli:
    folder = tmp_path / "work"
    folder.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"}
    return Cli(folder, tmp_path / "home", environment)


@pytest.fixture
def labs(tmp_path: Path) -> Iterator[dict[str, dict[str, object]]]:
    """A lab file's content for each scenario that lasts, and for those whose hosts do not."""
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
        yield found


def seen(cli: Cli, scenario: str, agent: str, lab: dict[str, object]) -> dict[str, object]:
    """What a run's result says, without what names the run and its moment."""
    path = cli.folder / "lab.yaml"
    path.write_text(json.dumps(lab))
    script = f"script:agents/{agent}.yaml"
    done = cli("run", scenario, "--agent", script, "--lab", str(path), "--format", "json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    kept = {key: result[key] for key in ("verdict", "compliance", "remediation", "completion")}
    rules = []
    for rule in result["rules"]:
        answer = rule["answer"] or {}
        output = {key: answer.get(key) for key in ("exit_code", "stdout", "stderr", "shell")}
        rules.append({key: rule[key] for key in KEPT} | output)
    return {**kept, "rules": rules}


def test_equal_results_on_three_labs(cli: Cli, labs: dict[str, dict[str, object]]) -> None:
    """Verdict, reasons, matches and output are the same to the letter."""
    verdicts = set()
    for scenario in HOSTS:
        for agent in AGENTS:
            results = {
                name: seen(cli, scenario, agent, labs.get(name) or labs[f"{name} for {scenario}"])
                for name in ("sandbox", "container", "ssh")
            }
            assert results["container"] == results["sandbox"], (scenario, agent)
            assert results["ssh"] == results["sandbox"], (scenario, agent)
            verdicts.add(results["sandbox"]["verdict"])
    assert verdicts == {"passed", "failed"}
