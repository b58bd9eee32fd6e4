"""What agents' own shells put around a command, taken off again."""

from __future__ import annotations

import re
import shlex

_LONGEST = 256 * 1024
"""Characters of a command that is still looked into."""
_DEEPEST = 4
"""Shells inside each other."""

# One word whose value stands there: in it the outer shell expands nothing.
_WORD = r"""(?:'[^']*'|"(?:[^"$`\\]|\\["\\])*"|\\[^\n]|[A-Za-z0-9_./:=@%+,-])+"""
_SHELL = re.compile(
    r"\s*(?:/usr)?(?:/bin/)?(?:bash|sh|dash|ash|zsh|ksh)"
    r"(?:[ \t]+(?:-[lie]+|--login|--noprofile|--norc))*[ \t]+-[lie]*c"
    rf"[ \t]+(?:--[ \t]+)?({_WORD})\s*"
)
_FOLDER = re.compile(rf"\s*cd[ \t]+(?:--[ \t]+)?(?:~|{_WORD})(?:/{_WORD})?[ \t]*(?:&&|;)\s*")


def unwrapped(command: str) -> str:
    """The command without a shell that was started only to run it, and without blanks around.

    `bash -lc 'systemctl restart nginx'` is `systemctl restart nginx`.
    """
    for _ in range(_DEEPEST):
        found = _SHELL.fullmatch(command) if len(command) <= _LONGEST else None
        if found is None:
            break
        [command] = shlex.split(found[1])
    return command.strip()


def without_folder(command: str) -> str | None:
    """The command behind a `cd FOLDER &&` that it begins with; None where there is none."""
    found = _FOLDER.match(command) if len(command) <= _LONGEST else None
    return command[found.end() :].strip() or None if found else None
