"""Tools that agents of many makes share, known by their names and arguments."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from datetime import datetime

from opsdrill.evidence.transcripts.patch import files_of
from opsdrill.evidence.transcripts.rows import listing, mapping, row, text
from opsdrill.evidence.transcripts.work import Work
from opsdrill.model.job import ToolKind

_SHELL = re.compile(
    r"(?:^|[_\-. ])(?:bash|sh|shell|zsh|cmd|commands?|terminal|ssh)(?:$|[_\-. ])"
    r"|^(?:exec|execute|run)$"
)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_COMMAND_KEYS = ("command", "cmd", "shell_command", "bash_command", "script")
_PATH_KEYS = (
    "path", "file_path", "filepath", "filePath", "filename", "file", "target_file", "notebook_path",
)  # fmt: skip
_KEYS_TYPED = re.compile(r"(?:[CMS]-\S|Enter|Escape|Tab|Space|Up|Down|Left|Right|BSpace)?\s*")
"""What Terminus types into its terminal without a command: nothing, or the name of a key."""
_WRITE = {"write", "write_file", "write_to_file", "create_file", "save_file", "file_write"}
_UPDATE = {
    "edit", "edit_file", "update_file", "multiedit", "multi_edit", "replace", "replace_in_file",
    "str_replace", "search_replace", "insert", "append_to_file", "file_edit",
    "notebookedit", "notebook_edit",
}  # fmt: skip
_EDITORS = {
    "str_replace_editor", "str_replace_based_edit_tool", "text_editor", "edit_anthropic",
    "str_replace_based_edit", "editor", "file_editor",
}  # fmt: skip
_EDITOR_KINDS: dict[str | None, ToolKind] = {
    "create": "write_file",
    "str_replace": "update_file",
    "insert": "update_file",
    "undo_edit": "update_file",
}
_PATCHES = {"apply_patch", "applypatch", "patch"}
_MCP = re.compile(r"mcp__(.+?)__(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Known:
    """What a call of a tool is.

    Args:
        kind: what the tool does.
        tool: the tool's name.
        arguments: as the job record has them for this kind.
        server: of an MCP tool.
        files: what each file gets, where one call changes several.
    """

    kind: ToolKind
    tool: str
    arguments: object
    server: str | None = None
    files: list[tuple[ToolKind, dict[str, object]]] = field(default_factory=list)

    @property
    def host(self) -> str | None:
        """The host that the agent named to the tool, where the tool works on one."""
        if self.kind not in ("shell", "write_file", "update_file"):
            return None
        return text(self.arguments, "host") or text(self.arguments, "hostname") or None

    def tell(
        self,
        work: Work,
        id: str | None,
        *,
        at: datetime | None = None,
        host: str | None = None,
    ) -> str:
        """Tell of the call, made at a time and on a host if the transcript says so; give its id."""
        if self.files:
            return work.call_files(id, self.tool, self.files, at=at)
        return work.call(
            id,
            self.kind,
            self.tool,
            self.arguments,
            server=self.server,
            at=at,
            host=host or self.host,
        )


def known(name: str, arguments: object) -> Known:
    """What a call of a tool is, by the tool's name and what it was given.

    Args:
        name: as the model knows the tool.
        arguments: what the model gave it; anything.
    """
    own = name.strip().rpartition("/")[2].removeprefix("functions.")
    own = _HUMP.sub("_", own).lower()
    arguments = _as_given(arguments)
    mcp = _MCP.fullmatch(name)
    if mcp:
        return Known("mcp", mcp[2], arguments, server=mcp[1])
    if own in _PATCHES:
        return _patched(name, arguments)
    if isinstance(arguments, str) and own not in _EDITORS and _SHELL.search(own):
        return Known("shell", name, {"command": arguments})
    given = mapping(arguments)
    path = next((given[key] for key in _PATH_KEYS if isinstance(given.get(key), str)), None)
    kind: ToolKind | None = None
    if own in _EDITORS:
        kind = _EDITOR_KINDS.get(text(given, "command"))
    elif own in _WRITE:
        kind = "write_file"
    elif own in _UPDATE:
        kind = "update_file"
    if kind is not None and path is not None:
        return Known(kind, name, {"path": path} | {k: v for k, v in given.items() if k != "path"})
    if kind is None and own not in _EDITORS and _SHELL.search(own):
        command = _typed(given) or next(
            (each for key in _COMMAND_KEYS if (each := _line(given.get(key)))), None
        )
        # What is typed into a program that runs already is no command.
        if command is not None and given.get("is_input") not in (True, "true"):
            rest = {k: v for k, v in given.items() if k not in (*_COMMAND_KEYS, "keystrokes")}
            return Known("shell", name, {"command": command} | rest)
        if not isinstance(arguments, dict | None):
            return Known("shell", name, arguments)  # whatever it ran, it cannot be read
    return Known("other", name, arguments)


def _as_given(arguments: object) -> object:
    """Arguments that a model's provider gives as a text of JSON are what the text says."""
    if isinstance(arguments, str) and arguments.startswith("{"):
        read = row(arguments.encode(errors="replace"))
        return read if isinstance(read, dict) else arguments
    return arguments


def _typed(given: dict[str, object]) -> str | None:
    """A command that is typed key by key, without the last key: that enters it."""
    keys = text(given, "keystrokes")
    return None if keys is None or _KEYS_TYPED.fullmatch(keys) else keys.removesuffix("\n")


def _patched(name: str, arguments: object) -> Known:
    given = mapping(arguments)
    texts = [arguments, *(given.get(key) for key in ("patch", "input", "patch_text", "patchText"))]
    for each in texts:
        files = files_of(each) if isinstance(each, str) else []
        if files:
            return Known(files[0][0], name, arguments, files=files)
    return Known("other", name, arguments)


def _line(value: object) -> str | None:
    """A command as it is given to the shell; a list of words is what a shell would make it of."""
    if isinstance(value, str):
        return value if value.strip() else None
    words = [word for word in listing(value) if isinstance(word, str)]
    if not words or len(words) != len(listing(value)):
        return None
    shell = words[0].rpartition("/")[2]
    if len(words) == 3 and shell in ("sh", "bash", "zsh", "dash") and words[1] in ("-c", "-lc"):
        return words[2]
    return shlex.join(words)
