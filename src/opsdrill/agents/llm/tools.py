"""The tools of a task: what its model can do on the host.

The docstrings of the tools are what the model is told of them.
"""

from __future__ import annotations

from pydantic_ai.toolsets import FunctionToolset

from opsdrill.agents.deny import DenyList
from opsdrill.agents.llm.fence import TEXT_KEPT, fenced
from opsdrill.agents.task import TaskWork, output_of
from opsdrill.model.host import HostAnswer


class HostTools:
    """Does on a task's host what the model asks for.

    Args:
        work: the task.
        deny: the commands that are refused.
        seconds: the longest time limit of a command.
    """

    def __init__(self, work: TaskWork, deny: DenyList, seconds: float) -> None:
        self._work = work
        self._deny = deny
        self._seconds = seconds

    def toolset(self) -> FunctionToolset[None]:
        """The tools; one after the other, in the order asked for."""
        return FunctionToolset(
            [self.shell, self.read_file, self.write_file, self.update_file],
            sequential=True,
            max_retries=5,
        )

    async def shell(self, command: str, timeout_seconds: float | None = None) -> str:
        """Run a command on the host in a fresh shell and return its exit status and output.

        Args:
            command: shell text; it is not interactive and keeps nothing for the next command.
            timeout_seconds: when it is killed with all that it started.
        """
        why = "a command cannot hold a NUL character" if "\0" in command else None
        why = why or await self._deny.refuses(command)
        if why is not None:
            self._work.played("shell", "shell", {"command": command}, "refused", output=why)
            return f"refused, not run: {why}"
        seconds = self._seconds
        if timeout_seconds is not None and timeout_seconds > 0:
            seconds = min(seconds, timeout_seconds)
        answer = await self._work.run(command, seconds=seconds)
        return f"{_status(answer)}\n{fenced(output_of(answer))}"

    async def read_file(self, path: str, first_line: int = 1) -> str:
        """Return the text of a file on the host, from a line on.

        Args:
            path: absolute path.
            first_line: from 1; long files are shown in parts.
        """
        if why := _wrong(path):
            self._work.played("other", "read_file", {"path": path}, "failed", output=why)
            return why
        read = await self._work.read(path)
        if isinstance(read, str):
            return f"failed: {fenced(read)}"
        lines = read.decode(errors="replace").splitlines(keepends=True)
        shown = "".join(lines[max(first_line, 1) - 1 :])
        more = " (cut: read on from a later line)" if len(shown) > TEXT_KEPT else ""
        return f"{len(lines)} lines{more}\n{fenced(shown[:TEXT_KEPT])}"

    async def write_file(self, path: str, content: str) -> str:
        """Write a file on the host, in the place of any that is there.

        Args:
            path: absolute path; missing folders are made.
            content: all of the file's text.
        """
        if why := _wrong(path):
            arguments = {"path": path, "content": content}
            self._work.played("write_file", "write_file", {**arguments}, "failed", output=why)
            return why
        return _done(await self._work.write(path, content))

    async def update_file(self, path: str, old: str, new: str) -> str:
        """Replace a text in a file on the host.

        Args:
            path: absolute path.
            old: the text to replace; it must occur exactly once.
            new: what comes in its place.
        """
        why = _wrong(path) or ("`old` must not be empty" if not old else None)
        if why is not None:
            arguments = {"path": path, "old": old, "new": new}
            self._work.played("update_file", "update_file", {**arguments}, "failed", output=why)
            return why
        return _done(await self._work.update(path, old, new))


def _wrong(path: str) -> str | None:
    """Why a path is none, or None."""
    if not path.startswith("/") or path.endswith("/") or "\0" in path:
        return "failed: the path must be the absolute path of a file"
    return None


def _done(failure: str | None) -> str:
    return "done" if failure is None else f"failed: {fenced(failure)}"


def _status(answer: HostAnswer) -> str:
    if answer.exit_code is not None:
        return f"exit status {answer.exit_code}"
    if answer.timed_out:
        return "killed at its time limit"
    return "no exit status: the host does not answer" if answer.unreachable else "no exit status"
