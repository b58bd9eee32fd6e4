"""Events of OpenHands 0: actions, and observations that name the action they belong to."""

from __future__ import annotations

from datetime import datetime

from opsdrill.evidence.importers.openhands.ending import Ending
from opsdrill.evidence.transcripts.call_ids import CallIds
from opsdrill.evidence.transcripts.rows import mapping, number, row, text, whole
from opsdrill.evidence.transcripts.transcript import Transcript
from opsdrill.evidence.transcripts.work import Work
from opsdrill.model.job import Outcome, ToolKind

_OF_THE_HARNESS = frozenset(
    {
        *("system", "recall", "null", "change_agent_state", "condensation", "start", "summarize"),
        *("condensation_request", "loop_recovery", "push", "send_pr", "pause", "resume", "stop"),
    }
)
"""Actions that are none of the agent's."""
_SETTINGS = frozenset(
    {
        *("thought", "confirmation_state", "security_risk", "hidden", "blocking", "is_static"),
        *("impl_source", "wait_for_response", "safety_risk"),
    }
)
"""Arguments that the program adds to what the agent gave."""
_RESULTS = frozenset(
    {
        *("run", "run_ipython", "read", "write", "edit", "browse", "mcp", "think", "success"),
        *("task_tracking", "delegate"),
    }
)
_EDITS: dict[str, ToolKind] = {"create": "write_file", "view": "other"}
_FILES: dict[str, ToolKind] = {"write": "write_file", "edit": "update_file"}
_REFUSED = ("ERROR: Cannot execute multiple commands", "Cannot execute multiple commands")
NO_SERVER = "it does not say of which MCP server a tool is"


def not_run(suffix: str) -> bool:
    """Whether the program says behind a command's output that it did not run it."""
    return suffix.lstrip().startswith("[Your command ") and "is NOT executed" in suffix


def out_of_time(suffix: str) -> bool:
    """Whether the program says behind a command's output that it waited no longer."""
    return suffix.lstrip().startswith(
        ("[The command timed out after ", "[The command has no new output after ")
    )


