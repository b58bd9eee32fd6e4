"""`ssh HOST COMMAND` inside a command: the host and the command that ran there.

Only what can be read off the text is taken apart. An expansion, a glob, a pipe or an option that
names another machine leaves the command where it was.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from opsdrill.evidence.transcripts.shell_words import Unsure, document, unquoted
from opsdrill.model.job import ToolCall

_LONGEST = 256 * 1024
"""Bytes of a command that are still parsed."""
_HOPS = 4
"""How many `ssh` inside each other are followed."""

_CONNECTION_FAILED = 255
"""What `ssh` itself ends with; the command may never have run."""

_FLAGS = frozenset("1246AaCfgkKMnqTtvXxYy")
_WITH_VALUE = frozenset("BbcEeFIiJlmopPS")
# All others run no command (-N, -V, -G, -s ...) or also open a way to elsewhere (-L, -R, -W ...).
_ELSEWHERE = frozenset(
    {
        "hostname",
        "knownhostscommand",
        "localcommand",
        "permitlocalcommand",
        "proxycommand",
        "remotecommand",
        "sessiontype",
        "stdinnull",
    }
)
"""Settings of `-o` that change what runs where."""

_HOST = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]*|[0-9A-Fa-f:.]+(?:%[A-Za-z0-9]+)?")
_URI = re.compile(r"ssh://(?:[^/@]*@)?(\[[^]/]*\]|[^:/@]+)(?::\d*)?/?")
_DURATION = re.compile(r"\d+(?:\.\d*)?[smhd]?|\.\d+[smhd]?")
_SPACE = re.compile(rb"(?:[ \t\n]|\\\n)*")
_GAP = re.compile(rb"(?:[ \t]|\\\n)*[ \t](?:[ \t]|\\\n)*")
_SHELL = re.compile(r"(?:/usr)?(?:/bin/)?(?:bash|sh|dash|ash|zsh|ksh)")
_SHELL_FLAGS = re.compile(r"-[selxu]+|--|--login|--norc|--noprofile")


@dataclass(frozen=True, slots=True)
class _Remote:
    host: str
    command: str


def over_ssh(call: ToolCall, host: str | None) -> tuple[str | None, ToolCall]:
    """The host that a shell call really worked on, and the call as that host saw it.

    Only a command that does nothing but run another one over ssh is taken apart; anything else
    stays where it was. The command as it was given stands under `via` in the arguments.
    """
    if call.exit_code == _CONNECTION_FAILED or not isinstance(call.arguments, dict):
        return host, call
    command = call.command
    for _ in range(_HOPS):
        remote = _remote(command)
        if remote is None:
            break
        host, command = remote.host, remote.command
    if command == call.command:
        return host, call
    arguments = {**call.arguments, "command": command, "via": call.command}
    return host, call.model_copy(update={"arguments": arguments})


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))


def _remote(command: str) -> _Remote | None:
    """What a command runs elsewhere; None where it is not one `ssh` and nothing else."""
    if "ssh" not in command or "\0" in command:
        return None
    text = command.encode(errors="replace")
    if len(text) > _LONGEST:
        return None
    root = _parser().parse(text).root_node
    if root.has_error:
        return None
    try:
        _covered(text, 0, len(text), root)
        simple, stdin = _only(root, text)
        words = [unquoted(word) for word in _words(simple)]
        if not _read_alike(simple, words):
            return None
        return _sent(_behind(words), stdin)
    except Unsure:
        return None


def _covered(text: bytes, start: int, end: int, node: Node) -> None:
    """Raises where a grammar's node leaves out something between its parts."""
    for child in node.children:
        if not _SPACE.fullmatch(text[start : child.start_byte]):
            raise Unsure
        start = child.end_byte
    if not _SPACE.fullmatch(text[start:end]):
        raise Unsure


def _only(root: Node, text: bytes) -> tuple[Node, str | None]:
    """The one simple command of a program, and the document on its standard input."""
    parts = [part for part in root.children if part.type not in ("comment", ";", "\n")]
    noted = any(part.type == "comment" for part in root.children)
    # Behind a line that goes on, what looks like a comment may be the rest of a word.
    if len(parts) != 1 or (noted and b"\\\n" in text):
        raise Unsure
    part, stdin = parts[0], None
    if part.type == "redirected_statement":
        _covered(text, part.start_byte, part.end_byte, part)
        body = part.child_by_field_name("body")
        for redirect in part.children_by_field_name("redirect"):
            stdin = _redirected(redirect, stdin)
        known = 1 + len(part.children_by_field_name("redirect"))
        if body is None or part.child_count != known:
            raise Unsure
        part = body
    if part.type != "command":
        raise Unsure
    for redirect in part.children_by_field_name("redirect"):
        stdin = _redirected(redirect, stdin)
    return part, stdin


