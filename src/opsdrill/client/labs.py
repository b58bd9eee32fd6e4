"""What runs can be started with: agents and labs; the health of hosts, and leases."""

from __future__ import annotations

from opsdrill.client.call import LONG_SECONDS, Call, address, get, model
from opsdrill.wire.labs import AgentList, LabHealth, LabList, LeaseList


def list_agents() -> Call[AgentList]:
    """The agents that runs can be started with."""
    return get(address("/agents"), model(AgentList))


def list_labs() -> Call[LabList]:
    """The labs that runs can be started in."""
    return get(address("/labs"), model(LabList))


def check_lab(lab: str) -> Call[LabHealth]:
    """Whether a lab can give hosts, found out just now by trying."""
    path = address("/labs/{}/health", lab)
    return Call("GET", path, model(LabHealth), again=True, seconds=LONG_SECONDS)


def list_leases() -> Call[LeaseList]:
    """Which runs hold lasting hosts, and which wait for them."""
    return get(address("/leases"), model(LeaseList))
