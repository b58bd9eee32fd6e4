"""Text for a shell that stays: it starts the fresh shells of one command after another.

A command's shell is what it would be without it: started anew, with nothing carried over. What is
saved is the way there, which costs an SSH server more than the shell does. The shell that stays
must never take one command's output for another's. So after each command it looks whether
anything that was started meanwhile is still alive; if so, it takes no more commands.
"""

from __future__ import annotations

from opsdrill.hosts.command import BOOT, SHELLS, Account, environment, quote

FREE, HELD = "free", "held"
"""What stands behind the exit status of a command: whether the shell takes another one."""

ENTRY = f"exec -c /bin/sh -c {quote(BOOT)}"
"""What stands on the command line of a login whose shell is bash."""

# Read to the NUL, carry the mark, say that it is all here, evaluate. Half a text is none.
_BASH = (
    'read -r l m<&3;IFS= read -rd "" BASH_EXECUTION_STRING<&3||exit;exec 3<&-;ulimit -x $m;'
    'echo $l $0>&2;unset l m;eval -- "$BASH_EXECUTION_STRING"'
)
_MOST = 500
"""Processes started during a command that are looked for one by one."""


def stay_line(nonce: str, account: Account) -> str:
    """The first line on standard input of a shell that stays.

    Only for root, who sees all processes. The shell works in three steps for each command:

    1. It starts bash, which reads the command's text up to a NUL from the same standard input and
       then writes the nonce and its name on standard error.
    2. It reads on up to the closing nonce, so that nothing which a shell left unread is ever taken
       for something else: the command was not read then (`NO_SHELL`).
    3. It looks whether anything that was started meanwhile holds its output open. All process
       numbers that Linux gave since the command began are tried in their order; the last one
       given stands in /proc/loadavg. Whatever a process started before it ended comes after it.

    Before the first command it writes the nonce on standard output: what login scripts print comes
    before it. An empty line in place of a command gets an empty line for an answer.

    What cannot be known is taken for held: a /proc of other process numbers than the shell's own
    (it is tried on a process that the shell starts itself), more processes than are worth a look.

    Args:
        nonce: letters and digits that no output has.
        account: who runs the commands, the login itself.
    """
    starts = "".join(
        f"SHELL={path};[ -x {path} ]&&exec setsid {path} --norc -c {quote(_BASH)} bash;"
        for path in SHELLS[0].paths
    )
    command = (
        f"(exec 3<&0 </dev/null 2>&4 4>&-;cd {quote(account.home)} 2>/dev/null||cd /;"
        f"unset PWD OLDPWD SHLVL;{starts}exit 127);r=$?"
    )
    rest = (
        f"s={FREE};while :;do IFS= read -r l||exit;"
        'case $l in "$e/")break;;*"$e/")s=none;break;;*)s=none;;esac;done'
    )
    look = (
        f"while [ $s = {FREE} ]&&[ $f -lt $g ];do f=$((f+1));[ -e /proc/$f ]&&"
        "for x in /proc/$f/fd/*;do [ $x -ef /proc/$$/fd/1 ]||[ $x -ef /proc/$$/fd/4 ]&&"
        f"s={HELD};done;done"
    )
    alive = (
        f"[ $s != {FREE} ]||[ $k ]||s={HELD};m=$f;"
        f"while [ $s = {FREE} ];do {_last('g')};case ${{f:-x}}${{g:-x}} in *[!0-9]*)s={HELD};;*)"
        f"[ $g -gt $m ]&&[ $g -ge $f ]&&[ $((g-f)) -le {_MOST} ]||s={HELD};"
        f"[ $f -lt $g ]||break;{look};;esac;done"
    )
    known = (
        "k=;p=;read -r p l </proc/self/stat;(:)& wait;"
        f'{_last("g")};case ${{g:-x}} in *[!0-9]*);;*)[ "$p" = $$ ]&&[ $((g-$!)) -ge 0 ]&&'
        f"[ $((g-$!)) -le {_MOST} ]&&[ /proc/$$/fd/1 -ef /proc/self/fd/1 ]&&k=1;;esac"
    )
    words = " ".join(
        f"{name}={quote(value)}"
        for name, value in environment(account.name, account.home, "").items()
    )
    return (
        "exec 4>&2 2>/dev/null;trap : HUP INT QUIT USR1 USR2 ALRM TERM;cd /;umask 022;"
        f"export {words};"
        f"{known};echo {nonce};while IFS= read -r e;do [ $e ]||{{ echo;continue; }};{_last('f')};"
        f"{command};{rest};{alive};"
        f"echo $e;echo $e $r $s >&4;[ $s = {FREE} ]||exit 0;done\n"
    )


def stay_input(nonce: str, mark: int, text: bytes) -> bytes:
    """One command on the standard input of a shell that stays; arguments as of `direct_input`."""
    name = nonce.encode()
    return b"%s\n%s %d\n%s\0%s/\n" % (name, name, mark, text or b"\n", name)


def _last(name: str) -> str:
    """Has the number of the process that was started last in a variable; empty if not known."""
    return f"{name}=;read -r a b c d {name} </proc/loadavg"
