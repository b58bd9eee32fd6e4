"""The values of secrets, looked up when they are used and kept nowhere else.

No message repeats what was found, nor what a command said: either may be the secret.
"""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import threading
from collections.abc import Mapping
from pathlib import Path

from opsdrill.errors import UsageError
from opsdrill.model.secret import SecretSource

COMMAND_SECONDS = 30.0
"""How long a command may take to print a secret."""
VALUE_LIMIT = 64 * 1024
"""Bytes of a secret."""


class Secrets:
    """The secrets of a lab by name.

    Args:
        sources: where each is found.
        folder: where relative paths start, and where commands run.
        environment: the variables of this process.
    """

    def __init__(
        self,
        sources: Mapping[str, SecretSource],
        folder: Path,
        environment: Mapping[str, str] = os.environ,
        *,
        seconds: float = COMMAND_SECONDS,
    ) -> None:
        self._sources = sources
        self._folder = folder
        self._environment = environment
        self._seconds = seconds
        self._found: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Secrets({', '.join(self._sources)})"

    @property
    def names(self) -> tuple[str, ...]:
        """The names, in the order of the file."""
        return tuple(self._sources)

    def source(self, name: str) -> SecretSource:
        """Where a secret is found; `name` is one of `names`."""
        return self._sources[name]

    def value(self, name: str) -> str:
        """The value of a secret, without the line break at its end; looked up once.

        Raises:
            UsageError: it cannot be had; says why, never what was found.
        """
        if name not in self._found:
            source = self._sources.get(name)
            if source is None:
                raise UsageError(f"there is no secret {name!r} in the lab")
            self._found[name] = self._checked(name, self._read(name, source))
        return self._found[name]

    def _read(self, name: str, source: SecretSource) -> bytes:
        if source.env is not None:
            text = self._environment.get(source.env)
            if text is None:
                raise _refused(name, f"the environment variable {source.env} is not set")
            return os.fsencode(text)
        if source.file is not None:
            return _from_file(name, self._folder / Path(source.file).expanduser())
        words = source.command
        assert words is not None
        # What is one text is a line for a shell, by the user's own wish; words never meet one.
        command = ["/bin/sh", "-c", words] if isinstance(words, str) else list(words)
        return self._from_command(name, command)

    def _from_command(self, name: str, command: list[str]) -> bytes:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=self._folder,
                env=self._environment,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise _refused(name, f"its command cannot be run: {why}") from None
        late = threading.Event()

        def stop() -> None:
            late.set()
            _kill(process)

        timer = threading.Timer(self._seconds, stop)
        timer.start()
        try:
            assert process.stdout is not None
            with process.stdout as stream:
                content = stream.read(VALUE_LIMIT + 1)
            if len(content) > VALUE_LIMIT:
                _kill(process)
            status = process.wait()
        finally:
            timer.cancel()
        if late.is_set():
            raise _refused(name, f"its command did not end within {self._seconds:g} s")
        if status != 0 and len(content) <= VALUE_LIMIT:
            ended = f"status {status}" if status > 0 else f"signal {-status}"
            raise _refused(
                name, f"its command ended with {ended}", hint="run that command by hand to see why"
            )
        return content

    def _checked(self, name: str, content: bytes) -> str:
        if len(content) > VALUE_LIMIT:
            raise _refused(name, f"it is longer than {VALUE_LIMIT // 1024} KiB")
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            raise _refused(name, "it is not UTF-8") from None
        text = text.removesuffix("\n").removesuffix("\r")
        if not text:
            raise _refused(name, "it is empty")
        if "\0" in text:
            raise _refused(name, "it holds a NUL character")
        return text


def _from_file(name: str, path: Path) -> bytes:
    try:
        # Not to hang at a pipe that nobody writes to.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            found = os.fstat(stream.fileno())
            _check_file(name, path, found)
            return stream.read(VALUE_LIMIT + 1)
    except OSError as error:
        raise _refused(name, f"the file {path} cannot be read: {error.strerror}") from None


def _check_file(name: str, path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise _refused(name, f"{path} is no file")
    if found.st_uid not in (os.geteuid(), 0):
        raise _refused(name, f"the file {path} belongs to another user")
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise _refused(
            name,
            f"the file {path} may be used by others (mode {stat.S_IMODE(found.st_mode):04o})",
            hint=f"chmod 600 {path}",
        )


def _kill(process: subprocess.Popen[bytes]) -> None:
    # The group outlives its leader as long as anything of it holds the output open.
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _refused(name: str, why: str, *, hint: str | None = None) -> UsageError:
    return UsageError(f"the secret {name!r} cannot be had: {why}", hint=hint)
