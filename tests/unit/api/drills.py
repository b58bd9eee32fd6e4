"""A place with a scenario, agents and a lab of scripted hosts, for runs over the API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from opsdrill.app.settings import Settings
from opsdrill.app.wiring import Place

SCENARIO = """
key: drill
title: A drill
tags: [small]
ticket_title: It is broken
hosts: [web-01]
setup: [{run: break}]
ready: [{run: broken?}]
files: [{from: app.conf, to: /etc/app.conf}]
validation:
  - {label: mended, validator: host_state, run: mended?}
  - {label: said so, validator: pattern_match, where: gateway_summary, pattern: mended}
"""
AGENTS = """
agents:
  good: {adapter: script, argument: good.yaml}
  bad: {adapter: script, argument: bad.yaml}
  slow: {adapter: script, argument: slow.yaml}
  shell: {adapter: command, argument: "true"}
"""
GOOD = """
format: opsdrill.script/1
plan: mend it
turns:
  - post: all is mended
    tasks:
      - host: web-01
        description: mend it
        do: [{run: mend}, {run: mended?}, {say: it works}]
resolve: {resolution: success, reasoning: done}
"""
BAD = """
format: opsdrill.script/1
turns:
  - tasks:
      - {host: web-01, description: look at it, do: [{run: look}]}
resolve: {resolution: success, reasoning: looked}
"""
SLOW = """
format: opsdrill.script/1
turns:
  - tasks:
      - {host: web-01, description: wait, do: [{run: look}, {sleep: 30}]}
resolve: {resolution: success, reasoning: done}
"""
ANSWERS = {
    "format": "opsdrill.fake/1",
    "answers": [
        {"run": "mended?", "after": "mend", "exit_code": 0, "stdout": "yes\n"},
        {"run": "mended?", "exit_code": 1},
        {"run": "look", "exit_code": 0, "stdout": "x" * 20_000},
    ],
    "otherwise": {"exit_code": 0},
}
OVER = ("done", "cancelled", "interrupted")
RUNS = "/api/v1/runs"


def small_place(folder: Path) -> Place:
    """A place below a folder: `drill`, by good, bad, slow or shell, in the lab `practice`."""
    home, work = folder / "home", folder / "work"
    drill, labs = work / "scenarios" / "drill", home / "labs"
    for each in (drill, labs):
        each.mkdir(parents=True, exist_ok=True)
    (drill / "scenario.yaml").write_text(SCENARIO)
    (drill / "app.conf").write_text("port = 80\n")
    (work / "agents.yaml").write_text(AGENTS)
    for name, script in (("good", GOOD), ("bad", BAD), ("slow", SLOW)):
        (work / f"{name}.yaml").write_text(script)
    for name, answers in (("practice", ANSWERS), ("broken", {**ANSWERS, "silent": ["web-01"]})):
        (labs / name).mkdir(exist_ok=True)
        (labs / name / "answers.json").write_text(json.dumps(answers))
        (labs / name / "lab.yaml").write_text("driver: fake\noptions: {answers: answers.json}\n")
    return Place(home, work, Settings.model_validate({"agent-config": "agents.yaml"}))


def order(*agents: str, **more: object) -> dict[str, Any]:
    """A body that starts runs of the drill."""
    return {"scenarios": ["drill"], "agents": list(agents or ["good"]), "lab": "practice", **more}


async def started(client: httpx.AsyncClient, *agents: str, **more: object) -> list[str]:
    """The ids of new runs."""
    answer = await client.post(RUNS, json=order(*agents, **more))
    assert answer.status_code == 202, answer.text
    return [run["id"] for run in answer.json()["runs"]]


async def over(client: httpx.AsyncClient, runs: Sequence[str]) -> list[dict[str, Any]]:
    """The runs, once all of them are over."""
    found = []
    async with asyncio.timeout(60):
        for run in runs:
            while True:
                told = (await client.get(f"{RUNS}/{run}")).json()
                if told["state"] in OVER:
                    break
                await asyncio.sleep(0.02)
            found.append(told)
    return found


async def working(client: httpx.AsyncClient, run: str, phase: str = "execute") -> None:
    """Wait until a run is in a phase."""
    async with asyncio.timeout(60):
        while True:
            told = (await client.get(f"{RUNS}/{run}")).json()
            if any(one["name"] == phase for one in told["phases"]):
                return
            await asyncio.sleep(0.02)
