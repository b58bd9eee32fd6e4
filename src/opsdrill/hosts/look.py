"""What a machine says about itself: text to ask with, and a parser for what it says."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from opsdrill.hosts.command import Account, Become

NEEDED = ("env", "cat", "mkdir", "mv", "rm", "chmod", "chown", "stat", "readlink", "wc", "head")
"""Programs that commands and files take on the far side; all are part of any POSIX userland."""
_OURS = ("login", "kernel", "os", "shell", "mark", "bash", "zsh", "time", "setsid")
_LONG = 300
UNMARKED = {"time limits": "what a command started cannot be told apart and is not killed"}
"""What belongs in `HostFacts.limits` of a machine whose processes cannot be marked."""


@dataclass(frozen=True, slots=True)
class Look:
    """A machine as its login sees it.

    Attributes:
        uid: who runs what is asked for: 0 for root, also by way of sudo.
        shell: the shell that commands get, None where there is none.
        distribution: its name.
        kernel: its release.
        clock: seconds since 1970, by the machine's clock.
        marks: its shell can mark processes, so that all of a command's can be killed.
        login: what the shell is that looked around.
        lacks: programs that it needs and does not have.
        sessions: it has setsid(1), which keeps a command's signals from who started it.
    """

    uid: int
    shell: str | None
    distribution: str | None
    kernel: str | None
    clock: int | None
    marks: bool
    login: Literal["bash", "posix", "other"]
    lacks: tuple[str, ...] = ()
    sessions: bool = False


def look_text(mark: int) -> str:
    """Text for `ask_line` that prints `name=value` lines; `mark` as in `run_line`."""
    return (
        'echo "login=$(id -u)";echo "kernel=$(uname -r)";echo "time=$(date +%s)";'
        '[ -x $p ]&&echo "shell=$s";[ "${BASH_VERSION-}" ]&&echo bash=yes;'
        '[ "${ZSH_VERSION-}" ]&&echo zsh=yes;'
        f"(ulimit -x {mark}||ulimit -w {mark}) 2>/dev/null&&"
        "[ -r /proc/self/limits ]&&echo mark=yes;command -v setsid >/dev/null&&echo setsid=yes;"
        f"for c in {' '.join(NEEDED)};do command -v $c >/dev/null||echo lacks=$c;done;"
        "{ while IFS= read -r l;do case $l in PRETTY_NAME=*)echo os=${l#*=};;esac;done"
        "</etc/os-release; } 2>/dev/null;:"
    )


def parse_look(printed: str) -> Look | None:
    """The answer to `look_text`; None if it is none."""
    found: dict[str, str] = {}
    lacks = []
    for line in printed.splitlines():
        name, _, value = line.partition("=")
        if name == "lacks" and value in NEEDED:
            lacks.append(value)
        elif name in _OURS:
            found.setdefault(name, value.strip()[:_LONG])
    if not found.get("login", "").isdecimal():
        return None
    clock = found.get("time", "")
    return Look(
        uid=int(found["login"]),
        shell=found.get("shell"),
        distribution=found.get("os", "").strip("\"'") or None,
        kernel=found.get("kernel") or None,
        clock=int(clock) if clock.isdecimal() else None,
        marks="mark" in found,
        login="bash" if "bash" in found else "other" if "zsh" in found else "posix",
        lacks=tuple(lacks),
        sessions="setsid" in found,
    )


PACKAGES = (
    "if command -v dpkg-query >/dev/null;then"
    " dpkg-query -Wf '${db:Status-Status} ${Package} ${Version}\\n';"
    "elif command -v rpm >/dev/null;then"
    " rpm -qa --qf 'installed %{NAME} %{VERSION}-%{RELEASE}\\n';"
    "elif command -v apk >/dev/null;then apk info -v|while read -r l;do echo installed $l;done;fi;:"
)
"""Text for `ask_line` that prints `STATUS PACKAGE VERSION` lines."""


def packages_digest(printed: str) -> str | None:
    """SHA-256 over the sorted lines `package version` of what is installed."""
    installed = "installed "
    found = sorted(
        line[len(installed) :] for line in printed.splitlines() if line.startswith(installed)
    )
    return hashlib.sha256("\n".join(found).encode()).hexdigest() if found else None


_WAYS: tuple[Become, ...] = ("setpriv", "su")


class NoAccount(Exception):
    """A command cannot run as this user; says why."""


def parse_account(user: str, printed: str, uid: int) -> Account:
    """The answer to `account_text`.

    Args:
        user: who was asked for.
        printed: the answer.
        uid: of who asks.

    Raises:
        NoAccount: there is no such user, or no way to become it.
    """
    lines = printed.splitlines()
    fields = next((line.split(":") for line in lines if line.startswith(f"{user}:")), [])
    if len(fields) < 7 or not (fields[2].isdecimal() and fields[3].isdecimal()):
        raise NoAccount(f"there is no user {user}")
    own = int(fields[2]) == uid
    become: Become | None = "stay" if own else next((w for w in _WAYS if w in lines), None)
    if become is None:
        raise NoAccount(f"the host has neither setpriv nor su to run commands as {user}")
    if not own and uid != 0:
        raise NoAccount(
            f"the login is not root and cannot become {user}: set `sudo: true` in the lab"
        )
    return Account(fields[0], int(fields[2]), int(fields[3]), fields[5] or "/", become)
