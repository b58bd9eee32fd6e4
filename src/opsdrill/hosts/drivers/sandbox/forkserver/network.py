"""The network of a run: a bridge that belongs to no host and leads nowhere else."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pyroute2 import IPRoute

from opsdrill.hosts.drivers.sandbox.forkserver import kernel

PREFIX_LENGTH = 24
_BRIDGE = "bridge"


def connect(hosts: Mapping[str, tuple[int, str]]) -> int:
    """Join hosts by their `eth0`. This process ends up in the last one's network namespace.

    Args:
        hosts: host id -> (pid of its first process as seen here, address).

    Returns:
        A file descriptor of the bridge's network namespace; the network lives as long as it.
    """
    spaces = {host: os.open(f"/proc/{pid}/ns/net", os.O_RDONLY) for host, (pid, _) in hosts.items()}
    kernel.unshare(kernel.CLONE_NEWNET)
    hub = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    with IPRoute() as route:
        route.link("add", ifname=_BRIDGE, kind="bridge")
        bridge = route.link_lookup(ifname=_BRIDGE)[0]
        route.link("set", index=bridge, state="up")
        for number, space in enumerate(spaces.values()):
            port = f"host{number}"
            peer = {"ifname": "eth0", "net_ns_fd": space}
            route.link("add", ifname=port, kind="veth", peer=peer)
            route.link("set", index=route.link_lookup(ifname=port)[0], master=bridge, state="up")
    for host, (_, address) in hosts.items():
        kernel.setns(spaces[host], kernel.CLONE_NEWNET)
        with IPRoute() as route:
            card = route.link_lookup(ifname="eth0")[0]
            route.addr("add", index=card, address=address, prefixlen=PREFIX_LENGTH)
            route.link("set", index=card, state="up")
    return hub
