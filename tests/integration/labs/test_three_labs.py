"""One scenario file, three labs: the sandbox, containers, machines over SSH. Equal results."""

from __future__ import annotations

import json

from tests.acceptance.program import Cli
from tests.integration.labs.conftest import HOSTS, Labs

AGENTS = ("by-the-book", "wrong-way", "only-claims")
KEPT = ("label", "status", "reason", "vacuous", "match_count", "matches", "fault")


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


def test_equal_results_on_three_labs(cli: Cli, labs: Labs) -> None:
    """Verdict, reasons, matches and output are the same to the letter."""
    verdicts = set()
    for scenario in HOSTS:
        for agent in AGENTS:
            results = {
                name: seen(cli, scenario, agent, labs.get(name, scenario))
                for name in ("sandbox", "container", "ssh")
            }
            assert results["container"] == results["sandbox"], (scenario, agent)
            assert results["ssh"] == results["sandbox"], (scenario, agent)
            verdicts.add(results["sandbox"]["verdict"])
    assert verdicts == {"passed", "failed"}
