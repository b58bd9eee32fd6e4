"""mini-swe-agent: a bare list of chat messages, `mini-swe-agent-1`, and `mini-swe-agent-1.1` of v2.

Sources: SWE-agent/mini-swe-agent, `docs/usage/output_files.md`, and `agents/default.py` and
`models/utils/actions_*.py` of versions 1.13 and 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from opsdrill.evidence.importers.mini_swe_agent.text import (
    RETURNED,
    commands,
    result_of,
    tool_calls,
    words_of,
)
from opsdrill.evidence.transcripts.call_ids import CallIds
from opsdrill.evidence.transcripts.glimpse import Glimpse
from opsdrill.evidence.transcripts.imported import Imported, Placing
from opsdrill.evidence.transcripts.reading import items_of, objects_in
from opsdrill.evidence.transcripts.rows import listing, mapping, number, text, whole
from opsdrill.evidence.transcripts.source import Damaged, Source
from opsdrill.evidence.transcripts.transcript import Transcript
from opsdrill.model.job import Outcome, Stop

_TRACE = re.compile(rb"mswea_bash_command|```bash|<returncode>|mini-swe-agent")
"""What a chat of this agent has in its first part."""
_DONE = ("COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT", "MINI_SWE_AGENT_FINAL_OUTPUT")
"""What the output of the agent's last command begins with."""
_REFUSED = re.compile(r"Commands? not executed")
_INTERRUPTED = "Interrupted by user"
_NEW_TASK = "The user added a new task"
_LIMITS = {
    "LimitsExceeded": "the agent reached its limit of steps or cost",
    "TimeExceeded": "the agent reached its limit of time",
    "ContextWindowExceeded": "the agent's context was full",
    "ContextWindowExceededError": "the agent's context was full",
}
_COMMANDS = ("executed_commands", "tool_calls")


class MiniSweAgentImporter:
    """Trajectories of mini-swe-agent in its three layouts."""

    title = "mini-swe-agent"

    def knows(self, glimpse: Glimpse) -> bool:
        """A list of chat messages with its marks, or an object that names the agent."""
        scalars = glimpse.scalars
        traced = bool(_TRACE.search(glimpse.head))
        if glimpse.has("item.role", "item.content") and not glimpse.has("item.source"):
            return traced
        format, kind = scalars.get("trajectory_format"), scalars.get("info.config.agent_type")
        if isinstance(format, str):
            return format.startswith("mini-swe-agent")
        if glimpse.has("info.mini_version") or str(kind).startswith("minisweagent"):
            return True
        return glimpse.has("messages.item.role") and traced and not glimpse.has("schema_version")

    def read(self, source: Source, placing: Placing) -> Iterator[Imported]:
        """The one job of the file."""
        told = Transcript("mini-swe-agent", self.title, placing)
        reader = _Reader(told)
        if source.glimpse.scalars.get("item.role") is not None:
            messages, path = source, "item"
        else:
            try:
                parts, missing = source.parts("info", "messages")
            except Damaged as damage:
                raise source.broken(str(damage)) from None
            if missing is not None:
                told.ledger.lose(missing)
            if "info" in parts:
                reader.about(mapping(parts["info"].value("")))
            if "messages" not in parts:
                raise source.broken("holds no messages")
            messages, path = parts["messages"], "item"
        for message in items_of(messages, path, told.ledger):
            reader.message(message)
        yield reader.end()


