"""What a command is given on standard input: data, or what it may run as commands of its own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

_DATA = frozenset(
    """
    [ [[ apt-cache b2sum base32 base64 basename bunzip2 bzcat bzip2 cal cat cd chgrp chmod chown
    chpasswd cksum cmp column comm cp curl cut date dd df diff dig dirname dmesg dpkg-query du echo
    egrep expand export expr false fgrep file find fmt fold free fuser getent getfacl grep groups
    gunzip gzip head hexdump host hostname hostnamectl id install journalctl jq kill killall last ln
    locale loginctl ls lsblk lscpu lsof md5sum mkdir mktemp mv netstat nl nproc nslookup od openssl
    passwd paste pgrep pidof ping pkill printenv printf ps pwd read readlink realpath resize2fs rev
    rm rmdir rsync scp seq set setfacl sha1sum sha224sum sha256sum sha384sum sha512sum shuf sleep
    sort ss stat strings swapoff swapon sync sysctl systemctl tac tail tee test timedatectl touch tr
    tree true truncate tty umask uname unexpand uniq unlink unset unzip uptime vmstat w wait wc wget
    which who whoami xz xzcat zcat zgrep zstd zstdcat
    """.split()  # noqa: SIM905 - easier to read and to add to
)
"""Programs that take what they are given for data, or take nothing, unless an option of theirs
names another program. What starts programs of anybody's is none: a package's scripts, a service."""
_STARTS = re.compile(
    r"-[a-z]*I|--(co|strip)|"
    r"-.*(exec|ok(dir)?\Z|command|program|filter|script|pager|hook|engine|rsh|askpass|invoke)",
    re.IGNORECASE,
)
_TAR_LETTERS = "cxtruvzjJfpCkhPOamnUWS"
_TAR_WORDS = """absolute-names append auto-compress bzip2 create delete dereference directory
    exclude exclude-from extract file files-from get group gunzip gzip keep-old-files list
    no-recursion no-same-owner no-same-permissions numeric-owner overwrite owner
    preserve-permissions same-owner same-permissions sparse strip-components to-stdout
    update verbose verify xz zstd"""
_TAR = re.compile(f"-?[{_TAR_LETTERS}]*|--(?:{'|'.join(_TAR_WORDS.split())})?(?:=.*)?", re.DOTALL)
"""Options of `tar` that start nothing. Others do, and a part of their names is enough for it."""
_NAMES_ONE = re.compile(
    r"(?<![\w.-])(?:(?:ba|da|z|k|a|c|tc|fi)?sh|busybox|python[\d.]*|perl|ruby|node|php|lua|[gm]?awk|"
    r"xargs|parallel|eval|ssh)(?![\w.-])|/dev/stdin|/dev/fd/0|/proc/self/fd"
)
"""Something among the words of a command that does what it is told, wherever it stands."""
_BEFORE = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{", "time"})
_AFTER = frozenset({"fi", "done", "}"})
_AHEAD = {
    "sudo": ("nEHbkPS", "ugpCThR"),
    "env": ("i", "uC"),
    "nice": ("", "n"),
    "timeout": ("fpv", "ks"),
    "nohup": ("", ""),
    "exec": ("", ""),
    "command": ("p", ""),
}
"""Programs that start what stands behind them, the letters of their options, and of those that take
a word more."""
_SET = re.compile(
    r"(?:[a-z_][a-z0-9_]*|LANG|LANGUAGE|LC_[A-Z]+|TZ|TERM|COLUMNS|LINES|DEBIAN_FRONTEND)\+?=.*",
    re.DOTALL,
)
"""Variables that name no program, and no options, to any."""
_KEYS = b"\x03\x04\x1c"
"""Keys that end what runs at a terminal, or its input."""
_FOLDERS = re.compile(r"(/usr(/local)?)?/s?bin/")
_OPERATORS = re.compile(r"(&>>?|>[>|&]?|<[>&]?)|[();|&]")
"""The first group: what a word behind it names is where input or output goes."""
_PUNCTUATION = frozenset("();<>|&")
_EITHER = "\0"
_STRANGE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]|\$\(|`|[<>]\(|<<|\\\n")
"""What a shell makes something else of than words and operators, or splits elsewhere than we do."""


class GivenInput:
    """The input of one command.

    Args:
        command: the command's text.
        known: a text that may be input as a whole without anybody wondering: the agent's own
            ticket, which `ssh` passes on where nothing else is its standard input. A part of it
            may begin with what is a command.
        terminal: the command has one, where a pager that starts by itself takes commands.
    """

    def __init__(self, command: str, known: bytes = b"", *, terminal: bool = False) -> None:
        self._terminal = terminal
        self._data = not terminal and takes_data(command)
        self._known = known
        self._given = bytearray()
        self._other = False

    def add(self, data: bytes) -> None:
        """More of it is passed on."""
        if self._data or self._other:
            return
        if self._terminal:
            data = data.translate(None, _KEYS)
        self._given += data[: len(self._known) + 1 - len(self._given)]
        self._other = not self._known.startswith(self._given)

    def may_have_run(self, *, over: bool = False) -> bool:
        """The command may have done what its input said.

        Args:
            over: no more comes.
        """
        return self._other or (over and self._given not in (b"", self._known))


def takes_data(command: str) -> bool:
    """Nothing that this command starts does what its standard input says.

    Only what is known to be so is; a program that nobody knows may be a shell.
    """
    if _STRANGE.search(command) or _NAMES_ONE.search(command):
        return False
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return all(_is_known(part) for part in _parts(list(lexer)))
    except ValueError:
        return False


def _parts(words: list[str]) -> Iterator[list[str]]:
    """The words of each simple command, without where its input and output go."""
    part: list[str] = []
    skip = False
    for word in words:
        if not word or not _PUNCTUATION.issuperset(word):
            if not skip:
                part.append(word)
            skip = False
            continue
        for operator in _OPERATORS.finditer(word):
            if skip := operator[1] is not None:
                if part and part[-1].isdecimal():
                    # A number of its own, or the stream that goes there.
                    part[-1] = _EITHER
            else:
                yield part
                part = []
    yield part


def _is_known(part: list[str]) -> bool:
    rest = part
    while rest and (rest[0] in _BEFORE or _SET.fullmatch(rest[0])):
        rest = rest[1:]
    if not rest or rest[0] in _AFTER or rest[0] == "for":
        return True
    name, *words = rest
    if name in _AHEAD:
        if _EITHER in words:
            return False
        behind = _behind(words, *_AHEAD[name])
        # The time that `timeout` takes.
        return bool(behind) and _is_known(behind[1:] if name == "timeout" else behind)
    if _FOLDERS.match(name):
        name = name.rpartition("/")[2]
    if name == "export" and not all(_SET.fullmatch(word) for word in words):
        return False
    if name == "tar":
        return _takes_data_as_tar(words)
    return name in _DATA and not any(_STARTS.match(word) for word in words)


def _takes_data_as_tar(words: list[str]) -> bool:
    """No option is another than those that are known; the first word may be one without a dash."""
    options = [word for word in words[1:] if word.startswith("-")]
    return all(_TAR.fullmatch(word) for word in (*words[:1], *options))


def _behind(words: list[str], letters: str, taking: str) -> list[str]:
    """What stands behind the options; nothing where one of them is not known."""
    while words and words[0].startswith("-"):
        option = words[0][1:]
        takes = bool(option) and option[-1] in taking
        if not option or not set(option[:-1] if takes else option) <= set(letters):
            return []
        words = words[2:] if takes else words[1:]
    return words
