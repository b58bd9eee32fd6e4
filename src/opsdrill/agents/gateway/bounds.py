"""How much a client may ask of the gateway."""

from __future__ import annotations

CONNECTIONS = 256
"""Connections at once, of all hosts together."""
STRANGERS = 128
"""Connections at once that are not logged in; for one more the oldest of them has to go."""
CHANNELS = 64
"""Channels at once of one connection."""
SESSIONS = 512
"""Channels at once of all connections together."""
LOGIN_SECONDS = 30.0
"""Seconds in which a connection must have introduced itself and logged in."""
LOGIN_TRIES = 12
"""Requests to log in of one connection."""
REFUSALS = 100
"""Refused requests of one connection that are recorded; with one more it ends."""
WINDOW = 512 * 1024
"""Bytes that a channel takes before they are passed on."""
WAITING = 64 * 1024
"""Bytes that wait to be passed on after which no more are taken."""
COMMAND = 256 * 1024
"""Bytes of a command at most; about what a packet may have."""
TYPED = 8 * 1024 * 1024
"""Bytes that are typed into one shell, or that a script on its standard input has, at most."""
LINES = 50_000
"""Lines likewise."""
ENVIRONMENT = 32
"""Variables of a session; each of `VARIABLE` bytes at most."""
VARIABLE = 1024
REKEY_BYTES = 1 << 30
"""Bytes after which a connection gets new keys."""
CALLS = 100_000
"""Calls of one job; no more are recorded, nor passed on."""
RECORDED = 64 * 1024 * 1024
"""Characters of all commands and paths of one job, likewise."""
