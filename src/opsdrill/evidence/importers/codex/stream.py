"""What `codex exec --json` prints: JSON lines of threads, turns and items, without times.

Facts: the program's own description of these events, `codex-rs/exec/src/exec_events.rs` of its
repository. What the agent was asked is not among them.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable

from opsdrill.evidence.importers.codex.shell import shell_text
from opsdrill.evidence.transcripts.call_ids import CallIds
from opsdrill.evidence.transcripts.glimpse import Glimpse
from opsdrill.evidence.transcripts.rows import listing, mapping, spoken, text, whole, within
from opsdrill.evidence.transcripts.transcript import Transcript
from opsdrill.evidence.transcripts.work import CALLS
from opsdrill.model.job import Outcome, Stop, ToolKind

_ITEMS = frozenset({"item.started", "item.updated", "item.completed"})
_SILENT = frozenset({"reasoning", "plan", "error"})
"""Items that are neither words nor deeds."""
_OUTCOMES: dict[str | None, Outcome] = {"declined": "refused", "failed": "failed"}


def is_stream(glimpse: Glimpse) -> bool:
    """A thread begins in it, or an item with an id and a type of its own."""
    return any(
        (text(row, "type") == "thread.started" and text(row, "thread_id") is not None)
        or (text(row, "type") in _ITEMS and text(row, "item", "id") and text(row, "item", "type"))
        for row in glimpse.rows
    )


class StreamReader:
    """Tells a transcript what each line says."""

    def __init__(self, told: Transcript) -> None:
        self.told = told
        self._ids = CallIds()
        self._turns = 0
        self._kinds: dict[str | None, Callable[[str, dict[str, object]], None]] = {
            "command_execution": self._command,
            "file_change": self._files,
            "mcp_tool_call": self._mcp,
            "collab_tool_call": self._agent,
            "web_search": self._other,
            "todo_list": self._other,
        }
        told.written_by("Codex")

    def line(self, line: dict[str, object]) -> None:
        """One line, of whatever kind."""
        kind = text(line, "type")
        match kind:
            case "thread.started":
                self.told.job = self.told.job or text(line, "thread_id")
            case "turn.started":
                self.told.goes_on()
            case "turn.completed":
                self._used(line)
                self.told.end("completed", "turn.completed")
            case "turn.failed":
                self._failed("turn.failed", text(line, "error", "message"))
            case "error":
                self._failed("error", text(line, "message"))
            case _ if kind in _ITEMS or "item" in line:
                self._item(mapping(line, "item"), over=kind == "item.completed")
            case _ if "payload" in line:
                self.told.ledger.lose("a line belongs to a rollout and no stream", *CALLS)

    def _item(self, item: dict[str, object], *, over: bool) -> None:
        named, kind = text(item, "id"), text(item, "type")
        if kind == "agent_message":
            self.told.main.say(text(item, "text"), id=named)
            self.told.goes_on()
        elif kind in self._kinds:
            self.told.goes_on()
            known = self._ids.of(named) if named is not None else None
            waits = known is not None and self.told.main.waits_for(known)
            id = known if known is not None and waits else self._ids.new(named)
            self._kinds[kind](id, item)
            if over:
                self._returned(id, item)
        elif kind not in _SILENT:
            self.told.ledger.lose("an item is of no type that is known here", *CALLS)

    def _command(self, id: str, item: dict[str, object]) -> None:
        command = item.get("command")
        given = _given(command) if isinstance(command, str) else command
        self.told.main.call(id, "shell", "shell", {"command": given})

    def _files(self, id: str, item: dict[str, object]) -> None:
        changes = listing(item, "changes")
        files: list[tuple[ToolKind, dict[str, object]]] = [
            (
                "write_file" if text(change, "kind") == "add" else "update_file",
                {"path": within(change, "path"), "change": within(change, "kind")},
            )
            for change in changes
        ]
        if not files:
            self.told.ledger.lose("a change of files does not say of which", *CALLS)
        elif not self.told.main.has_call(id):
            self.told.main.call_files(id, "apply_patch", files)

    def _mcp(self, id: str, item: dict[str, object]) -> None:
        tool, server = text(item, "tool"), text(item, "server")
        self.told.main.call(id, "mcp", tool, item.get("arguments"), server=server)

    def _agent(self, id: str, item: dict[str, object]) -> None:
        given = {key: item[key] for key in ("prompt", "receiver_thread_ids") if key in item}
        self.told.main.call(id, "other", text(item, "tool"), given, revised=True)
        if text(item, "tool") == "spawn_agent" and item.get("status") == "completed":
            self.told.delegate(id)

    def _other(self, id: str, item: dict[str, object]) -> None:
        given = {key: item[key] for key in ("query", "action", "items") if key in item}
        self.told.main.call(id, "other", text(item, "type"), given, revised=True)

    def _returned(self, id: str, item: dict[str, object]) -> None:
        status, code = text(item, "status"), whole(item, "exit_code")
        # A command that ended with a failure ran; one without a status never began.
        outcome: Outcome = _OUTCOMES.get(status, "ran") if code is None else "ran"
        output = text(item, "aggregated_output") or text(item, "error", "message")
        output = output or spoken(within(item, "result", "content")) or None
        if self.told.main.has_call(id):
            self.told.main.returned(id, output=output, exit_code=code, outcome=outcome)

    def _failed(self, word: str, said: str | None) -> None:
        reason = (said or "").strip().partition("\n")[0][:200] or "the program gave an error"
        self.told.end("failed", word, Stop(reason=reason, fault="infrastructure"))

    def _used(self, line: dict[str, object]) -> None:
        """What a turn used; each is counted for itself."""
        self._turns += 1
        usage = mapping(line, "usage")
        if usage:
            self.told.main.use(
                f"turn {self._turns}",
                input_tokens=whole(usage, "input_tokens"),
                output_tokens=whole(usage, "output_tokens"),
            )


def _given(command: str) -> str:
    """The text that a shell got, where the words only start a shell with it."""
    try:
        words = shlex.split(command)
    except ValueError:
        return command
    inner = shell_text(words)
    return command if inner is None else inner
