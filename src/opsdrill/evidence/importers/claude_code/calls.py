"""Claude Code's calls: what its tools do, what became of a call, and what was used."""

from __future__ import annotations

import re

from opsdrill.evidence.transcripts.rows import mapping, number, text, whole, within
from opsdrill.evidence.transcripts.work import Work
from opsdrill.model.job import Outcome, ToolKind

_EDITS = frozenset({"Edit", "MultiEdit", "NotebookEdit"})
_EXIT = re.compile(r"(?:Error: )?Exit code (\d{1,5})\b")
_TIMED_OUT = re.compile(r"^(?:Error: )?Command timed out after ", re.MULTILINE)
_REFUSED = re.compile(
    r"The user doesn't want to (?:proceed with|take) this"
    r"|Claude requested permissions|Permission (?:to use|for this) "
    r"|This (?:Bash )?command (?:requires approval|contains multiple operations\.)"
    r"|.{1,500} was blocked\. For security, Claude Code"
    r"|(?:Error: )?PreToolUse:"
    r"|<tool_use_error>(?:Cancelled|Sibling tool call errored)"
)


def called(
    name: str | None, arguments: dict[str, object]
) -> tuple[str | None, str | None, ToolKind, dict[str, object]]:
    """The tool's name, its MCP server, what it does, and its arguments as a record has them."""
    if name is not None and name.startswith("mcp__"):
        server, _, tool = name.removeprefix("mcp__").partition("__")
        return tool or name, server, "mcp", arguments
    if name in ("Bash", "PowerShell"):
        return name, None, "shell", arguments
    if name == "Write" or name in _EDITS:
        path = arguments.get("file_path", arguments.get("notebook_path"))
        rest = {key: arguments[key] for key in arguments if not key.endswith("_path")}
        kind: ToolKind = "write_file" if name == "Write" else "update_file"
        return name, None, kind, {"path": path, **rest}
    return name, None, "other", arguments


def outcome_of(shell: bool, error: bool, output: str, result: object) -> tuple[Outcome, int | None]:
    """What became of a call, and the status of a command where the text has it."""
    status = _EXIT.match(output) if error and shell else None
    interrupted = within(result, "interrupted") is True
    said = f"{output}\n{text(result, 'stderr') or ''}" if interrupted else output
    if shell and (error or interrupted) and _TIMED_OUT.search(said):
        return "timed_out", int(status[1]) if status else None
    if status is not None:
        return "ran", int(status[1])
    if error and _REFUSED.match(output):
        return "refused", None
    # Older versions give a failing command's output as an error without its status.
    return ("failed" if error and (not shell or "<tool_use_error>" in output) else "ran"), None


def tells_status(version: str | None) -> bool:
    """Whether this version puts a failing command's status before its output, always."""
    major = re.match(r"(\d{1,4})\.", version or "")
    return major is not None and int(major[1]) >= 2


def total_of(row: dict[str, object]) -> dict[str, object]:
    """What a whole stream used: of all models where it says so."""
    models = [each for each in mapping(row, "modelUsage").values() if isinstance(each, dict)]
    main = max(models, key=lambda each: number(each, "outputTokens") or 0, default=None)
    names = [name for name, each in mapping(row, "modelUsage").items() if each is main]
    usage = mapping(row, "usage")
    if models:
        keys = {
            "input_tokens": "inputTokens",
            "cache_creation_input_tokens": "cacheCreationInputTokens",
            "cache_read_input_tokens": "cacheReadInputTokens",
            "output_tokens": "outputTokens",
        }
        usage = {
            key: sum(whole(each, theirs) or 0 for each in models) for key, theirs in keys.items()
        }
    cost = number(row, "total_cost_usd")
    if not usage and cost is None:
        return {}
    return usage | {"cost": cost, "model": names[0] if names else None}


def use(work: Work, id: str | None, usage: dict[str, object]) -> None:
    """Input is all that the model read, from its provider's cache too."""
    read = [
        whole(usage, key)
        for key in ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    ]
    counted = [tokens for tokens in read if tokens is not None]
    work.use(
        id,
        model=text(usage, "model"),
        input_tokens=sum(counted) if counted else None,
        output_tokens=whole(usage, "output_tokens"),
        cost_usd=number(usage, "cost"),
    )
