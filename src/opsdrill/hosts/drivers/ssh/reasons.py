"""Why a machine cannot be reached, in words that help at night."""

from __future__ import annotations

import errno
import os
import socket

import asyncssh

from opsdrill.hosts import shell_link
from opsdrill.hosts.shell_link import NoAnswer
from opsdrill.model.lab import LabHost


class NoConnection(NoAnswer):
    """There is no connection to a machine, and `reason` says why.

    A refused login is not over in a moment. What is, was tried again for some seconds already.
    """

    again = False


class Refused(Exception):
    """The machine answers, and does not do what is asked; the message says what."""


_ROUTE = {errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ENETDOWN}


def why(error: Exception, host: LabHost) -> NoConnection:
    """The reason behind an exception of a connection attempt.

    Args:
        error: what asyncssh or the system raised.
        host: the machine it was about.
    """
    place = f"{host.address} port {host.port}"
    if isinstance(error, TimeoutError):
        return NoConnection(f"timed out: {place} accepts no connection, or says nothing")
    if isinstance(error, asyncssh.PermissionDenied):
        return _refused(host)
    if isinstance(error, asyncssh.KeyExchangeFailed):
        return NoConnection(
            f"{place} and this side have no common algorithm, or its host key is of another type"
            f" than the known one ({short(error)})",
            passing=False,
        )
    if isinstance(error, asyncssh.ChannelOpenError):
        return NoConnection(f"{host.via} cannot reach {place}: {short(error)}")
    if isinstance(error, socket.gaierror):
        return NoConnection(f"the name {host.address} cannot be resolved: {short(error)}")
    if isinstance(error, ConnectionRefusedError):
        return NoConnection(f"connection refused: nothing listens at {place}")
    if isinstance(error, OSError) and error.errno in _ROUTE:
        return NoConnection(f"no route to {place}: {os.strerror(error.errno or 0)}")
    if isinstance(error, ConnectionResetError | asyncssh.ConnectionLost):
        return NoConnection(f"{place} closed the connection before the login was through")
    return NoConnection(f"no connection to {place}: {short(error)}")


def _refused(host: LabHost) -> NoConnection:
    tried = []
    if host.key is not None:
        tried.append(f"the key {host.key}")
    elif host.password is None:
        tried.append("the keys of the agent and of ~/.ssh")
    if host.password is not None:
        tried.append("the password")
    return NoConnection(
        f"login refused: {host.address} port {host.port} does not let {host.user} in with"
        f" {' and '.join(tried)}",
        passing=False,
        hint="check `user` and `key` in the lab, and the machine's authorized_keys",
    )


def short(error: object) -> str:
    """One short line of an error's text; what a machine sent may be anything."""
    return shell_link.short(str(error) or type(error).__name__)
