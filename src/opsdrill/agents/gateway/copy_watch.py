"""The files that `scp` (its old protocol) and `rsync` write by way of a command."""

# ruff: noqa: ARG002  (signatures of others)
from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable

from opsdrill.agents.gateway.watch import CommandWatch
from opsdrill.agents.gateway.witness import Call, Witness
from opsdrill.hosts.session import Stream
from opsdrill.model.job import Outcome

_LINE = 8192
"""Bytes of a line of the protocol at most."""
_DEPTH = 128
"""Folders in folders at most."""
_ENTRY = re.compile(rb"([CD])[0-7]{4,6} (\d{1,19}) ([^/\n\0]+)\n")
_RSYNC = re.compile(r"(?<![\w.-])rsync\s+--server(?!\S)")
_SCP = re.compile(r"(?<![\w.-])scp(?:\s+-[a-z]+)*?\s+-[a-z]*([tf])[a-z]*(?!\S)")
_OPTIONS = frozenset("vrpdt")
_UNTOLD = "files were copied by {} and cannot all be told by name"


def scp_target(command: str) -> str | None:
    """Where the far side of an `scp` writes to.

    None: the command is no such thing, or the shell makes another word of its target.
    """
    words = _words(command)
    if words is None or len(words) < 3 or words[0].rpartition("/")[2] != "scp":
        return None
    options = [word for word in words[1:-1] if word != "--"]
    letters = "".join(word[1:] for word in options)
    if any(not word.startswith("-") or word == "-" for word in options):
        return None
    if "t" not in letters or not _OPTIONS.issuperset(letters):
        return None
    return words[-1]


def receives_rsync(command: str) -> bool:
    """It is the far side of an `rsync` that writes files there, whatever stands before it."""
    return _RSYNC.search(command) is not None and "--sender" not in command.split()


def receives_scp(command: str) -> bool:
    """It is the far side of an `scp` that writes files there."""
    return (found := _SCP.search(command)) is not None and "t" in found[1]


def copies(command: str) -> bool:
    """It speaks the protocol of scp or of rsync, in either direction, so its output is none."""
    return _RSYNC.search(command) is not None or _SCP.search(command) is not None


def _words(command: str) -> list[str] | None:
    """The words of a command; None where a shell would make something else of them."""
    if re.search(r"[$`*?\[\]{}~;&|<>()#!\n]", command):
        return None
    try:
        return shlex.split(command)
    except ValueError:
        return None


class RsyncWatch(CommandWatch):
    """An rsync that writes: the command tells the folder, nothing tells the files."""

    def begin(self) -> None:
        super().begin()
        self._witness.gap(("write_file", "update_file"), _UNTOLD.format("rsync"))


class ScpWatch(CommandWatch):
    """An scp that writes: each file by its name.

    Args:
        target: where it writes to; None: that cannot be told.
        is_folder: asks the host whether the target is a folder.
    """

    def __init__(
        self,
        witness: Witness,
        host: str,
        user: str,
        command: str,
        *,
        target: str | None,
        is_folder: Callable[[str], Awaitable[bool]],
    ) -> None:
        super().__init__(witness, host, user, command, keeps=False)
        self._is_folder = is_folder
        self._target = target
        self._below: bool | None = None
        self._folders: list[str] = []
        self._line = bytearray()
        self._content = 0
        self._file: Call | None = None

    def begin(self) -> None:
        super().begin()
        if self._target is None:
            self._lost()

    async def sent(self, data: bytes) -> bytes:
        rest = await super().sent(data)
        while rest and self._target is not None:
            if self._content:
                passed = min(self._content, len(rest))
                self._content -= passed
                rest = rest[passed:]
                if not self._content:
                    self._done()
                continue
            line, end, rest = rest.partition(b"\n")
            self._line += line + end
            if len(self._line) > _LINE:
                self._lost()
            elif end:
                await self._read(bytes(self._line))
                self._line.clear()
        return data

    def came(self, stream: Stream, data: bytes) -> bytes:
        return data

    def over(self, outcome: Outcome, exit_code: int | None, reason: str | None) -> None:
        if self._file is not None:
            self._file.returned("failed", output="the copy broke off")
        super().over(outcome, exit_code, reason)

    async def _read(self, line: bytes) -> None:
        """A line of the protocol: `C` a file, `D` a folder, `E` its end, `T` times, 1, 2 a warning.

        See scp.c of OpenSSH.
        """
        if line == b"E\n" and self._folders:
            self._folders.pop()
        elif (entry := _ENTRY.fullmatch(line)) is not None:
            path = await self._path(entry[3].decode(errors="replace"))
            if entry[1] == b"D":
                self._folders.append(path)
                if len(self._folders) > _DEPTH:
                    self._lost()
                return
            self._file = self._witness.begin(
                self._host, "write_file", "scp", {"path": path, "user": self._user}
            )
            # A NUL comes after the content.
            self._content = int(entry[2]) + 1
        elif line[:1] not in (b"T", b"\1", b"\2"):
            self._lost()

    async def _path(self, name: str) -> str:
        target = self._target or ""
        if self._folders:
            return f"{self._folders[-1].rstrip('/')}/{name}"
        # A copy of several files goes on below the target; one alone may be the target itself.
        if self._below is None:
            self._below = target.endswith("/") or await self._is_folder(target)
        return f"{target.rstrip('/')}/{name}" if self._below else target

    def _done(self) -> None:
        if self._file is not None:
            self._file.returned("ran")
            self._file = None

    def _lost(self) -> None:
        """From here on nobody can say what is written."""
        self._target = None
        self._witness.gap(("write_file",), _UNTOLD.format("scp"))
