"""What works on this machine and how to get the rest, from having tried to make a host."""

from __future__ import annotations

from collections.abc import Sequence

from opsdrill.errors import OpsDrillError, ProvisionFailed
from opsdrill.hosts.driver import Finding
from opsdrill.hosts.drivers.container.engine import Engine
from opsdrill.hosts.drivers.container.images import EXAMPLE, lab_line
from opsdrill.hosts.drivers.container.options import Options
from opsdrill.model.host import HostFacts

_LISTED = 5
"""Images that are named to people."""


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


def image_findings(host: str | None, there: Sequence[str], remedy: str) -> list[Finding]:
    """No image is named: nothing is broken, and nothing was tried.

    Args:
        host: its name in the scenario; None: nobody asks for a host yet.
        there: images that the engine has.
        remedy: how to get one.
    """
    line = lab_line(there[0] if there else EXAMPLE)
    found = [
        Finding(
            "image of the hosts",
            False,
            "no lab names one, so none was tried",
            f"name one in lab.yaml: `{line}`",
            blocks=True,
            host=host,
            lab_line=line,
        )
    ]
    if there:
        more = f" and {len(there) - _LISTED} more" if len(there) > _LISTED else ""
        listed = ", ".join(there[:_LISTED])
        return [Finding("images on this machine", True, f"{listed}{more}", host=host), *found]
    fetched = "none; one that a lab names is fetched when it is first used"
    return [Finding("images on this machine", False, fetched, remedy, host=host), *found]


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