class _Reader:
    """Tells a transcript what each message says.

    A command waits (`_open`) until a message tells its result. Those of the agent's last message
    that the harness says were not run (`_not_run`) are remembered: one of them may have been
    stopped half way, or have ended the job.
    """

    def __init__(self, told: Transcript) -> None:
        self._told = told
        self._ids = CallIds()
        self._info: dict[str, object] = {}
        self._named = False
        self._open: list[str] = []
        self._not_run: list[str] = []
        self._marked: set[str] = set()
        self._doubtful: list[str] = []
        self._submitted = False
        self._asked = False
        self._users_turn = False
        self._cost = False
        self._model: str | None = None

    def about(self, info: dict[str, object]) -> None:
        """What the file says of the run as a whole."""
        self._info = info
        self._named = True
        self._model = text(info, "config", "model", "model_name")

    def message(self, message: dict[str, object]) -> None:
        """One message, of whoever's."""
        extra = mapping(message, "extra")
        at = self._told.clock.count(extra.get("timestamp"))
        role = text(message, "role") or text(message, "type") or text(message, "object")
        if role in ("assistant", "response"):
            self._assistant(message, extra, at)
        elif role == "exit":
            self._exit(message, extra, at)
        elif role in ("tool", "function_call_output"):
            given = text(message, "tool_call_id") or text(message, "call_id")
            self._observed(self._ids.of(given), message, extra, at)
        elif role in ("user", "message"):
            self._user(message, extra, at)
        elif role is None:
            self._told.ledger.lose("a message does not say whose it is")

    def _assistant(
        self, message: dict[str, object], extra: dict[str, object], at: datetime | None
    ) -> None:
        # What still waits for a result stays without one.
        self._open, self._not_run, self._marked = [], [], set()
        self._doubtful, self._submitted = [], False
        words = words_of(message)
        self._told.main.say(words, at=at)
        self._used(message, extra)
        stated = objects_in(extra, "actions", self._told.ledger)
        actions = [each for each in stated if text(each, "command") is not None]
        if len(actions) < len(stated):
            self._told.ledger.lose("an action does not say its command", *_COMMANDS)
        proposed = tool_calls(message)
        for action in actions:
            self._call(text(action, "tool_call_id"), text(action, "command") or "", at)
        if not actions:
            for id, name, arguments in proposed:
                self._proposed(id, name, arguments, at)
        if not actions and not proposed:
            found = commands(words)
            for command in found:
                self._call(None, command, at)
            if len(found) > 1:  # the harness asks for exactly one
                self._refuse(at)

    def _call(self, given: str | None, command: str, at: datetime | None) -> None:
        id = self._ids.new(given)
        self._told.main.call(id, "shell", "bash", {"command": command}, at=at)
        self._open.append(id)
        if any(mark in command for mark in _DONE):
            self._marked.add(id)

    def _proposed(
        self, given: str | None, name: str, arguments: object, at: datetime | None
    ) -> None:
        """A call that stands nowhere among the actions."""
        command = text(arguments, "command")
        if name == "bash" and command is not None:
            self._call(given, command, at)
            return
        id = self._ids.new(given)
        self._told.main.call(id, "other", name, arguments, at=at)
        self._open.append(id)

    def _user(
        self, message: dict[str, object], extra: dict[str, object], at: datetime | None
    ) -> None:
        words, kind = words_of(message), text(extra, "interrupt_type")
        result = "returncode" in extra or RETURNED.match(words) is not None
        if listing(extra, "actions"):
            self._users_turn = True  # a command that the user typed is none of the agent's
        elif result and self._users_turn and not self._open:
            self._users_turn = False
        elif kind in ("FormatError", "UserRejection") or _REFUSED.match(words):
            self._doubtful = [] if kind else self._open
            self._refuse(at)
            self._not_run = []
            if kind != "FormatError":
                self._told.ask(words, at=at)
        elif kind == "UserInterruption" or words.startswith(_INTERRUPTED):
            for id in (self._open or self._not_run)[:1]:
                self._told.main.returned(id, outcome="failed", at=at)
            self._open, self._not_run = self._open[1:], []
            self._told.ask(words, at=at)
        elif self._open:
            self._observed(self._open[0], message, extra, at)
        elif result:
            self._told.ledger.lose("a result belongs to no command that can be read", *_COMMANDS)
        elif words.strip() and (not self._asked or kind or words.startswith(_NEW_TASK)):
            self._asked = True
            self._told.ask(words, at=at)

    def _observed(
        self,
        id: str | None,
        message: dict[str, object],
        extra: dict[str, object],
        at: datetime | None,
    ) -> None:
        words = text(message, "output") or words_of(message)
        outcome, code, output = result_of(words, extra)
        self._told.main.returned(id, output=output, exit_code=code, outcome=outcome, at=at)
        if id is None:
            return
        self._open = [each for each in self._open if each != id]
        if outcome == "refused":
            self._not_run.append(id)
        # The output of the command that ended the job is all that stands there.
        plain = "returncode" not in extra and not RETURNED.match(words)
        self._submitted = id in self._marked and plain and outcome == "ran"

    def _refuse(self, at: datetime | None) -> None:
        """The harness or the user turned down what the agent wanted to run."""
        for id in self._open:
            self._told.main.returned(id, outcome="refused", at=at)
        self._open = []

    def _exit(
        self, message: dict[str, object], extra: dict[str, object], at: datetime | None
    ) -> None:
        known = text(self._info, "exit_status")
        self._info = {**self._info, "exit_status": known or text(extra, "exit_status")}
        self._named = True
        if text(extra, "exit_status") != "Submitted":
            return
        # The command that ended the job has no result of its own, nor have those behind it.
        waiting = self._open or self._not_run[:1]
        alone = len(waiting) == 1
        last = next((n for n, id in enumerate(waiting) if alone or id in self._marked), None)
        for place, id in enumerate(waiting if last is not None else ()):
            ran = place <= (last or 0)
            output = words_of(message) if place == last else None
            outcome: Outcome = "ran" if ran else "refused"
            self._told.main.returned(id, output=output, outcome=outcome, at=at, revised=True)
        self._open = []

    def end(self) -> Imported:
        """The job, when all messages were told."""
        told = self._told
        told.written_by("mini-swe-agent", text(self._info, "mini_version"), self._model)
        cost = number(self._info, "model_stats", "instance_cost")
        if cost is not None and not self._cost:
            told.main.use(cost_usd=cost)
        status = text(self._info, "exit_status")
        for id in self._doubtful:
            # The last message is what the last command printed, whatever it looks like.
            if status == "Submitted" or (not self._named and id in self._marked):
                told.main.returned(id)
        if status == "Submitted" or (not self._named and self._submitted):
            told.end("completed", status)
        elif status in _LIMITS:
            told.end("timed_out", status, Stop(reason=_LIMITS[status], fault="agent"))
        elif status in ("UserInterruption", "KeyboardInterrupt"):
            told.end("cancelled", status, Stop(reason="the user stopped it", fault="operator"))
        elif status == "RepeatedFormatError":
            why = "the agent's answers could not be read as commands"
            told.end("failed", status, Stop(reason=why, fault="agent"))
        elif status:
            why = f"the agent's program stopped with {status[:100]}"
            told.end("failed", status, Stop(reason=why, fault="infrastructure"))
        return told.imported()

    def _used(self, message: dict[str, object], extra: dict[str, object]) -> None:
        response = mapping(extra, "response") or message
        usage, cost = mapping(response, "usage"), number(extra, "cost")
        self._cost = self._cost or cost is not None
        if not usage and cost is None:
            return
        taken, given = "prompt_tokens", "completion_tokens"
        if "input_tokens" in usage:
            taken, given = "input_tokens", "output_tokens"
        self._told.main.use(
            model=text(response, "model") or self._model,
            input_tokens=whole(usage, taken),
            output_tokens=whole(usage, given),
            cost_usd=cost,
        )
