"""The arguments that hosts are made with. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

from opsdrill.hosts.command import SEARCH_PATH
from opsdrill.hosts.drivers.container.engine import Kind
from opsdrill.hosts.drivers.container.options import Options
from opsdrill.hosts.drivers.container.owner import LABEL, RUN_LABEL

FLEET_LABEL = "opsdrill.fleet"

# Takes note of the end of orphans, as a first process must, with nothing but a shell; its child
# stands still for ever, takes no time, and has no name that a check would look for.
FIRST_PROCESS = "while :;do /bin/sh -c 'kill -STOP $$'& wait;done"


@dataclass(frozen=True, slots=True)
class Names:
    """What the parts of one run are called.

    Attributes:
        fleet: letters and digits that no other run has.
        run: the run's id.
        owner: this process; see `opsdrill.hosts.drivers.container.owner`.
    """

    fleet: str
    run: str
    owner: str

    @property
    def network(self) -> str:
        return f"opsdrill-{self.fleet}"

    def container(self, host: str) -> str:
        return f"opsdrill-{self.fleet}-{host}"

    @property
    def labels(self) -> tuple[str, ...]:
        return (
            f"--label={LABEL}={self.owner}",
            f"--label={RUN_LABEL}={self.run}",
            f"--label={FLEET_LABEL}={self.fleet}",
        )


def network_arguments(names: Names, options: Options) -> tuple[str, ...]:
    """The engine's arguments that make the network of a run."""
    inside = () if options.internet else ("--internal",)
    return ("network", "create", *inside, *names.labels, names.network)


def run_arguments(
    kind: Kind, names: Names, host: str, image: str, options: Options, *, network: bool
) -> tuple[str, ...]:
    """The engine's arguments that make one host.

    Args:
        kind: the engine.
        names: of the run.
        host: its name.
        image: the id of its image.
        options: the lab's options.
        network: it is on the network of its run.
    """
    return (
        "run",
        "--detach",
        f"--name={names.container(host)}",
        f"--hostname={host}",
        f"--network={names.network if network else 'none'}",
        *names.labels,
        "--user=0",
        "--no-healthcheck",
        *(_INIT[kind] if options.systemd else ("--entrypoint=/bin/sh",)),
        *options.run_options,
        image,
        *(() if options.systemd else ("-c", FIRST_PROCESS)),
    )


_INIT: Mapping[Kind, tuple[str, ...]] = {
    "docker": (
        "--entrypoint=/sbin/init",
        "--cgroupns=private",
        "--tmpfs=/run",
        "--tmpfs=/run/lock",
        "--stop-signal=SIGRTMIN+3",
        "--env=container=docker",
    ),
    "podman": ("--entrypoint=/sbin/init", "--systemd=always"),
}


def exec_arguments(container: str, *command: str, terminal: bool = False) -> tuple[str, ...]:
    """The engine's arguments that start a program of a host as root, with standard input.

    Args:
        container: the host's.
        command: the program.
        terminal: the program has one.
    """
    path = f"--env=PATH={SEARCH_PATH}"
    screen = () if not terminal else ("--tty", f"--detach-keys={_NO_KEYS}")
    return ("exec", "--interactive", *screen, "--user=0", "--workdir=/", path, container, *command)


# Keys that would part the client from the program (by themselves Ctrl-P Ctrl-Q): there must be
# some, so more than anybody types.
_NO_KEYS = ",".join(["ctrl-^", "ctrl-_"] * 8)


def remove_arguments(kind: Kind, *containers: str) -> tuple[str, ...]:
    """The engine's arguments that end containers and remove them with their volumes."""
    at_once = ("--time=0",) if kind == "podman" else ()
    return ("rm", "--force", "--volumes", *at_once, *containers)


def addresses(printed: str, hosts: list[str]) -> dict[str, str]:
    """The hosts' addresses, from one line of the engine for each.

    Raises:
        ValueError: a host has none.
    """
    lines = printed.splitlines()
    if len(lines) != len(hosts):
        raise ValueError("the engine tells of fewer hosts")
    found = {}
    for host, line in zip(hosts, lines, strict=True):
        if not line.split():
            raise ValueError(f"{host} has no address")
        found[host] = str(ipaddress.ip_address(line.split()[0]))
    return found


def names_text(known: Mapping[str, str]) -> str:
    """Text for `ask_line` that writes names into a host's /etc/hosts, where they are missing.

    It takes no program but the shell. The file is the engine's own, and counts as no change.
    """
    add = (
        'a(){ while read -r i r;do case " $r " in *" $2 "*)return;;esac;done</etc/hosts;'
        'echo "$1 $2">>/etc/hosts;}'
    )
    return ";".join((add, *(f"a {address} {host}" for host, address in known.items())))