def _redirected(redirect: Node, stdin: str | None) -> str | None:
    """The standard input behind a redirection; raises where it does more than that."""
    if redirect.type in ("heredoc_redirect", "herestring_redirect"):
        if stdin is not None:
            raise Unsure
        return document(redirect)
    destinations = redirect.children_by_field_name("destination")
    # The grammar takes words behind a redirection for more destinations.
    if redirect.type != "file_redirect" or len(destinations) != 1:
        raise Unsure
    to = destinations[0]
    sign = next((child.type for child in redirect.children if not child.is_named), "")
    if sign == "<" and redirect.child_by_field_name("descriptor") is None:
        stdin = None  # the last one counts
    elif sign not in (">", ">>", "&>", ">|") and not (sign == ">&" and to.text in (b"1", b"2")):
        raise Unsure
    if sign != ">&" and to.text != b"/dev/null":
        raise Unsure
    return stdin


def _words(simple: Node) -> Iterator[Node]:
    text, end = simple.text or b"", None
    for child in simple.children:
        # Where the grammar sees a border the shell must see one too.
        gap = text[(end or 0) - simple.start_byte : child.start_byte - simple.start_byte]
        if end is not None and not _GAP.fullmatch(gap):
            raise Unsure
        end = child.end_byte
        if child.type == "variable_assignment":
            value = child.child_by_field_name("value")
            if value is not None:
                unquoted(value)  # one that runs or reads something is not taken apart
        elif child.type == "command_name":
            yield from child.children
        elif not child.type.endswith("_redirect"):
            yield child


def _read_alike(simple: Node, words: list[str]) -> bool:
    """A second reader sees the same words; the grammar knows more, but is wrong at odd places."""
    text = (simple.text or b"").decode(errors="replace")
    if "$'" in text or re.search(r"\\[$`\n]", text) or simple.children_by_field_name("redirect"):
        return True  # what that reader does not know
    before = sum(child.type == "variable_assignment" for child in simple.children)
    try:
        return shlex.split(text)[before:] == words
    except ValueError:
        return False


def _behind(words: Sequence[str]) -> Sequence[str]:
    """The words from `ssh` on, behind `sudo`, `env` and `timeout`."""
    while words:
        name, rest = words[0], words[1:]
        if name == "ssh" or (name.startswith("/") and name.endswith("/ssh")):
            return rest
        if name == "sudo":
            words = _after_options(rest, "EHSnk", "ugpC")
            words = _after_assignments(words)
        elif name == "env":
            words = _after_assignments(rest)
        elif name == "timeout":
            while rest and rest[0] in ("--foreground", "--preserve-status"):
                rest = rest[1:]
            words = _after_options(rest, "v", "ks")
            if not words or not _DURATION.fullmatch(words[0]):
                raise Unsure
            words = words[1:]
        else:
            break
    raise Unsure


def _after_options(words: Sequence[str], flags: str, with_value: str) -> Sequence[str]:
    return _options(words, frozenset(flags), frozenset(with_value))[1]


def _after_assignments(words: Sequence[str]) -> Sequence[str]:
    while words and re.match(r"[A-Za-z_]\w*=", words[0]):
        words = words[1:]
    return words


def _options(
    words: Sequence[str], flags: frozenset[str], with_value: frozenset[str]
) -> tuple[list[tuple[str, str]], Sequence[str], bool]:
    """As getopt reads them: the options, the words behind them, and whether `--` ended them."""
    found: list[tuple[str, str]] = []
    while words and words[0].startswith("-") and words[0] != "-":
        word, words = words[0], words[1:]
        if word == "--":
            return found, words, True
        letters = word[1:]
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter in with_value:
                if not letters:
                    if not words:
                        raise Unsure
                    letters, words = words[0], words[1:]
                found.append((letter, letters))
                break
            if letter not in flags:
                raise Unsure
            found.append((letter, ""))
    return found, words, False


def _sent(words: Sequence[str], stdin: str | None) -> _Remote:
    """Host and command; like OpenSSH 9, options may stand behind the host too."""
    options, words, ended = _options(words, _FLAGS, _WITH_VALUE)
    if not words:
        raise Unsure
    host, words = _host(words[0]), words[1:]
    if not ended:
        more, words, _ = _options(words, _FLAGS, _WITH_VALUE)
        options += more
    for letter, value in options:
        if letter == "o" and re.split(r"[=\s]", value.strip())[0].lower() in _ELSEWHERE:
            raise Unsure
    if stdin is None:
        command = " ".join(words)
    elif _reads_commands(words) and not any(letter in "nf" for letter, _ in options):
        command = stdin.removesuffix("\n")
    else:
        raise Unsure
    if not command.strip():
        raise Unsure
    return _Remote(host, command)


def _host(word: str) -> str:
    uri = _URI.fullmatch(word)
    host = uri[1].strip("[]") if uri else word.rpartition("@")[2]
    if not _HOST.fullmatch(host):
        raise Unsure
    return host


def _reads_commands(words: Sequence[str]) -> bool:
    """The remote side is a shell that takes its commands from standard input."""
    if words and words[0] == "sudo":
        words = _after_options(words[1:], "EHSn", "u")
        if not words:
            return False
    if not words:
        return True  # the login shell
    return bool(_SHELL.fullmatch(words[0])) and all(map(_SHELL_FLAGS.fullmatch, words[1:]))
