"""The one place that builds shell text: how a command's text reaches a fresh shell.

The text never stands on a command line, so that `pgrep -f NAME` cannot find the shell that asks.
A short launcher, the same for every command, reads it from file descriptor 3 with what the shell
itself has built in - a host without `cat` still answers - and evaluates it. Standard library only:
the sandbox's fork server imports this.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

TEXT_FD = 3
"""Where the launcher reads the command's text from."""

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Read to the end of file, close it, evaluate. The variable is the one that holds the text in a
# plain `bash -c` as well, so nothing is there that would not be.
_BASH = 'IFS= read -rd "" BASH_EXECUTION_STRING <&3; exec 3<&-; eval -- "$BASH_EXECUTION_STRING"'
# `read -d` is not in POSIX: line by line, keeping a last line without a line break.
_SH = (
    't=; while IFS= read -r l || [ "$l" ]; do t="$t$l\n"; done <&3; exec 3<&-; eval "unset t l; $t"'
)


@dataclass(frozen=True, slots=True)
class Shell:
    """A shell that may be there.

    Attributes:
        name: what an answer calls it.
        paths: where it may stand, tried in this order.
        arguments: its argument list, the launcher included.
    """

    name: str
    paths: tuple[str, ...]
    arguments: tuple[str, ...]


SHELLS = (
    Shell("bash", ("/bin/bash", "/usr/bin/bash"), ("bash", "--norc", "-c", _BASH)),
    Shell("sh", ("/bin/sh", "/usr/bin/sh"), ("sh", "-c", _SH)),
)
"""`bash` if the host has it, else `sh`."""


def environment(user: str, home: str, shell: str) -> dict[str, str]:
    """The whole environment of a command: nothing of ours, nothing of the machine's.

    Args:
        user: the user it runs as.
        home: that user's home.
        shell: path of the shell that runs it.
    """
    return {
        "PATH": SEARCH_PATH,
        "HOME": home,
        "USER": user,
        "LOGNAME": user,
        "SHELL": shell,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
    }


def quote(word: str) -> str:
    """One word for a POSIX shell, whatever is in it."""
    return shlex.quote(word)


def launcher(variables: Mapping[str, str]) -> str:
    """One line for a shell reached over a connection whose standard input carries the text.

    Starts the right shell of the far side with exactly `variables` as its environment, the
    command's text on `TEXT_FD` and an empty standard input. 127 with a line on standard error if
    there is no shell.
    """
    assignments = " ".join(quote(f"{name}={value}") for name, value in variables.items())
    tries = " ".join(
        f"[ -x {path} ] && exec env -i {assignments} {path} {' '.join(map(quote, rest))};"
        for shell in SHELLS
        for path in shell.paths
        for rest in (shell.arguments[1:],)
    )
    return f"exec 3<&0 </dev/null; {tries} echo 'no shell can be started' >&2; exit 127"
