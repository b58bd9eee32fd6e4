"""The one place that builds shell text: how a command's text reaches a fresh shell.

The text never stands on a command line, so that `pgrep -f NAME` cannot find the shell that asks.
A short launcher, the same for every command, reads it from file descriptor 3 with what the shell
itself has built in - a host without `cat` still answers - and evaluates it. Standard library only:
the sandbox's fork server imports this.
"""

from __future__ import annotations

import secrets
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

TEXT_FD = 3
"""Where the launcher reads the command's text from."""

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Read to the end of file, close it, evaluate. The variable is the one that holds the text in a
# plain `bash -c` as well, so nothing is there that would not be.
_BASH = 'IFS= read -rd "" BASH_EXECUTION_STRING <&3; exec 3<&-; eval -- "$BASH_EXECUTION_STRING"'
# `read -d` is not in POSIX: line by line, keeping a last line without a line break. A fresh shell's
# IFS is space, tab and line break: so this stays one line, which another shell can read.
_SH = (
    't= n=${IFS#??}; while IFS= read -r l || [ "$l" ]; do t="$t$l$n"; done <&3; exec 3<&-;'
    ' eval "unset t l n; $t"'
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


BOOT = 'IFS= read -r l&&eval "$l"'
"""All that stands on a command line of a shell behind a connection: the first line of its standard
input says what it does. The functions below make that line; what follows it on standard input is
the command's text or a file's content.

Such a line writes the nonce on both output streams, does its work, and writes the nonce again,
on standard error with the exit status and the shell's name: `NONCE STATUS SHELL`. So the status
comes out of band, whatever the connection makes of its own; what a login script printed is told
apart; and the command is over when its shell ended, even if others hold its output open.
"""
NO_SHELL = "none"
"""The shell's name when none could be started: nobody read the command's text."""
MISSING, NOT_REGULAR = 44, 45
"""Exit statuses of `get_line`: there is no such file; it is no regular file."""

Become = Literal["stay", "setpriv", "su"]
"""How the far side's login becomes a command's user; `su` where there is no `setpriv`."""


@dataclass(frozen=True, slots=True)
class Account:
    """A user of a host, and how the login there becomes that user."""

    name: str
    uid: int
    gid: int
    home: str
    become: Become = "stay"


_last_mark = 0


SYSTEMD = "test -d /run/systemd/system"
"""True where systemd is the running init; see sd_booted(3)."""


def missing_programs(programs: Sequence[str]) -> str:
    """Text that prints those of the programs that the host does not have, one a line."""
    words = " ".join(map(quote, programs))
    return (
        f'for program in {words}; do command -v "$program" >/dev/null 2>&1'
        ' || printf "%s\\n" "$program"; done'
    )


def next_nonce() -> str:
    """Letters and digits that no output has."""
    return secrets.token_hex(12)


def next_mark() -> int:
    """A mark below all before it: what carries one can be marked anew, by root or not."""
    global _last_mark  # noqa: PLW0603
    _last_mark = max(time.time_ns(), _last_mark + 1)
    return (1 << 62) - _last_mark


def in_a_line(word: str) -> str:
    """One word for a POSIX shell, without a line break; needs `$n` to be one."""
    return '"$n"'.join(quote(part) for part in word.split("\n"))


def run_line(nonce: str, mark: int, account: Account, *, stays: bool = False) -> str:
    """The line that runs a command; the command's text comes after it.

    Args:
        nonce: letters and digits that no output has.
        mark: a number that the command and all it starts carries; see `next_mark`.
        account: who runs it.
        stays: after its last word the shell that reads the line stands still for as long as it
            lives, if a background process of the command holds an output stream open: for
            connections that end with their shell and would kill such a process with SIGPIPE.
    """
    after = f";{marked(mark)}{_STAY}" if stays else ""
    start = _start(mark, account)
    if account.become == "su":
        su = f"exec su -s /bin/sh -c {quote(BOOT)} {quote(account.name)} <&3 3<&-"
        inside = f"exec 3<&0 </dev/null;n=${{IFS#??}};{_FIND};{start}\n"
        return _framed(nonce, f"{_SPEAK};{su}", after) + inside
    return _framed(nonce, f"{_SPEAK};{start}", after)


def kill_line(nonce: str, mark: int) -> str:
    """The line that kills all that carries a mark, and writes how many were left.

    It writes nothing where it cannot see what there is.

    The mark is the bound on file locks (RLIMIT_LOCKS), which Linux keeps for every process, hands
    down to its children and does not use; proc(5) shows it. All are stopped before any is
    killed, so that none can start another. What waits for its parent to take note of its end is
    dead.
    """
    stop = 'o=;i=0;while f&&[ "$p" != "$o" ]&&[ $i -lt 50 ];do o=$p;kill -STOP $p;i=$((i+1));done;'
    kill = "i=0;while f&&[ $i -lt 200 ];do kill -KILL $p;i=$((i+1));sleep 0.02||sleep 1;done;"
    # sudo and su stop themselves when they see what they wait for stopped.
    count = "kill -CONT $w;set -- $p;echo $#"
    return _framed(nonce, f"{_SEES};{marked(mark)}{stop}{kill}{count}")


def put_line(nonce: str, path: str, size: int, mode: int | None, owner: str | None) -> str:
    """The line that writes a file of `size` bytes, which come after it; whole or not at all.

    `mode` and `owner` None: an existing file keeps its own, a new one gets 0644 and the login's.
    """
    exists = [
        '[ -f "$f" ]||{ echo "it is no regular file">&2;exit 1; }',
        "" if mode is not None else 'm=$(stat -c %a -- "$f")||exit 1',
        "" if owner is not None else 'o=$(stat -c %u:%g -- "$f")||exit 1',
    ]
    owned = "" if owner is None else in_a_line(owner if ":" in owner else f"{owner}:")
    steps = (
        _in_english(path),
        '[ -d "$f" ]&&{ echo "it is a folder">&2;exit 1; }',
        'if [ -L "$f" ];then f=$(readlink -f -- "$f"&&echo x)||'
        '{ echo "the link leads nowhere">&2;exit 1; };f=${f%"$n"x};fi',
        f"m={0o644 if mode is None else mode:o};o={owned}",
        f'if [ -e "$f" ];then {";".join(filter(None, exists))};fi',
        'd=${f%/*};umask 022;mkdir -p -- "$d/"||exit 1',
        f"umask 077;t=$d/.{nonce};trap 'rm -f -- \"$t\"' EXIT",
        'cat <&3 >"$t"||exit 1',
        f'[ $(($(wc -c <"$t"))) -eq {size} ]||{{ echo "its content was cut off">&2;exit 1; }}',
        '[ -z "$o" ]||chown -- "$o" "$t"||exit 1',
        'chmod "$m" "$t"&&mv -f -- "$t" "$f"',
    )
    return _framed(nonce, ";".join(steps))


def get_line(nonce: str, path: str, limit: int) -> str:
    """The line that writes the first `limit` bytes of a file on standard output."""
    steps = (
        _in_english(path),
        f'[ -e "$f" ]||exit {MISSING}',
        f'[ -f "$f" ]||exit {NOT_REGULAR}',
        f'exec head -c {limit} -- "$f"',
    )
    return _framed(nonce, ";".join(steps))


def ask_line(nonce: str, text: str) -> str:
    """The line that has the far side's own shell run `text`, which has no line break."""
    return _framed(nonce, f"{_SPEAK};{text}")


def account_text(user: str) -> str:
    """Text for `ask_line` that prints a user's line of passwd(5), and how to become one."""
    return (
        f"u={quote(user)};"
        'getent passwd "$u" 2>/dev/null||while IFS= read -r l;do case $l in "$u":*)echo "$l";esac;'
        "done</etc/passwd;"
        "setpriv --reuid 0 --regid 0 --clear-groups true 2>/dev/null&&echo setpriv;"
        "command -v su >/dev/null&&echo su;:"
    )


def marked(mark: int) -> str:
    """The function `f`: what carries the mark and lives is in `$p`; fails if nothing does.

    The parents of all that was ever found are in `$w`.
    """
    with_grep = f'grep -ls "^Max file locks .* {mark} " /proc/[0-9]*/limits'
    without = (
        "for d in /proc/[0-9]*/limits;do while read -r a b c s h u;do "
        f'[ "$a $b $c $h" = "Max file locks {mark}" ]&&echo $d;done<$d;done'
    )
    return (
        f"g(){{ if command -v grep >/dev/null;then {with_grep};else {without};fi; }};"
        "f(){ p=;for q in $(g);do q=${q#/proc/};q=${q%/*};IFS= read -r x </proc/$q/stat||continue;"
        'set -- ${x##*)};case $1 in [ZX]);;*)p="$p $q";w="$w $2";;esac;done;[ "$p" ]; };w=;'
    )


_SEES = "[ -r /proc/self/limits ]&&[ -r /proc/self/stat ]||exit"
_STAY = (
    "if f;then for q in $p;do for x in /proc/$q/fd/*;do"
    " if [ $x -ef /proc/$$/fd/1 ]||[ $x -ef /proc/$$/fd/4 ];then kill -STOP $$;exit;fi;done;done;fi"
)


def _framed(nonce: str, body: str, after: str = "") -> str:
    # A shell says on its own standard error how its children ended; that is nothing of theirs.
    return (
        "exec 3<&0 4>&2 </dev/null 2>/dev/null;n=${IFS#??};s=-;"
        f"{_FIND};echo {nonce};echo {nonce} >&4;({body});r=$?;"
        f'if IFS= read -r l<&3||[ "$l" ];then s={NO_SHELL};fi;echo {nonce};'
        f"echo {nonce} $r $s >&4{after}\n"
    )


_FIND = (
    f"for p in {' '.join(path for shell in SHELLS for path in shell.paths)};do "
    "[ -x $p ]&&break;done;s=${p##*/}"
)


_SPEAK = "exec 2>&4 4>&-"


# A session of its own: what a command does to its process group is nothing to who starts it.
_APART = 'command -v setsid >/dev/null&&set -- setsid "$@";'


def _start(mark: int, account: Account) -> str:
    variables = environment(account.name, account.home, "")
    words = " ".join(
        in_a_line(f"{name}={value}") for name, value in variables.items() if name != "SHELL"
    )
    bash, sh = (" ".join(map(quote, shell.arguments[1:])) for shell in SHELLS)
    return (
        f"umask 022;cd {in_a_line(account.home)} 2>/dev/null||cd /;"
        f"{limit(mark)};"
        f'set -- {prefix(account)}env -i {words} "SHELL=$p" $p;{_APART}'
        f'case $p in *bash)exec "$@" {bash} bash;;esac;exec "$@" {sh} sh'
    )


def limit(mark: int) -> str:
    """Text that marks a shell and what it starts."""
    return f"ulimit -x {mark} 2>/dev/null||ulimit -w {mark} 2>/dev/null"


def prefix(account: Account) -> str:
    """Words before a program that is to run as another user; none where `su` does it."""
    if account.become != "setpriv":
        return ""
    return f"setpriv --reuid {account.uid} --regid {account.gid} --init-groups "


def _in_english(path: str) -> str:
    """What a line about a file starts with: the path in `$f`, messages in English."""
    return f"{_SPEAK};LC_ALL=C;export LC_ALL;f={in_a_line(path)}"
