"""What a rollout of Codex tells, line by line."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import datetime

from opsdrill.evidence.importers.codex.results import result_of
from opsdrill.evidence.importers.codex.shell import shell_text
from opsdrill.evidence.transcripts.call_ids import CallIds
from opsdrill.evidence.transcripts.imported import Imported
from opsdrill.evidence.transcripts.ledger import Ledger
from opsdrill.evidence.transcripts.patch import files_of
from opsdrill.evidence.transcripts.reading import rows_of
from opsdrill.evidence.transcripts.rows import mapping, row, spoken, text, whole, within
from opsdrill.evidence.transcripts.source import Source
from opsdrill.evidence.transcripts.transcript import TOLD, Transcript
from opsdrill.model.job import Outcome, Stop

BARE = frozenset(
    {
        "message", "function_call", "function_call_output", "local_shell_call", "custom_tool_call",
        "custom_tool_call_output", "local_shell_call_output", "web_search_call", "reasoning",
    }
)  # fmt: skip
"""Items as they stood alone on a line in older versions."""
_SHELLS = frozenset({"exec_command", "shell", "shell_command", "container.exec", "local_shell"})
_NOT_ASKED = (
    "<environment_context>", "<user_instructions>", "<permissions instructions>",
    "<skills_instructions>", "<turn_aborted>", "<user_shell_command>", "<subagent_notification>",
    "# AGENTS.md instructions",
)  # fmt: skip
"""How the program's own words among the user's begin."""


@dataclass(frozen=True, slots=True)
class Heard:
    """In which of its two forms a rollout holds what was said; most hold both."""

    asked_as_event: bool
    said_as_item: bool


def heard_in(source: Source) -> Heard:
    """The forms that a rollout has."""
    asked = said = False
    for each in rows_of(source, Ledger(TOLD)):
        kind, what = each.get("type"), within(each, "payload", "type")
        asked = asked or (kind == "event_msg" and what == "user_message")
        role = within(each, "payload", "role")
        said = said or (kind == "response_item" and what == "message" and role == "assistant")
        if asked and said:
            break
    return Heard(asked, said)


class RolloutReader:
    """Tells a transcript what each line says."""

    def __init__(self, told: Transcript, heard: Heard) -> None:
        self.told = told
        self._heard = heard
        self._version: str | None = None
        self._model: str | None = None
        self._program = "Codex"
        self._marked = False
        self._broken = False
        self._ids = CallIds()
        self._sessions: dict[str, str] = {}
        self._polls: dict[str, str] = {}
        self._mcp_failed: set[str] = set()
        self._spawned: set[str] = set()

    def line(self, line: dict[str, object]) -> None:
        """One line, of whatever kind."""
        payload = mapping(line, "payload")
        # An older head is the only line with a time, which is none of what the agent did.
        at = self.told.clock.text(line.get("timestamp")) if "type" in line else None
        match text(line, "type"):
            case "session_meta":
                self.told.job = text(payload, "id") or text(payload, "session_id") or self.told.job
                self._version = text(payload, "cli_version") or self._version
            case "turn_context":
                self._model = text(payload, "model") or self._model
            case "response_item":
                self._item(payload, at)
            case "event_msg":
                self._event(payload, at)
            case None if "instructions" in line or "git" in line:
                self.told.job = text(line, "id") or self.told.job
            case kind if kind in BARE and "payload" not in line:
                self._item(line, at)

    def end(self) -> Imported:
        """The job, when all lines were told."""
        self.told.written_by(self._program, self._version, self._model)
        for id in self._spawned:
            self.told.delegate(id)
        return self.told.imported()

    def _item(self, item: dict[str, object], at: datetime | None) -> None:
        kind = text(item, "type") or ""
        if not kind:
            self.told.ledger.lose("an item does not say of what type it is")
        named = text(item, "call_id") or text(item, "id")
        if kind == "message":
            self._message(item, at)
        elif kind == "function_call":
            self._called(self._id(named), item, at)
        elif kind == "local_shell_call":
            self._shell(self._id(named), "local_shell", mapping(item, "action"), at)
        elif kind == "custom_tool_call":
            self._custom(self._id(named), text(item, "name"), item.get("input"), at)
        elif kind.endswith("_call_output"):
            self._returned(self._ids.of(named), item.get("output"), at)
        elif kind in ("web_search_call", "image_generation_call"):
            id = self.told.main.call(
                self._id(named), "other", kind.removesuffix("_call"), item.get("action")
            )
            self.told.main.returned(id, at=at)
            self.told.goes_on()

    def _id(self, named: str | None) -> str:
        """The id of a call; the same name is a new call when the one before has returned."""
        known = self._ids.of(named) if named is not None else None
        if known is not None and self.told.main.waits_for(known):
            return known
        return self._ids.new(named)

    def _message(self, item: dict[str, object], at: datetime | None) -> None:
        words = spoken(item.get("content"))
        if item.get("role") == "assistant":
            self._said(words, text(item, "id"), text(item, "phase"), at)
        elif (
            item.get("role") == "user"
            and not self._heard.asked_as_event
            and not words.lstrip().startswith(_NOT_ASKED)
        ):
            self._asked(words, at)

    def _asked(self, words: str | None, at: datetime | None) -> None:
        self.told.ask(words, at=at)
        self.told.goes_on()

    def _said(
        self, words: str | None, id: str | None, phase: str | None, at: datetime | None
    ) -> None:
        self.told.main.say(words, at=at, id=id)
        if phase == "final_answer" or (phase is None and not self._marked):
            self.told.end("completed", phase)

    def _called(self, id: str | None, item: dict[str, object], at: datetime | None) -> None:
        name, given = text(item, "name"), item.get("arguments")
        # What is no JSON is kept as the text that it is: the call fails.
        read = row(given.encode(errors="replace")) if isinstance(given, str) else given
        arguments = read if isinstance(read, dict) else {}
        space = (text(item, "namespace") or "").rstrip("_")
        main = self.told.main
        if name in _SHELLS:
            self._shell(id, name, arguments, at)
        elif name == "apply_patch":
            self._custom(id, name, arguments.get("input", arguments.get("patch")), at)
        elif space.startswith("mcp__"):
            main.call(id, "mcp", name, arguments, server=space.removeprefix("mcp__"), at=at)
        elif name is not None and name.startswith("mcp__"):
            server, _, tool = name.removeprefix("mcp__").partition("__")
            main.call(id, "mcp", tool or name, arguments, server=server, at=at)
        else:
            id = main.call(id, "other", name, arguments or given, at=at)
            if name == "spawn_agent":
                self._spawned.add(id)
            if name == "write_stdin":
                session = self._sessions.get(str(arguments.get("session_id")))
                if session is not None:
                    self._polls[id] = session
        self.told.goes_on()

    def _shell(
        self, id: str | None, name: str | None, given: dict[str, object], at: datetime | None
    ) -> None:
        """A command; a list of words that only starts a shell is that shell's text."""
        command = given.get("cmd", given.get("command"))
        if isinstance(command, list):
            words = [word for word in command if isinstance(word, str)]
            if len(words) == 2 and words[0] in ("apply_patch", "applypatch"):
                self._custom(id, words[0], words[1], at)
                return
            whole_words = shlex.join(words) if len(words) == len(command) else None
            inner = shell_text(words)
            command = whole_words if inner is None else inner
        rest = {key: value for key, value in given.items() if key not in ("cmd", "command")}
        self.told.main.call(id, "shell", name, {"command": command, **rest}, at=at)
        self.told.goes_on()

    def _custom(self, id: str | None, name: str | None, given: object, at: datetime | None) -> None:
        patch = given if isinstance(given, str) else ""
        files = files_of(patch) if name in ("apply_patch", "applypatch") else []
        if files:
            self.told.main.call_files(id, name, files, at=at)
        else:
            self.told.main.call(id, "other", name, {"input": given}, at=at)
        if name == "exec":
            why = "what the agent's own code called is not told apart"
            self.told.ledger.lose(
                why, "executed_commands", "write_file", "update_file", "use_mcp_tool"
            )
        self.told.goes_on()

    def _returned(self, id: str | None, output: object, at: datetime | None) -> None:
        self.told.goes_on()
        main = self.told.main
        kind = main.kind_of(id)
        result = result_of(output, kind)
        status = result.status if kind == "shell" else None
        outcome: Outcome = "failed" if id in self._mcp_failed else result.outcome
        if outcome in ("failed", "refused"):
            self._spawned.discard(id or "")
        main.returned(id, output=result.output, exit_code=status, outcome=outcome, at=at)
        started = self._polls.get(id or "", id)
        if started is not None and result.session is not None:
            self._sessions[result.session] = started
        if started is not None and started != id and outcome == "ran":
            # What a poll shows is the command's.
            main.returned(started, output=result.output, exit_code=result.status, at=at)

    def _event(self, event: dict[str, object], at: datetime | None) -> None:
        match text(event, "type"):
            case "task_started" | "turn_started":
                self._marked, self._broken = True, False
                self.told.goes_on()
            case "task_complete" | "turn_complete":
                if not (self._broken and event.get("last_agent_message") is None):
                    self.told.end("completed", text(event, "type"))
            case "turn_aborted":
                self._aborted(text(event, "reason") or "turn_aborted")
            case "error":
                self._broken = True
                said = (text(event, "message") or "").strip().partition("\n")[0][:200]
                stop = Stop(reason=said or "the program gave an error", fault="infrastructure")
                self.told.end("failed", "error", stop)
            case "user_message":
                self._asked(text(event, "message"), at)
            case "agent_message" if not self._heard.said_as_item:
                self._said(text(event, "message"), None, text(event, "phase"), at)
            case "token_count":
                self._counted(mapping(event, "info", "total_token_usage"))
            case "mcp_tool_call_end":
                self._mcp(event, at)
            case "exec_command_end":
                self._executed(event, at)

    def _aborted(self, reason: str) -> None:
        if reason == "budget_limited":
            stop = Stop(reason="the agent reached its limit of cost", fault="agent")
            self.told.end("timed_out", reason, stop)
        else:
            stop = Stop(reason="a user interrupted the agent", fault="operator")
            self.told.end("cancelled", reason, stop)

    def _counted(self, total: dict[str, object]) -> None:
        if total:
            self.told.main.use(
                "total",
                model=self._model,
                input_tokens=whole(total, "input_tokens"),
                output_tokens=whole(total, "output_tokens"),
            )

    def _mcp(self, event: dict[str, object], at: datetime | None) -> None:
        """Which server and tool a call was of, and whether it failed."""
        named = text(event, "call_id")
        id = self._ids.of(named)
        asked = mapping(event, "invocation")
        tool, server, given = text(asked, "tool"), text(asked, "server"), asked.get("arguments")
        failed = within(event, "result", "Err") is not None
        failed = failed or within(event, "result", "Ok", "isError") is True
        main, new = self.told.main, id is None
        if id is None or main.kind_of(id) != "mcp":
            id = main.call(
                id or self._ids.new(named), "mcp", tool, given, server=server, at=at, revised=True
            )
        if failed:
            self._mcp_failed.add(id)
        if new or failed:
            main.returned(id, outcome="failed" if failed else "ran", at=at)

    def _executed(self, event: dict[str, object], at: datetime | None) -> None:
        """A command's end, where a version also keeps that."""
        named, status = text(event, "call_id"), whole(event, "exit_code")
        declined = text(event, "status") == "declined"
        id = self._ids.of(named)
        new = id is None
        if id is None:
            id = self._ids.new(named)
            self._shell(id, "exec_command", {"command": event.get("command")}, at)
        output = text(event, "aggregated_output") if new else None
        outcome: Outcome = "refused" if declined else "ran"
        self.told.main.returned(id, output=output, exit_code=status, outcome=outcome, at=at)
