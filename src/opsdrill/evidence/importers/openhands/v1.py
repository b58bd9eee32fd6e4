"""Events of the OpenHands SDK (V1), told apart by their `kind`."""

from __future__ import annotations

from datetime import datetime

from opsdrill.evidence.importers.openhands.ending import Ending
from opsdrill.evidence.importers.openhands.v0 import NO_SERVER, not_run, out_of_time
from opsdrill.evidence.transcripts.call_ids import CallIds
from opsdrill.evidence.transcripts.rows import listing, mapping, number, row, spoken, text, whole
from opsdrill.evidence.transcripts.tools import Known, known
from opsdrill.evidence.transcripts.transcript import Transcript
from opsdrill.model.job import Outcome, ToolKind

_TERMINALS = frozenset({"TerminalAction", "ExecuteBashAction", "BashAction", "CmdRunAction"})
_AGENTS = frozenset({"DelegateAction", "TaskAction", "ChildConversationAction"})
"""Actions that set other agents to work, whose events stand elsewhere."""
_REFUSED = "Cannot execute multiple commands at once"
_NO_ACTION = "a result belongs to no call that is there"


class EventsV1:
    """Tells a transcript what events of the SDK say.

    Args:
        told: the job's transcript.
        ending: how the job ended.

    Attributes:
        model: the model's name, once an event said it.
    """

    def __init__(self, told: Transcript, ending: Ending) -> None:
        self.model: str | None = None
        self._told = told
        self._ending = ending
        self._ids = CallIds()
        self._by_name: dict[str, str] = {}
        self._acp: dict[str, dict[str, object]] = {}

    def event(self, event: dict[str, object]) -> None:
        """One event."""
        at = self._told.clock.text(event.get("timestamp"))
        match text(event, "kind"):
            case "ActionEvent":
                self._action(event, at)
            case "ObservationEvent":
                self._observation(event, at)
            case "UserRejectObservation":
                self._returned(event, text(event, "rejection_reason"), "refused", at=at)
            case "AgentErrorEvent":
                self._returned(event, text(event, "error"), "failed", at=at)
            case "MessageEvent":
                self._message(event, at)
            case "ConversationStateUpdateEvent":
                self._state(text(event, "key"), event.get("value"))
            case "ConversationErrorEvent":
                code, detail = text(event, "code") or "error", text(event, "detail") or ""
                self._ending.stopped(f"{code}: {detail}")
            case "ConversationIterationLimitEvent":
                self._ending.stopped("MaxIterationsReached")
            case "PauseEvent" | "InterruptEvent":
                self._ending.cancelled("paused")
            case "ACPToolCallEvent":
                self._acp_call(event, at)

    def end(self) -> None:
        """No event follows: tell what still waits for its end."""
        for event in self._acp.values():
            self._acp_told(event, self._told.clock.text(event.get("timestamp")))
        self._acp = {}

    def _message(self, event: dict[str, object], at: datetime | None) -> None:
        words = spoken(mapping(event, "llm_message").get("content"))
        if text(event, "source") == "agent":
            self._told.main.say(words, at=at)
            self._ending.done(None)
        elif text(event, "source") == "user":
            self._ending.goes_on()
            self._told.ask(words, at=at)

    def _action(self, event: dict[str, object], at: datetime | None) -> None:
        main = self._told.main
        main.say(spoken(event.get("thought")), at=at)
        id = self._ids.new(text(event, "id"))
        name = text(event, "tool_call_id")
        if name is not None:
            self._by_name[name] = id
        if not isinstance(event.get("action"), dict | None):
            self._told.ledger.lose("what an action is cannot be read")
        doing, kind = _doing(event), text(event, "action", "kind") or ""
        doing.tell(main, id, at=at)
        if doing.kind == "mcp" and doing.server is None:
            self._told.ledger.lose(NO_SERVER, "use_mcp_tool")
        if kind in _AGENTS:
            self._told.delegate(f"called by {id}")
        if kind == "FinishAction":
            main.say(text(event, "action", "message"), at=at)
            main.returned(id)
            self._ending.done("finish")
        else:
            self._ending.goes_on()

    def _observation(self, event: dict[str, object], at: datetime | None) -> None:
        seen = mapping(event, "observation")
        output = spoken(seen.get("content")) or text(seen, "output") or ""
        error = seen.get("is_error") is True or seen.get("error") is True
        if (text(seen, "kind") or "").startswith("Finish"):
            return
        terminal = "exit_code" in seen or text(seen, "kind") in (
            "TerminalObservation",
            "ExecuteBashObservation",
        )
        if not terminal:
            self._returned(event, output, "failed" if error else "ran", at=at)
            return
        outcome, code = _terminal(seen, output, error=error)
        self._returned(event, output, outcome, code=code, at=at)

    def _returned(
        self,
        event: dict[str, object],
        output: str | None,
        outcome: Outcome,
        *,
        code: int | None = None,
        at: datetime | None,
    ) -> None:
        action = text(event, "action_id")
        if action is not None:
            id = self._ids.of(action)
        else:
            id = self._by_name.get(text(event, "tool_call_id") or "")
        if id is None:
            self._told.ledger.lose(_NO_ACTION)
            return
        self._told.main.returned(id, output=output, exit_code=code, outcome=outcome, at=at)

    def _state(self, key: str | None, value: object) -> None:
        if key == "full_state":
            self._stats(mapping(value, "stats"))
            key, value = "execution_status", mapping(value).get("execution_status")
        if key == "stats":
            self._stats(mapping(value))
        if key not in ("execution_status", "agent_status") or not isinstance(value, str):
            return
        if value == "finished" and not self._ending.completed:
            self._ending.done(value)
        elif value in ("stuck", "error") and not self._ending.explained:
            self._ending.stopped(value)
        elif value == "paused" and not self._ending.completed:
            self._ending.cancelled(value)

    def _stats(self, stats: dict[str, object]) -> None:
        """The program counts up for each use of a model: the last numbers are those of the job."""
        for use, metrics in mapping(stats, "usage_to_metrics").items():
            tokens = mapping(metrics, "accumulated_token_usage")
            model = text(metrics, "model_name")
            self.model = self.model or model
            self._told.main.use(
                f"all of {use}",
                model=model,
                input_tokens=whole(tokens, "prompt_tokens"),
                output_tokens=whole(tokens, "completion_tokens"),
                cost_usd=number(metrics, "accumulated_cost"),
            )

    def _acp_call(self, event: dict[str, object], at: datetime | None) -> None:
        """A call of an agent behind ACP is told again and again until it is over."""
        id = text(event, "tool_call_id") or ""
        before = self._acp.pop(id, {})
        told = {key: value for key, value in event.items() if value not in (None, [], {})}
        started = before.get("timestamp", event.get("timestamp"))
        now = {**before, **told, "timestamp": started}
        if text(event, "status") not in ("completed", "failed"):
            self._acp[id] = now
            return
        made = self._acp_told(now, self._told.clock.text(started))
        failed = text(event, "status") == "failed" or event.get("is_error") is True
        output = text(now, "raw_output") or spoken(now.get("content"))
        outcome: Outcome = "failed" if failed else "ran"
        self._told.main.returned(made, output=output, outcome=outcome, at=at)

    def _acp_told(self, event: dict[str, object], at: datetime | None) -> str:
        self._ending.goes_on()
        given, kind = event.get("raw_input"), text(event, "tool_kind")
        tool = kind or "tool"
        files: list[tuple[ToolKind, dict[str, object]]] = []
        for block in listing(event, "content"):
            path = text(block, "path")
            if text(block, "type") == "diff" and path is not None:
                old = mapping(block).get("old_text", mapping(block).get("oldText"))
                files.append(("write_file" if old is None else "update_file", {"path": path}))
        id = self._ids.new(text(event, "tool_call_id"))
        if files:
            return self._told.main.call_files(id, tool, files, at=at)
        doing = known("bash" if kind == "execute" else tool, given)
        return Known(doing.kind, tool, doing.arguments).tell(self._told.main, id, at=at)