class EventsV0:
    """Tells a transcript what events of version 0 say.

    Args:
        told: the job's transcript.
        ending: how the job ended.

    Attributes:
        version: of the program, once an event said it.
    """

    def __init__(self, told: Transcript, ending: Ending) -> None:
        self.version: str | None = None
        self._told = told
        self._ending = ending
        self._ids = CallIds()
        self._owners: dict[str, Work] = {}
        self._of_others: set[object] = set()
        self._working = [told.main]
        self._delegations: list[str] = []

    def event(self, event: dict[str, object]) -> None:
        """One event."""
        at = self._told.clock.text(event.get("timestamp"))
        action, observation = text(event, "action"), text(event, "observation")
        self._used(event)
        if action is not None:
            self._action(event, action, at)
        elif observation is not None:
            self._observation(event, observation, at)

    def _action(self, event: dict[str, object], action: str, at: datetime | None) -> None:
        args = mapping(event, "args")
        if action not in _OF_THE_HARNESS and not isinstance(event.get("args"), dict):
            self._told.ledger.lose("the arguments of an action cannot be read")
        source = text(event, "source")
        if action == "system":
            self.version = text(args, "openhands_version") or self.version
        if action in _OF_THE_HARNESS:
            return
        if action == "message":
            self._message(event, args, source, at)
        elif source is None:
            self._told.ledger.lose("an action does not say whose it is")
        elif source != "agent":
            self._of_others.add(whole(event, "id"))
        elif action in ("finish", "reject"):
            self._finish(event, action, args, at)
        else:
            self._call(event, action, args, at)

    def _message(
        self,
        event: dict[str, object],
        args: dict[str, object],
        source: str | None,
        at: datetime | None,
    ) -> None:
        words = text(args, "content") or text(event, "message")
        if source == "agent":
            self._working[-1].say(words, at=at)
            if len(self._working) == 1:
                self._ending.done(None)
        elif source == "user":
            self._ending.goes_on()
            self._told.ask(words, at=at)

    def _call(
        self, event: dict[str, object], action: str, args: dict[str, object], at: datetime | None
    ) -> None:
        work = self._working[-1]
        if action != "think":
            work.say(text(args, "thought"), at=at)
        id = self._id(event)
        self._owners[id] = work
        given = {
            key: value
            for key, value in args.items()
            if (key not in _SETTINGS or action == "think") and value not in (None, "")
        }
        tool = text(event, "tool_call_metadata", "function_name") or action
        if action == "call_tool_mcp":
            name = text(args, "name") or text(args, "tool_name")
            arguments = args.get("arguments", args.get("kwargs"))
            work.call(id, "mcp", name, arguments, at=at)
            self._told.ledger.lose(NO_SERVER, "use_mcp_tool")
        else:
            work.call(id, _kind(action, args), tool, given, at=at)
        self._ending.goes_on()
        if action == "delegate":
            self._delegate(id, args)

    def _delegate(self, id: str, args: dict[str, object]) -> None:
        """The events up to the delegate's observation are another agent's."""
        name = f"delegate-{id}"
        work = self._told.work(name)
        work.agent = text(args, "agent")
        work.description = text(args, "inputs", "task")
        self._told.delegate(name)
        self._working.append(work)
        self._delegations.append(id)

    def _finish(
        self, event: dict[str, object], action: str, args: dict[str, object], at: datetime | None
    ) -> None:
        work, id = self._working[-1], self._id(event)
        words = text(args, "final_thought") or text(args, "thought")
        words = words or text(args, "outputs", "content") or text(args, "outputs", "reason")
        work.say(words, at=at)
        given = {key: value for key, value in args.items() if key not in _SETTINGS and value}
        work.call(id, "other", action, given, at=at)
        work.returned(id)
        if len(self._working) > 1:
            work.stop_reason = action
        elif action == "finish":
            self._ending.done(action)
        else:
            self._ending.gave_up(action)

    def _id(self, event: dict[str, object]) -> str:
        number = whole(event, "id")
        return self._ids.new(str(number) if number is not None else None)

    def _observation(self, event: dict[str, object], observation: str, at: datetime | None) -> None:
        cause = whole(event, "cause")
        id = self._ids.of(str(cause)) if cause is not None else None
        if observation == "agent_state_changed":
            self._state(mapping(event, "extras"))
        elif observation == "delegate" and self._delegations:
            self._working.pop()
            id = id or self._delegations[-1]
            self._delegations.pop()
            self._returned(id, event, observation, at)
        elif id is not None and id in self._owners:
            self._returned(id, event, observation, at)
        elif observation in _RESULTS and cause not in self._of_others:
            self._told.ledger.lose("a result belongs to no call that is there")

    def _returned(
        self, id: str, event: dict[str, object], observation: str, at: datetime | None
    ) -> None:
        output = text(event, "content") or ""
        outcome, code = _outcome(observation, output, mapping(event, "extras"))
        work = self._owners.get(id, self._told.main)
        work.returned(id, output=output, exit_code=code, outcome=outcome, at=at)

    def _state(self, extras: dict[str, object]) -> None:
        state = text(extras, "agent_state")
        reason = text(extras, "reason") or ""
        if len(self._working) > 1 and state != "error":
            return
        if state == "finished" and not self._ending.completed:
            self._ending.done(state)
        elif state == "rejected":
            self._ending.gave_up(state)
        elif state == "error":
            self._ending.stopped(reason or "error")
        elif state == "stopped" and not self._ending.completed:
            self._ending.cancelled(state)

    def _used(self, event: dict[str, object]) -> None:
        """The program counts up: the last number is that of the whole job."""
        metrics = mapping(event, "llm_metrics")
        if not metrics:
            return
        tokens = mapping(metrics, "accumulated_token_usage")
        model = text(tokens, "model")
        self._told.main.use(
            "all",
            model=model if model != "default" else None,
            input_tokens=whole(tokens, "prompt_tokens"),
            output_tokens=whole(tokens, "completion_tokens"),
            cost_usd=number(metrics, "accumulated_cost"),
        )


def _kind(action: str, args: dict[str, object]) -> ToolKind:
    if action == "run":
        typed = args.get("is_input") in (True, "true")
        command = args.get("command")
        blank = isinstance(command, str) and not command.strip()
        return "other" if typed or blank else "shell"
    kind = _FILES.get(action, "other")
    return _EDITS.get(text(args, "command") or "", kind) if action == "edit" else kind


def _outcome(
    observation: str, output: str, extras: dict[str, object]
) -> tuple[Outcome, int | None]:
    if observation == "user_rejected":
        return "refused", None
    if observation == "error":
        return ("refused" if output.startswith(_REFUSED) else "failed"), None
    if observation == "mcp":
        return ("failed" if mapping(row(output.encode())).get("isError") is True else "ran"), None
    if observation != "run":
        return "ran", None
    code = whole(extras, "metadata", "exit_code")
    code = whole(extras, "exit_code") if code is None else code
    suffix = text(extras, "metadata", "suffix") or ""
    if not_run(suffix):
        return "refused", None
    if out_of_time(suffix):
        return "timed_out", None
    return "ran", code if code != -1 else None
