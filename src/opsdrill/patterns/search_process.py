"""The search process seen from outside: started when needed, ended at its budget."""

from __future__ import annotations

import os
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from opsdrill.errors import OpsDrillError

MEMORY = 2 * 1024**3
"""Bytes of address space of a search process."""

_SCRIPT = str(Path(__file__).with_name("worker.py"))
_HEADER = struct.Struct("=QQQ")
_DONE = struct.Struct("=Qd")


class OutOfBudget(Exception):
    """The request used up its CPU seconds; the process is no more."""


class ProcessLost(Exception):
    """The process ended or fell silent for another reason; it is no more."""


class SearchProcess:
    """One process that searches with Python's `re`.

    Args:
        seconds: CPU seconds of one request.
        patience: seconds of wall time after which a request is given up; a stopped process and
            a starved machine spend no CPU.

    Raises:
        OpsDrillError: no process can be started here.
    """

    def __init__(self, seconds: float, patience: float) -> None:
        self._patience = patience
        self._over = False
        command = [sys.executable, "-I", "-S", _SCRIPT, repr(seconds), str(MEMORY)]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                cwd="/",
            )
        except OSError as error:
            raise OpsDrillError(
                f"no process for regular expressions could be started: {error}",
                hint="look at the limits on processes and memory of this machine",
            ) from error
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to = self._process.stdin.fileno()
        self._from = self._process.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def over(self) -> bool:
        """It was closed; another one is needed."""
        return self._over

    def search(
        self, pattern: bytes, values: Sequence[bytes]
    ) -> tuple[list[tuple[int, int]], float]:
        """The spans of some values, from the first on, and the CPU seconds they took.

        There are fewer spans than values when the budget runs low between two values. A span is
        (-1, -1) for no match and (-2, -2) where memory ran out.

        Raises:
            OutOfBudget: the budget was used up.
            ProcessLost: the process ended or fell silent.
        """
        try:
            return self._asked(pattern, values)
        except BaseException:
            self.close()  # it may be half way through an answer that nobody will read
            raise

    def _asked(
        self, pattern: bytes, values: Sequence[bytes]
    ) -> tuple[list[tuple[int, int]], float]:
        deadline = time.monotonic() + self._patience
        lengths = struct.pack(f"={len(values)}Q", *map(len, values))
        total = sum(map(len, values))
        header = _HEADER.pack(len(pattern), len(values), total)
        self._write(b"".join((header, pattern, lengths, *values)), deadline)
        done, used = _DONE.unpack(self._read(_DONE.size, deadline))
        numbers = struct.unpack(f"={2 * done}q", self._read(16 * done, deadline))
        return list(zip(numbers[::2], numbers[1::2], strict=True)), used

    def _write(self, data: bytes, deadline: float) -> None:
        rest = memoryview(data)
        while rest:
            self._wait(self._to, select.POLLOUT, deadline)
            try:
                rest = rest[os.write(self._to, rest) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                self._ended()

    def _read(self, size: int, deadline: float) -> bytes:
        data = bytearray()
        while len(data) < size:
            self._wait(self._from, select.POLLIN, deadline)
            try:
                part = os.read(self._from, size - len(data))
            except BlockingIOError:
                continue
            if not part:
                self._ended()
            data += part
        return bytes(data)

    def _wait(self, descriptor: int, event: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(descriptor, event)
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            raise ProcessLost("it did not answer")

    def _ended(self) -> NoReturn:
        try:
            status = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            status = None  # it closed its output and lives on
        if status == -signal.SIGPROF:
            raise OutOfBudget
        raise ProcessLost(f"it ended with {status}")

    def kill(self) -> None:
        """End the process; a search that waits for it ends with ProcessLost."""
        self._process.kill()

    def close(self) -> None:
        """End the process and forget it. Repeatable."""
        self._over = True
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
