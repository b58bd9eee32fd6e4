"""Commands that may hide in calls of tools that are not known here.

A tool of somebody's own may run a command, and whatever is typed into a program that runs may be
one for a shell in it. Such a call is kept as what it is, a call of a tool; that the shell commands
are all of them nobody can say then.
"""

from __future__ import annotations

import re

from opsdrill.evidence.transcripts.rows import listing, mapping

_KEYS = frozenset(
    {
        "bash", "bashcommand", "cmd", "cmdline", "commandline", "command", "commands", "powershell",
        "script", "shell", "shellcommand", "shellscript",
    }
)  # fmt: skip
"""Names of arguments that are commands, without what parts their words."""
_CODE = frozenset({"code", "javascript", "pythoncode", "source"})
"""Names of arguments that are programs."""
_RUNS = re.compile(
    r"\bsubprocess\b|\bpty\.spawn\b|\bos\.(?:system|popen|exec|spawn|posix_spawn)"
    r"|\bchild_process\b|^[ \t]*!|^[ \t]*%(?:%?(?:bash|sh|script)\b|sx\b|system\b)",
    re.MULTILINE,
)
"""What runs commands in a program in Python, IPython or JavaScript."""
_NO_COMMANDS = frozenset(
    {"view", "create", "str_replace", "insert", "undo_edit", "delete", "rename"}
)
"""What editors of files call their own commands."""
_NO_SHELLS = frozenset({"slashcommand", "skill"})
"""Tools whose commands are the agent's program's own."""
_TYPED_INTO = re.compile(
    r"(?:write|send)_?(?:stdin|input|keys?|bash|shell|powershell|terminal|pty)(?:_async)?"
)
_TYPED = ("chars", "command", "input", "keys", "text", "data", "stdin")
_KEYS_ONLY = re.compile(r"(?:\{\w+\}|[CMS]-\S|\\x[0-9a-f]{2}|[\x00-\x20\x7f\x1b])*\S?\s*")
"""Keys, control characters, or one letter as an answer."""
_LONG = 100
"""Characters past which what was typed is no few keys."""
_DEEP = 6


def hides_command(tool: str | None, arguments: object) -> bool:
    """Whether a call may have run a command that stands in what its tool was given.

    Args:
        tool: its name; of one that is not known to be something else.
        arguments: what it was given.
    """
    name = _plain(tool or "")
    if name in _NO_SHELLS:
        return False
    given = mapping(arguments)
    into = given.get("is_input") in (True, "true")
    if into or _TYPED_INTO.fullmatch((tool or "").strip().lower()):
        return any(_typed(given.get(key)) for key in _TYPED)
    return _command_in(arguments, _DEEP)


def _command_in(value: object, deep: int) -> bool:
    if deep == 0:
        return False
    if isinstance(value, dict):
        return any(
            (_plain(str(key)) in _KEYS and _is_command(each))
            or (_plain(str(key)) in _CODE and isinstance(each, str) and _RUNS.search(each))
            or _command_in(each, deep - 1)
            for key, each in value.items()
        )
    return any(_command_in(each, deep - 1) for each in listing(value))


def _is_command(value: object) -> bool:
    if isinstance(value, str):
        return bool(value.strip()) and value not in _NO_COMMANDS
    return any(isinstance(word, str) and word.strip() for word in listing(value))


def _typed(value: object) -> bool:
    if not isinstance(value, str):
        return False
    keys = value.strip()
    return len(keys) > _LONG or not _KEYS_ONLY.fullmatch(keys)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()
