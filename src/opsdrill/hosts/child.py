"""A process that we start and speak to, and whose end nobody but us takes note of.

asyncio's processes are not used: a thread of asyncio's waits for each, and whoever closes or kills
one asks the kernel for its end as well. Where the two meet, the thread finds no child any more and
makes up a status of 255.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO, Protocol

_PART = 1 << 16
"""Bytes that are read at once."""
_IN, _OUT, _ERR = 0, 1, 2


class Listener(Protocol):
    """Who is told what a child says and how it ends, in its event loop."""

    def heard(self, stream: int, data: bytes) -> None:
        """A part of its output; `stream` is 1 or 2, as file descriptors count."""

    def exited(self, status: int | None) -> None:
        """It ended; there may be output still.

        Args:
            status: what it ended with, a signal as a negative number; None: somebody else took
                note of it, and nobody knows.
        """

    def finished(self) -> None:
        """It ended, and nothing more of its output comes."""


class Started:
    """A process that we start, and whose end we take note of.

    It belongs to the event loop that runs when it is made, and is called from there only.

    Args:
        argv: the program and its arguments.
        ended: told its status, a signal as a negative number; None: somebody else took note of it,
            and nobody knows. Never called before this call is over.
        files: its standard input, output and error, as of `subprocess.Popen`.
        environment: None: this process's own.
        folder: where it starts; None: this process's own.
        own_session: it is started in a session of its own.

    Attributes:
        pipes: our ends of those of its `files` that are to be pipes.

    Raises:
        OSError: it cannot be started.
        ValueError: an argument that no process can have.
    """

    def __init__(
        self,
        argv: Sequence[str] | Sequence[bytes],
        ended: Callable[[int | None], None],
        *,
        files: tuple[int, int, int],
        environment: Mapping[str, str] | None = None,
        folder: str | None = None,
        own_session: bool = True,
    ) -> None:
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._reaped = False
        self._process = subprocess.Popen(
            argv,
            bufsize=0,
            stdin=files[0],
            stdout=files[1],
            stderr=files[2],
            env=environment,
            cwd=folder,
            start_new_session=own_session,
        )
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        self.pipes: dict[int, IO[bytes]] = {
            stream: pipe for stream, pipe in enumerate(pipes) if pipe is not None
        }
        self._watch()

    def signal(self, number: int, *, family: bool = False) -> None:
        """Send it a signal; nothing happens once it ended.

        Args:
            number: of the signal.
            family: to all of its session's that did not leave its process group, too.
        """
        # Once its end was taken note of, its number may be another's.
        if not self._reaped:
            kill = os.killpg if family else os.kill
            with suppress(ProcessLookupError, PermissionError):
                kill(self._process.pid, number)

    def _watch(self) -> None:
        waiting = threading.Thread(target=self._wait, name="waits for a child", daemon=True)
        try:
            waiting.start()
        except RuntimeError as error:
            self._process.kill()
            self._process.wait()
            for pipe in self.pipes.values():
                pipe.close()
            raise OSError(errno.EAGAIN, str(error)) from None

    def _wait(self) -> None:
        """Take note of its end. Runs in a thread."""
        status: int | None = None
        # Without SIGCHLD the kernel keeps no status.
        with suppress(ChildProcessError):
            status = os.waitstatus_to_exitcode(os.waitpid(self._process.pid, 0)[1])
        self._reaped = True
        # It must not look for the end once more.
        self._process.returncode = 0 if status is None else status
        with suppress(RuntimeError):  # the loop is closed: nobody wants to know
            self._loop.call_soon_threadsafe(self._ended, status)


class Child:
    """A process in a session of its own, from its start on.

    It belongs to the event loop that runs when it is made, and is called from there only.

    Args:
        argv: the program and its arguments.
        listener: told what becomes of it, never before this call is over.
        content: its whole standard input.
        environment: None: this process's own.
        folder: where it starts; None: this process's own.

    Attributes:
        over: set with `Listener.finished`.

    Raises:
        OSError: it cannot be started.
        ValueError: an argument that no process can have.
    """

    def __init__(
        self,
        argv: Sequence[str],
        listener: Listener,
        content: bytes = b"",
        *,
        environment: Mapping[str, str] | None = None,
        folder: str | None = None,
    ) -> None:
        self.over = asyncio.Event()
        self._listener = listener
        self._loop = asyncio.get_running_loop()
        self._ended = False
        self._unsent = memoryview(content)
        given = subprocess.PIPE if content else subprocess.DEVNULL
        self._process = Started(
            argv,
            self._exited,
            files=(given, subprocess.PIPE, subprocess.PIPE),
            environment=environment,
            folder=folder,
        )
        self._pipes = self._process.pipes
        for pipe in self._pipes.values():
            os.set_blocking(pipe.fileno(), False)
        for stream in (_OUT, _ERR):
            self._loop.add_reader(self._pipes[stream], self._read, stream)
        if content:
            self._loop.add_writer(self._pipes[_IN], self._write)

    def pause(self, stream: int, seconds: float) -> None:
        """Read no more of an output stream for a while."""
        pipe = self._pipes.get(stream)
        if pipe is not None:
            self._loop.remove_reader(pipe)
            self._loop.call_later(seconds, self._resume, stream)

    def close(self, *, family: bool = False) -> None:
        """Kill it, and hear no more of it but its end. Repeatable.

        Args:
            family: with all of its session's that did not leave its process group.
        """
        self._process.signal(signal.SIGKILL, family=family)
        for stream in tuple(self._pipes):
            self._shut(stream)

    def _exited(self, status: int | None) -> None:
        self._ended = True
        self._listener.exited(status)
        self._see_over()

    def _read(self, stream: int) -> None:
        try:
            data = os.read(self._pipes[stream].fileno(), _PART)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._listener.heard(stream, data)
        else:
            self._shut(stream)

    def _resume(self, stream: int) -> None:
        if stream in self._pipes:
            self._loop.add_reader(self._pipes[stream], self._read, stream)

    def _write(self) -> None:
        try:
            self._unsent = self._unsent[os.write(self._pipes[_IN].fileno(), self._unsent) :]
        except BlockingIOError:
            return
        except OSError:
            self._unsent = self._unsent[:0]  # it reads no more
        if not self._unsent:
            self._shut(_IN)

    def _shut(self, stream: int) -> None:
        pipe = self._pipes.pop(stream)
        if stream == _IN:
            self._loop.remove_writer(pipe)
        else:
            self._loop.remove_reader(pipe)
        pipe.close()
        self._see_over()

    def _see_over(self) -> None:
        if self._ended and not self._pipes and not self.over.is_set():
            self.over.set()
            self._listener.finished()
