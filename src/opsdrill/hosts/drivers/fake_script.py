"""The script of the `fake` driver: which command gets which answer on which host.

    {"format": "opsdrill.fake/1",
     "answers": [{"run": "curl -sf localhost", "after": "systemctl start nginx", "exit_code": 0},
                 {"run": "curl -sf localhost", "exit_code": 7},
                 {"starts_with": "systemctl ", "on": "web-01", "exit_code": 0, "delay": 0.2}],
     "otherwise": {"exit_code": 0},
     "files": {"web-01": {"/etc/motd": "hello\\n"}},
     "silent": ["db-01"]}

A command that nobody scripted ends with 127 and says so: an answer that nobody gave is never a 0.
"""

from __future__ import annotations

import json
import posixpath
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from opsdrill.errors import InvalidInput, Problem, UsageError
from opsdrill.model.fields import HostName, Items, Written
from opsdrill.model.host import Command
from opsdrill.model.problem import from_validation
from opsdrill.model.scenario import ExitCode

SCRIPT_LIMIT = 5 * 1024 * 1024
"""Bytes of a script file that are read at most."""
UNSCRIPTED = 127
"""The exit status of a command that nobody scripted."""


def absolute_path(path: str) -> str:
    """The absolute path of a file, without dots and double slashes.

    Raises:
        PydanticCustomError: (a ValueError) it is no such path.
    """
    normal = posixpath.normpath("/" + path.lstrip("/"))
    if not path.startswith("/") or path.endswith("/") or "\0" in path or normal == "/":
        raise PydanticCustomError("path", "must be an absolute path of a file")
    return normal


def _absolute_paths(files: dict[str, str]) -> dict[str, str]:
    found = {}
    for path, text in files.items():
        try:
            found[absolute_path(path)] = text
        except PydanticCustomError:
            raise PydanticCustomError(
                "paths", "needs absolute paths of files, not {path}", {"path": repr(path)}
            ) from None
    return found


Files = Annotated[dict[str, str], AfterValidator(_absolute_paths)]
Delay = Annotated[float, Field(ge=0, le=86400, allow_inf_nan=False)]


class Scripted(Written):
    """What becomes of a command: exactly one of the four outcomes.

    `timed_out` comes after `delay` and not only at the command's limit, so that a test need not
    wait; a `delay` that reaches the limit becomes a time-out by itself, at the limit.
    """

    exit_code: ExitCode | None = None
    timed_out: Literal[True] | None = None
    unreachable: Literal[True] | None = None
    dropped: Literal[True] | None = None
    stdout: str = ""
    stderr: str = ""
    delay: Delay = 0.0
    """Seconds until the answer."""
    dies: bool = False
    """The host is silent for good from this answer on, which is itself the last one."""

    @model_validator(mode="after")
    def _one_outcome(self) -> Self:
        outcomes = (self.exit_code, self.timed_out, self.unreachable, self.dropped)
        if sum(outcome is not None for outcome in outcomes) != 1:
            raise PydanticCustomError(
                "one_outcome",
                "needs exactly one of `exit_code`, `timed_out`, `unreachable` and `dropped`",
            )
        return self


class FakeAnswer(Scripted):
    """An answer and the commands it is for; the first of a script that fits is given."""

    on: HostName | None = None
    """A host; every host when left out."""
    user: str | None = None
    """Fits only a command that runs as this user; any user when left out."""
    run: str | None = None
    """The whole text of the command."""
    starts_with: str | None = None
    """How the command's text begins."""
    after: str | None = None
    """Fits only once this very command has ended with a status on the same host."""
    times: Annotated[int, Field(ge=1)] | None = None
    """How often it is given on one host; then later answers get their turn."""

    @model_validator(mode="after")
    def _one_text(self) -> Self:
        if (self.run is None) == (self.starts_with is None):
            raise PydanticCustomError("one_text", "needs either `run` or `starts_with`")
        return self

    def fits(self, host: str, command: Command, done: set[str]) -> bool:
        """It is meant for this command on this host, which has run `done` before."""
        if self.on not in (None, host) or self.user not in (None, command.user):
            return False
        if self.after is not None and self.after not in done:
            return False
        if self.run is not None:
            return command.run == self.run
        return self.starts_with is not None and command.run.startswith(self.starts_with)


class FakeScript(Written):
    """All that fake hosts know."""

    format: Literal["opsdrill.fake/1"] = "opsdrill.fake/1"
    answers: Items[FakeAnswer] = ()
    otherwise: Scripted | None = None
    """The answer to every other command; left out, such a command ends with 127."""
    files: dict[HostName, Files] = Field(default_factory=dict)
    """The files that a host has from the start, by host and absolute path."""
    silent: Items[HostName] = ()
    """Hosts that never answer."""
    unmade: Items[HostName] = ()
    """Hosts that cannot be made."""


def load_fake_script(path: Path) -> FakeScript:
    """A script from its JSON file.

    Raises:
        UsageError: the file cannot be read.
        InvalidInput: it is no such script; says where and why.
    """
    if path.exists() and not path.is_file():
        raise UsageError(f"cannot read the answers {path}: not a file")
    try:
        with path.open("rb") as file:
            text = file.read(SCRIPT_LIMIT + 1)
    except OSError as error:
        raise UsageError(f"cannot read the answers {path}: {error.strerror}") from None
    if len(text) > SCRIPT_LIMIT:
        raise _invalid(path, Problem("", f"has more than {SCRIPT_LIMIT} bytes"))
    try:
        content = json.loads(text, object_pairs_hook=_unique)
        json.dumps(content, ensure_ascii=False).encode()
        return FakeScript.model_validate(content)
    except json.JSONDecodeError as error:
        wrong = Problem("", f"is not JSON: {error.msg}", line=error.lineno, column=error.colno)
        raise _invalid(path, wrong) from None
    except ValidationError as error:
        raise _invalid(path, *(problem for _, problem in from_validation(error))) from None
    except UnicodeEncodeError:
        raise _invalid(path, Problem("", "has half of a surrogate pair in a text")) from None
    except UnicodeDecodeError:
        raise _invalid(path, Problem("", "is not UTF-8")) from None
    except (ValueError, RecursionError) as error:
        said = "is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise _invalid(path, Problem("", said)) from None


def _invalid(path: Path, *problems: Problem) -> InvalidInput:
    placed = [problem.at(str(path), problem.line, problem.column) for problem in problems]
    return InvalidInput("the answers of the fake driver are wrong", placed)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"has the key {twice!r} twice in one object")
    return found
