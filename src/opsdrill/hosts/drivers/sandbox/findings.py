"""What works on this machine and how to get the rest, from having tried to make a host."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from opsdrill.hosts.driver import Finding
from opsdrill.hosts.drivers.sandbox.facts import limits
from opsdrill.hosts.drivers.sandbox.options import Options

_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")
_SYSCTL = Path("/proc/sys")


def findings(notes: Mapping[str, str] | None, options: Options, trouble: str = "") -> list[Finding]:
    """The findings after a try.

    Args:
        notes: what the fork server can do here; None when no host could be made.
        options: the lab's options.
        trouble: why none could be made.
    """
    if notes is None:
        return [
            Finding("sandbox hosts", False, trouble, _remedy(trouble), blocks=True),
        ]
    words = limits(options, notes)
    root = notes["root"] == "yes"
    return [
        Finding("sandbox hosts", True, "as root" if root else "as an ordinary user"),
        Finding(
            "programs of a host (/usr)",
            root,
            words["usr"],
            None if root else "run as root",
        ),
        Finding(
            "users other than root",
            notes["users"] == "yes",
            words["users"],
            None if notes["users"] == "yes" else "apt-get install uidmap",
        ),
        Finding(
            "processes",
            notes["pids"] == "yes" or not root,
            words["processes"],
            None if notes["pids"] == "yes" or not root else "mount the pids control group",
        ),
        Finding(
            "memory",
            notes["memory"] == "yes",
            words["memory"],
            None if notes["memory"] == "yes" else "run as root with control groups",
        ),
        Finding("system calls", notes["filter"] == "yes", words["system calls"]),
        Finding("systemd", False, "a sandbox host has none", "use `--lab container`"),
    ]


def network_finding(trouble: str, *, blocks: bool = False) -> Finding:
    """Whether hosts of one run can be connected.

    Args:
        trouble: why they cannot; empty when they can.
        blocks: the run needs it.
    """
    what = "hosts of a run reach each other by name"
    if not trouble:
        return Finding(what, True)
    return Finding(what, False, trouble, "modprobe -a veth bridge", blocks=blocks)


def _remedy(trouble: str) -> str:
    """The one step that mends it, as far as this machine's settings tell."""
    if _setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
        return "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or run as root"
    if _setting("kernel/unprivileged_userns_clone") == "0":
        return "sysctl kernel.unprivileged_userns_clone=1, or run as root"
    if _setting("user/max_user_namespaces") == "0":
        return "sysctl user.max_user_namespaces=10000"
    if "mount proc" in trouble:
        return "/proc is partly masked, as in a container: start it with --privileged"
    if "overlay" in trouble:
        return "modprobe overlay, or run as an ordinary user"
    if "not permitted" in trouble and any(Path(name).exists() for name in _CONTAINER_MARKS):
        return "start this container with --privileged, or use `--lab container`"
    return "use `--lab container`"


def _setting(name: str) -> str:
    try:
        return (_SYSCTL / name).read_text(encoding="ascii").strip()
    except OSError:
        return ""
