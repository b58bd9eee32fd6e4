"""Users and groups as the host's own `/etc/passwd` and `/etc/group` say, which may be anything."""

from __future__ import annotations

import os
from dataclasses import dataclass

_LIMIT = 1 << 20
_MAX_ID = 4294967294


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    uid: int
    gid: int
    home: str
    groups: tuple[int, ...]


class NoAccount(Exception):
    """The host has no such user or group; the message says so."""


def user(name: str) -> Account:
    """A user of the host that this process is in.

    `root` is there in any case: a host without a readable `/etc/passwd` still has user 0.

    Raises:
        NoAccount: nobody of that name.
    """
    for fields in _lines("/etc/passwd", 7):
        uid, gid = _number(fields[2]), _number(fields[3])
        if fields[0] == name and uid is not None and gid is not None:
            return Account(name, uid, gid, fields[5] or "/", _groups(name, gid))
    if name == "root":
        return Account("root", 0, 0, "/root", (0,))
    raise NoAccount(f"there is no user {name} on this host")


def owner(text: str) -> tuple[int, int]:
    """User and group id of `user` or `user:group`.

    Raises:
        NoAccount: nobody of that name.
    """
    name, _, group = text.partition(":")
    account = user(name)
    if not group:
        return account.uid, account.gid
    for fields in _lines("/etc/group", 3):
        gid = _number(fields[2])
        if fields[0] == group and gid is not None:
            return account.uid, gid
    raise NoAccount(f"there is no group {group} on this host")


def names(path: str) -> dict[int, str]:
    """The names of users or groups by number, from such a file of the host."""
    found: dict[int, str] = {}
    for fields in _lines(path, 3):
        number = _number(fields[2])
        if number is not None:
            found.setdefault(number, fields[0])
    return found


def _groups(name: str, gid: int) -> tuple[int, ...]:
    found = [gid]
    for fields in _lines("/etc/group", 4):
        number = _number(fields[2])
        if number is not None and name in fields[3].split(",") and number not in found:
            found.append(number)
    return tuple(found[:64])


def _lines(path: str, fields: int) -> list[list[str]]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        text = os.read(fd, _LIMIT).decode(errors="replace")
    except OSError:
        return []
    finally:
        os.close(fd)
    split = (line.split(":") for line in text.split("\n"))
    return [parts for parts in split if len(parts) >= fields]


def _number(text: str) -> int | None:
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        return None
    return int(text) if int(text) <= _MAX_ID else None