def _doing(event: dict[str, object]) -> Known:
    """What an action does; one that could not be read was never carried out."""
    tool = text(event, "tool_name") or "tool"
    action = event.get("action")
    if not isinstance(action, dict):
        given = text(event, "tool_call", "arguments")
        arguments = row(given.encode(errors="replace")) if given else None
        return Known("other", tool, given if arguments is None else arguments)
    kind = text(action, "kind") or ""
    given_arguments = {
        key: value for key, value in action.items() if key != "kind" and value is not None
    }
    if kind == "MCPToolAction":
        arguments = action.get("data", action.get("arguments"))
        return Known("mcp", tool, arguments)
    if kind in _TERMINALS:
        command = action.get("command")
        blank = isinstance(command, str) and not command.strip()
        typed = action.get("is_input") is True or blank
        return Known("other" if typed else "shell", tool, given_arguments)
    doing = known(tool, given_arguments)
    if doing.kind == "other" and kind.endswith(("EditorAction", "PatchAction")):
        better = "apply_patch" if kind.endswith("PatchAction") else "file_editor"
        found = known(better, given_arguments)
        return Known(found.kind, tool, found.arguments, files=found.files)
    return doing


def _terminal(seen: dict[str, object], output: str, *, error: bool) -> tuple[Outcome, int | None]:
    code = whole(seen, "exit_code")
    suffix = text(seen, "metadata", "suffix") or ""
    if not_run(suffix) or (error and code is None and output.startswith(_REFUSED)):
        return "refused", None
    if seen.get("timeout") is True or out_of_time(suffix):
        return "timed_out", None
    if code is None and error:
        return "failed", None
    if code is None:
        code = whole(seen, "metadata", "exit_code")
    return "ran", code if code != -1 else None
