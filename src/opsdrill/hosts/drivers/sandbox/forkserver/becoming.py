"""A forked process becomes a program of a host: inside, confined, and one of the host's users."""

# ruff: noqa: PTH123

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from opsdrill.hosts.command import SHELLS, environment
from opsdrill.hosts.drivers.sandbox.forkserver import accounts, confine, kernel
from opsdrill.hosts.drivers.sandbox.forkserver.entering import arrive

# What the interpreter and the fork server ignore or handle, or whoever started them had them ignore
# (`nohup`, `&` in a script); a command starts with none of it.
_CHANGED_SIGNALS = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGCHLD,
)


@dataclass(frozen=True, slots=True)
class Calling:
    """What a process is to become.

    Attributes:
        user: whose it is to be.
        files: what it has open: its own number -> where that is now.
        begin: starts the program, told who it is and where to tell of trouble; only returns when
            there is none to start.
        owned: numbers of `files` that are to belong to the user.
        prepare: called while it is still the host's root, in a session of its own.
    """

    user: str
    files: Mapping[int, int]
    begin: Callable[[accounts.Account, int], None]
    owned: Sequence[int] = ()
    prepare: Callable[[], None] | None = None


def become(
    calling: Calling, *, pidfd: int, tell: int, procs: Sequence[int], processes: int
) -> NoReturn:
    """Become it. Trouble is told as `KIND REASON`, with a kind of `Failed`.

    Args:
        calling: what it becomes.
        pidfd: the first process of its host.
        tell: where to tell of trouble.
        procs: doors of control groups that it has to join.
        processes: how many processes a user other than real root may have.
    """
    kind = "error"
    try:
        for group in procs:
            os.write(group, b"0")
        _be_first_to_go()
        confine.stand_in_line()
        arrive(pidfd)
        os.setsid()
        if calling.prepare is not None:
            calling.prepare()
        # Copies first: a number may be where something else has to go.
        copies = {target: os.dup(fd) for target, fd in calling.files.items()}
        tell = os.dup(tell)
        for target, fd in copies.items():
            os.dup2(fd, target)
            os.set_inheritable(target, True)
        kind = "user"
        account = accounts.user(calling.user)
        kind = "error"
        for target in calling.owned:
            _give(target, account)
        confine.limit(processes)
        _change_user(account)
        confine.refuse_system_calls()
        kernel.close_all_but((*calling.files, tell))
        for number in _CHANGED_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        calling.begin(account, tell)
    except accounts.NoAccount as error:
        os.write(tell, f"user {error}".encode())
    except BaseException as error:
        os.write(tell, f"{kind} {error}".encode())
    finally:
        os._exit(126)


def start_shell(
    account: accounts.Account,
    tell: int,
    *,
    login: bool = False,
    variables: Mapping[str, str] | None = None,
) -> None:
    """Take this process's place with a shell; each one that cannot be started is told.

    Args:
        account: whose shell it is.
        tell: where to tell.
        login: an interactive one, which reads its standard input.
        variables: environment beside what a command gets.
    """
    for shell in SHELLS:
        for path in shell.paths:
            own = {**environment(account.name, account.home, path), **(variables or {})}
            arguments = (f"-{shell.name}",) if login else shell.arguments
            try:
                os.execve(path, arguments, own)  # noqa: S606
            except OSError as error:
                os.write(tell, f"no {path}: {error.strerror}\n".encode())


def _be_first_to_go() -> None:
    """Undo what keeps us alive where memory runs out.

    Only who may lower the value makes this one the lowest that the host's root can go back to.
    """
    with open("/proc/self/oom_score_adj", "r+b", buffering=0) as adjust:
        if int(adjust.read(16)) < 0:
            adjust.write(b"0")


def _give(fd: int, account: accounts.Account) -> None:
    # Whom an ordinary user without a range of ids cannot have here, nobody can give it to.
    with suppress(OSError):
        os.fchown(fd, account.uid, -1)


def _change_user(account: accounts.Account) -> None:
    confine.drop_privileges()
    try:
        os.setgroups(account.groups)
        os.setresgid(account.gid, account.gid, account.gid)
        os.setresuid(account.uid, account.uid, account.uid)
    except OSError as error:
        # An ordinary user without a range of ids has root alone, without further groups.
        if account.uid or account.gid:
            raise accounts.NoAccount(
                f"user {account.name} cannot be had here ({error.strerror}): as an ordinary user"
                " that takes the package uidmap"
            ) from None
    kernel.keep_capabilities(confine.KEPT_CAPABILITIES if account.uid == 0 else ())
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    os.umask(0o022)
    try:
        os.chdir(account.home)
    except OSError:
        os.chdir("/")
