"""Ansible's ways to ask: playbooks of `raw` or `command` tasks, one each or in a loop."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from benchmarks.hosts_peers.task import Task


@dataclass(frozen=True)
class Strategy:
    """How a playbook asks.

    Attributes:
        module: `raw` needs nothing on the host, `command` Python.
        strategy: `linear` waits for all hosts after every task.
        loop: all checks are one task.
    """

    module: Literal["raw", "command"]
    strategy: Literal["linear", "free"]
    loop: bool = False

    @property
    def name(self) -> str:
        return f"{self.module} {self.strategy}{' loop' if self.loop else ''}"

    def tasks(self, task: Task) -> int:
        return 1 if self.loop else len(task.checks)


STRATEGIES = (
    Strategy("raw", "linear"),
    Strategy("raw", "free"),
    Strategy("raw", "free", loop=True),
    Strategy("command", "free"),
)


def write_ansible(strategy: Strategy, task: Task, folder: Path) -> Path:
    """Write configuration, inventory and playbook; the path of the playbook."""
    (folder / "ansible.cfg").write_text(
        "[defaults]\nhost_key_checking = False\nretry_files_enabled = False\n"
        f"forks = {len(task.hosts)}\ngathering = explicit\ninterpreter_python = /usr/bin/python3\n"
        f"[ssh_connection]\npipelining = True\nusetty = False\ncontrol_path_dir = {folder}/cp\n"
        "ssh_args = -F none -o ControlMaster=auto -o ControlPersist=60s"
        " -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR\n"
    )
    hosts = {
        name: {
            "ansible_host": address,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": task.key,
        }
        for name, address in task.hosts.items()
    }
    (folder / "inventory.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    play = {
        "hosts": "all",
        "gather_facts": False,
        "strategy": strategy.strategy,
        "tasks": _loop(strategy, task) if strategy.loop else _each(strategy, task),
    }
    playbook = folder / f"{strategy.name.replace(' ', '-')}.json"
    playbook.write_text(json.dumps([play]))
    return playbook


def _each(strategy: Strategy, task: Task) -> list[dict[str, object]]:
    return [
        {
            "ansible.builtin." + strategy.module: _asked(strategy, check.run),
            "register": "r",
            "failed_when": f"r.rc != {check.status} or r.stdout | trim != '{check.output.strip()}'",
        }
        for check in task.checks
    ]


def _loop(strategy: Strategy, task: Task) -> list[dict[str, object]]:
    items = [
        {"run": check.run, "status": check.status, "output": check.output.strip()}
        for check in task.checks
    ]
    return [
        {
            "ansible.builtin." + strategy.module: _asked(strategy, "{{ item.run }}"),
            "register": "r",
            "failed_when": "r.rc != item.status or r.stdout | trim != item.output",
            "loop": items,
            "loop_control": {"label": ""},
        }
    ]


def _asked(strategy: Strategy, run: str) -> object:
    # `command` starts a program without a shell, so that a shell is the program.
    return {"argv": ["sh", "-c", run]} if strategy.module == "command" else run
