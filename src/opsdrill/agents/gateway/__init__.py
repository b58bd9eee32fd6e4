"""The recording gateway: an SSH server in front of a run's hosts, which keeps what passes it."""

from opsdrill.agents.gateway.gateway import Gateway

__all__ = ["Gateway"]
