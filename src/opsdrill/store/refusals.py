"""Why a database cannot be used, in words: for SQLite and for PostgreSQL."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from opsdrill.errors import StoreError

WAIT_SECONDS = 30
"""How long a call waits for a lock that another process has, or for a free connection."""

Reason = tuple[str, str]
"""What is wrong, and what to do."""

_LOCKED: Reason = (
    f"another process kept it locked for {WAIT_SECONDS} s",
    "end that process, or wait for it",
)
_SQLITE: dict[str, Reason] = {
    "SQLITE_FULL": ("the disk is full", "make room, then go on"),
    "SQLITE_READONLY": ("it is read-only here", "choose a folder that you can write with --home"),
    "SQLITE_CANTOPEN": ("it cannot be opened", "does the folder exist, and may you write in it?"),
    "SQLITE_PERM": ("it may not be opened", "choose a folder that you can write with --home"),
    "SQLITE_BUSY": _LOCKED,
    "SQLITE_CORRUPT": ("it is damaged", "restore it from a backup, or choose another --home"),
    "SQLITE_NOTADB": ("it is no database", "move that file away, or choose another --home"),
    "SQLITE_IOERR": ("reading or writing the disk failed", "is the disk full or broken?"),
}

_PASSWORD: Reason = (
    "the server takes neither this user nor this password",
    "check user and password in the URL of the database",
)
_MISSING: Reason = ("the server has no such database", "make it with `createdb`, encoded in UTF8")
_CROWDED: Reason = (
    "the server has too many connections",
    "raise its max_connections, or run fewer processes on this store",
)
_GONE: Reason = ("the server ended the connection", "try it again; the store connects anew")
_STARTS: Reason = ("the server is starting or stopping", "try it again in a moment")
_RIGHTS: Reason = (
    "the user may not do that there",
    "give the user of the URL all rights on the database and its tables",
)
# By the first letters of SQLSTATE, the longer ones first: PostgreSQL's manual, appendix A.
_POSTGRESQL: dict[str, Reason] = {
    "28": _PASSWORD,
    "3D": _MISSING,
    "25006": ("the database is read-only", "connect to the server that takes changes"),
    "42501": _RIGHTS,
    "53100": ("the server's disk is full", "make room there, then go on"),
    "53200": ("the server is out of memory", "free some of it there, then go on"),
    "53300": _CROWDED,
    "55P03": _LOCKED,
    "57P03": _STARTS,
    "57P": _GONE,
    "08": _GONE,
    "40": ("two processes stood in each other's way", "try it again"),
    "57014": ("the server ended a query that took too long", "try it again"),
    "22P05": ("the database is not encoded in UTF8", "make it anew with `createdb -E UTF8`"),
    "58030": ("the server's disk failed", "is its disk full or broken?"),
    "XX00": ("the server found the database damaged", "restore it from a backup"),
}
# While it connects, the client's library tells only words (patterns of `re`), the server's in the
# server's language; what is not among them is shown as it is.
_CONNECTING: dict[str, Reason] = {
    "authentication failed": _PASSWORD,
    "no password supplied": _PASSWORD,
    r"no pg_hba\.conf entry": _PASSWORD,
    'role ".*" (does not exist|is not permitted to log in)': _PASSWORD,
    'database ".*" does not exist': _MISSING,
    "permission denied for database": _RIGHTS,
    "too many (clients|connections)": _CROWDED,
    "connection slots are reserved": _CROWDED,
    "system is starting up": _STARTS,
    "system is shutting down": _STARTS,
    "in recovery mode": _STARTS,
    "Connection refused": ("no server answers there", "is it running, and is the address right?"),
    "No such file or directory": (
        "no server answers there",
        "is it running, and is the folder of its socket right?",
    ),
    "could not translate host name": ("there is no such server", "is the host's name right?"),
    "failed to resolve host": ("there is no such server", "is the host's name right?"),
    "timeout expired": ("the server does not answer in time", "is the address right?"),
    "server closed the connection": _GONE,
}


def explain(error: Exception, where: str) -> StoreError:
    """The error as a sentence; `where` is the database without a secret."""
    cause: Any = error.orig if isinstance(error, DBAPIError) else error
    found = _reason(error, cause)
    if found is not None:
        return StoreError(f"the store {where} cannot be used: {found[0]}", hint=found[1])
    said = " ".join(str(cause).split())[:300]
    return StoreError(f"the store {where} cannot be used: {said}")


def _reason(error: Exception, cause: Any) -> Reason | None:
    if isinstance(error, PoolTimeout):
        return (
            f"all connections of this process were busy for {WAIT_SECONDS} s",
            "ask for less at once",
        )
    if name := str(getattr(cause, "sqlite_errorname", None) or ""):
        return _first(_SQLITE, name)
    if state := str(getattr(cause, "sqlstate", None) or ""):
        return _first(_POSTGRESQL, state)
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return _GONE
    words = str(cause)
    return next((reason for part, reason in _CONNECTING.items() if re.search(part, words)), None)


def _first(reasons: dict[str, Reason], code: str) -> Reason | None:
    matching = [prefix for prefix in reasons if code.startswith(prefix)]
    return reasons[max(matching, key=len)] if matching else None
