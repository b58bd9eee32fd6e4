"""Shell text for sessions behind a connection or a client program (see `command`).

What a session is to do stands on a command line here, as it does with SSH itself: its standard
input is the program's own. It stands there in pieces, so that looking for a name among command
lines does not find who looks.
"""

from __future__ import annotations

from collections.abc import Mapping

from opsdrill.hosts.command import (
    SHELLS,
    Account,
    environment,
    in_a_line,
    limit,
    marked,
    prefix,
    quote,
)
from opsdrill.hosts.session import SessionRequest, variables

LONGEST_LINE = 120_000
"""Bytes that a line may have: Linux takes 128 KiB for one argument of a program."""
_SERVERS = (
    "/usr/lib/openssh/sftp-server",
    "/usr/libexec/openssh/sftp-server",
    "/usr/lib/ssh/sftp-server",
    "/usr/libexec/sftp-server",
    "/usr/lib/sftp-server",
)
_SEPARATORS = "\x1f\x1e\x1d\x1c\x16\x15"
_PIECE = 3
# Puts the pieces together in a fresh shell, whose IFS is as it should be again afterwards.
_LAUNCHER = 'i=$IFS;set -f;IFS=$2;set -- $1;IFS=;t="$*";IFS=$i;set +f;set --;eval "unset i t;$t"'


def session_line(
    mark: int, account: Account, request: SessionRequest, server: str | None = None
) -> bytes:
    """The text that becomes a session's program, without a line break.

    Args:
        mark: as of `opsdrill.hosts.command.run_line`.
        account: whose session it is.
        request: what it is.
        server: the host's SFTP server, where files are asked for.
    """
    start = _start(mark, account, request, server)
    if account.become == "su":
        inside = f"exec su -s /bin/sh -c {in_a_line(start)} {quote(account.name)}"
        start = f"n=${{IFS#??}};{inside}"
    # A lone surrogate has no bytes of its own; everything else arrives as written.
    return start.encode(errors="surrogatepass")


def server_text() -> str:
    """Text for `ask_line` that prints the path of the host's SFTP server, if it has one."""
    return f"for f in {' '.join(_SERVERS)};do [ -x $f ]&&{{ echo $f;break;}};done;:"


def signal_text(mark: int, *names: str) -> str:
    """Text for `ask_line` that sends signals to a session, in this order.

    They go to the process group in its terminal's foreground, else to that of its first process:
    the one with the mark that started first, as of field 22 of proc(5)'s stat. Where that group is
    one of another pid namespace, they go to all with the mark.
    """
    kills = ";".join(f"kill -s {name} -- $g" for name in names)
    return (
        f"{marked(mark)}f;a=;for q in $p;do IFS= read -r x </proc/$q/stat||continue;"
        "set -- ${x##*)};shift 2;"
        '[ -z "$a" ]||[ ${18} -lt $a ]&&{ a=${18};g=-$1;[ $4 -gt 0 ]&&g=-$4;};'
        f'done;[ -z "$a" ]||{{ [ $g = -0 ]&&g=$p;{kills};}};:'
    )


def _start(mark: int, account: Account, request: SessionRequest, server: str | None) -> str:
    words = _words(account, variables(request))
    shells = " ".join(path for shell in SHELLS for path in shell.paths)
    return (
        f"n=${{IFS#??}};for p in {shells};do [ -x $p ]&&break;done;umask 022;"
        f"cd {in_a_line(account.home)} 2>/dev/null||cd /;{limit(mark)};"
        f'set -- {prefix(account)}env -i "SHELL=$p" {words};{_program(request, server)}'
    )


def _program(request: SessionRequest, server: str | None) -> str:
    if request.files and server is not None:
        return f'exec "$@" {quote(server)}'
    if request.command is None:
        return 'exec "$@" $p -l'
    separator = next((one for one in _SEPARATORS if one not in request.command), "")
    pieces = range(0, len(request.command), _PIECE)
    text = separator.join(request.command[at : at + _PIECE] for at in pieces)
    return (
        'case $p in *bash)set -- "$@" $p --norc;;*)set -- "$@" $p;;esac;'
        f'exec "$@" -c {quote(_LAUNCHER)} ${{p##*/}} {in_a_line(text)} {in_a_line(separator)}'
    )


def _words(account: Account, own: Mapping[str, str]) -> str:
    whole = {**environment(account.name, account.home, ""), **own}
    if "SHELL" not in own:
        del whole["SHELL"]
    return " ".join(in_a_line(f"{name}={value}") for name, value in whole.items())
