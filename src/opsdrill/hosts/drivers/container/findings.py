"""What works on this machine and how to get the rest, from having tried to make a host."""

from __future__ import annotations

from opsdrill.errors import OpsDrillError, ProvisionFailed
from opsdrill.hosts.driver import Finding
from opsdrill.hosts.drivers.container.engine import Engine
from opsdrill.hosts.drivers.container.options import Options
from opsdrill.model.host import HostFacts


def engine_finding(engine: Engine | None, error: OpsDrillError | None) -> Finding:
    """Whether an engine answers."""
    if engine is not None:
        return Finding("container engine", True, f"{engine.version}, {engine.program}")
    remedy = error.hint if error is not None else None
    return Finding("container engine", False, str(error), remedy, blocks=True)


def host_findings(host: str | None, facts: HostFacts, options: Options) -> list[Finding]:
    """A host that could be made.

    Args:
        host: its name in the scenario; None: one made to try.
        facts: what it is made of.
        options: the lab's options.
    """
    image = facts.limits["image"]
    found = [
        Finding("container hosts", True, f"{facts.distribution or 'unknown'}, {image}", host=host),
        _systemd(options, host),
        Finding("hosts see", True, facts.limits["network"], host=host),
    ]
    if "time limits" in facts.limits:
        found.append(
            Finding("time limits", False, facts.limits["time limits"], "use an image with bash",
                    host=host)
        )  # fmt: skip
    return found


def trouble_finding(
    host: str | None, engine: Engine, error: OpsDrillError, options: Options
) -> Finding:
    """A host that could not be made."""
    remedy = error.hint
    if options.systemd and isinstance(error, ProvisionFailed) and "fetched" not in str(error):
        remedy = _SYSTEMD_REMEDY[engine.kind]
    return Finding("container hosts", False, str(error), remedy, blocks=True, host=host)


_SYSTEMD_REMEDY = {
    "docker": (
        "an image with systemd in it, and `options: {engine: podman}`; or, for agents that you"
        " trust, `options: {run_options: --privileged}`"
    ),
    "podman": "an image with systemd in it, on a machine with control groups version 2",
}


def _systemd(options: Options, host: str | None) -> Finding:
    if options.systemd:
        return Finding("systemd", True, "runs as the first process", host=host)
    return Finding(
        "systemd",
        False,
        "not asked for",
        "for images that have it: `options: {systemd: true}` in lab.yaml",
        host=host,
    )
