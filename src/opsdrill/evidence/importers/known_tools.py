"""Tools of well-known agents: what a call does, by the tool's name and its arguments."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from opsdrill.evidence.importers.patch import files_of
from opsdrill.evidence.importers.rows import text
from opsdrill.model.job import ToolKind


@dataclass(frozen=True, slots=True)
class Doing:
    """What a call does: its kind, and the arguments and names it has in a job record."""

    kind: ToolKind
    tool: str
    arguments: dict[str, object]
    server: str | None = None


_SHELLS = {
    "Bash": "command",
    "bash": "command",
    "bash_command": "keystrokes",
    "exec_command": "cmd",
    "execute_bash": "command",
    "local_shell": "command",
    "run_shell_command": "command",
    "shell": "command",
    "shell_command": "command",
    "terminal": "command",
}
"""Shells, and the argument that holds what is given to them."""
_WRITERS = {
    "Write": "file_path",
    "create_file": "path",
    "write": "filePath",
    "write_file": "file_path",
}
_EDITORS = {
    "Edit": "file_path",
    "MultiEdit": "file_path",
    "NotebookEdit": "notebook_path",
    "edit": "filePath",
    "edit_file": "path",
    "replace": "file_path",
}
_COMMANDED = frozenset({"str_replace_editor", "str_replace_based_edit_tool", "file_editor"})
"""Editors whose argument `command` says what they do to a file."""
_CHANGES: dict[str, ToolKind] = {
    "create": "write_file",
    "str_replace": "update_file",
    "insert": "update_file",
    "undo_edit": "update_file",
}
_KEYS = re.compile(r"\s*|(?:[CMS]-\S|Enter|Escape|Tab|Space|Up|Down|Left|Right|BSpace)\s*")
"""What is typed without being a command: nothing, and the names of keys."""


def doings(name: str, arguments: dict[str, object]) -> list[Doing]:
    """What a call does; several where it changes several files at once.

    Args:
        name: the tool, as the agent knows it; `mcp__SERVER__TOOL` is one of an MCP server.
        arguments: as the agent gave them.
    """
    mcp = re.fullmatch(r"mcp__(.+?)__(.+)", name, re.DOTALL)
    if mcp:
        return [Doing("mcp", mcp[2], arguments, server=mcp[1])]
    if name in _SHELLS:
        return [_shell(name, _SHELLS[name], arguments)]
    if name in _COMMANDED:
        return [_commanded(name, arguments)]
    if name == "apply_patch":
        patch = text(arguments, "input") or text(arguments, "patch") or ""
        changes = [Doing(kind, name, each) for kind, each in files_of(patch)]
        return changes or [Doing("other", name, arguments)]
    for kind, keys in (("write_file", _WRITERS), ("update_file", _EDITORS)):
        path = text(arguments, keys.get(name, "")) or text(arguments, "path")
        if name in keys and path is not None:
            return [Doing(_kind(kind), name, {"path": path, **arguments})]
    return [Doing("other", name, arguments)]


def _kind(kind: str) -> ToolKind:
    return "write_file" if kind == "write_file" else "update_file"


def _shell(name: str, key: str, arguments: dict[str, object]) -> Doing:
    command = _command(arguments.get(key))
    typed = arguments.get("is_input") in (True, "true")
    if command is None or typed or not command.strip():
        return Doing("other", name, arguments)
    if key == "keystrokes":
        if _KEYS.fullmatch(command):
            return Doing("other", name, arguments)
        command = command.removesuffix("\n")
    rest = {other: value for other, value in arguments.items() if other != key}
    return Doing("shell", name, {"command": command, **rest})


def _command(value: object) -> str | None:
    """The text for the shell; of a list of words, what the shell among them is given."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        return None
    words = [str(word) for word in value]
    shell = len(words) == 3 and re.fullmatch(r"(?:/\S*/)?(?:ba|z|da)?sh", words[0])
    if shell and re.fullmatch(r"-l?c", words[1]):
        return words[2]
    return shlex.join(words)


def _commanded(name: str, arguments: dict[str, object]) -> Doing:
    kind = _CHANGES.get(text(arguments, "command") or "")
    if kind is None or text(arguments, "path") is None:
        return Doing("other", name, arguments)
    return Doing(kind, name, arguments)
