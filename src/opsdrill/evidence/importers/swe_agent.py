"""SWE-agent: `.traj` files with a trajectory, and demonstrations that hold only the history.

Source: SWE-agent/SWE-agent, `sweagent/agent/agents.py` of versions 0.7 to 1.1.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from opsdrill.evidence.transcripts.glimpse import Glimpse
from opsdrill.evidence.transcripts.imported import Imported, Placing
from opsdrill.evidence.transcripts.reading import items_of
from opsdrill.evidence.transcripts.rows import listing, mapping, number, row, spoken, text, whole
from opsdrill.evidence.transcripts.source import Damaged, Source
from opsdrill.evidence.transcripts.transcript import Transcript
from opsdrill.evidence.transcripts.work import CALLS, Work
from opsdrill.model.job import Outcome, Stop, ToolKind

_PARTS = ("trajectory", "history", "info", "replay_config", "attempts")
_OWN = frozenset(
    {
        *("open", "goto", "scroll_up", "scroll_down", "find_file", "search_file", "search_dir"),
        *("create", "edit", "insert", "append", "str_replace_editor", "view_image", "filemap"),
        *("submit", "exit_cost", "exit_forfeit"),
    }
)
"""Commands that SWE-agent itself puts into the shell."""
_EDITS_OPEN_FILE = frozenset({"edit", "insert", "append", "create"})
_EDITOR: dict[str, ToolKind] = {
    "create": "write_file",
    "str_replace": "update_file",
    "insert": "update_file",
    "undo_edit": "update_file",
}
_OPTIONS = {"--file_text": "file_text", "--old_str": "old_str", "--new_str": "new_str"}
_TIMED_OUT = re.compile(r"was cancelled because it took more than [\d.]+ seconds")
_OLD_TIMED_OUT = "EXECUTION TIMED OUT"
_OLD_CRASHED = "COMMAND FAILED TO EXECUTE"
_PROMPT = re.compile(r"\n\(Open file: [^\n]*\)\n\(Current directory: [^\n]*\)\nbash-\$\s*\Z")
"""What the harness shows behind each result."""
_HARNESS = re.compile(r"Exit(?:ing)? due to ")
"""How a step begins that the harness added when it stopped the agent."""
_LIMITS = {
    "exit_cost": "the agent reached its limit of cost",
    "exit_total_cost": "the agent reached its limit of cost",
    "exit_context": "the agent's context was full",
    "exit_total_execution_time": "the agent reached its limit of time",
    "exit_command_timeout": "the agent's commands took too long, one after the other",
}
_AGENTS_FAULT = {
    "exit_format": "the agent's answers could not be read as commands",
    "exit_forfeit": "the agent gave up",
}


class SweAgentImporter:
    """Trajectories and demonstrations of SWE-agent."""

    title = "SWE-agent"

    def knows(self, glimpse: Glimpse) -> bool:
        """Steps with an action and an observation, or a history whose messages name the agent."""
        if glimpse.has("history.item.source") or glimpse.has("schema_version"):
            return False
        if glimpse.has("trajectory.item.action", "trajectory.item.observation"):
            return True
        return glimpse.has("history.item.role", "history.item.agent") or glimpse.has(
            "history.item.role", "history.item.message_type"
        )

    def read(self, source: Source, placing: Placing) -> Iterator[Imported]:
        """The one job of the file."""
        told = Transcript("swe-agent", self.title, placing)
        try:
            parts, missing = source.parts(*_PARTS)
        except Damaged as damage:
            raise source.broken(str(damage)) from None
        if not parts.keys() & {"trajectory", "history"}:
            raise source.broken("holds neither a trajectory nor a history")
        if missing is not None:
            told.ledger.lose(missing)
        reader = _Reader(told)
        reader.about(_value(parts, "info"), _value(parts, "replay_config"))
        steps = 0
        if "trajectory" in parts:
            if "history" in parts:
                reader.asked(parts["history"])
            for step in items_of(parts["trajectory"], "item", told.ledger):
                steps += 1
                reader.step(step)
        if not steps and "history" in parts:
            for message in items_of(parts["history"], "item", told.ledger):
                reader.message(message)
        if "attempts" in parts:
            told.ledger.warn("it holds several attempts; the one that was chosen is read")
        yield reader.end()


def _value(parts: dict[str, Source], key: str) -> object:
    return parts[key].value("") if key in parts else None


@dataclass(frozen=True, slots=True)
class _Doing:
    kind: ToolKind
    tool: str
    arguments: dict[str, object]


class _Reader:
    """Tells a transcript what each step or message says."""

    def __init__(self, told: Transcript) -> None:
        self._told = told
        self._info: dict[str, object] = {}
        self._model: str | None = None
        self._open: dict[str, str] = {}
        self._main: str | None = None
        self._last: str | None = None
        self._said = False

    def about(self, info: object, config: object) -> None:
        """What the file says of the run; the configuration is a text of JSON in new versions."""
        self._info = mapping(info)
        if isinstance(config, str):
            config = row(config.encode(errors="replace"))
        self._model = text(config, "agent", "model", "name")

    def asked(self, history: Source) -> None:
        """What the agent was asked stands only in the history."""
        try:
            for message in history.items("item"):
                if text(message, "role") == "user" and not _demonstrated(message):
                    self._told.ask(spoken(mapping(message).get("content")))
                    return
        except Damaged:
            pass  # the trajectory is read on its own

    def step(self, step: dict[str, object]) -> None:
        """One step of a trajectory: what the agent said and ran, and what came back."""
        main, action = self._told.main, self._action(step, needed=True)
        words = text(step, "response") or text(step, "thought") or ""
        if action.strip() or not _HARNESS.match(words):
            main.say(words)
        if not action.strip():
            self._last, self._said = None, bool(words)
            return
        id = self._called(main, None, action)
        observation = text(step, "observation")
        outcome = _outcome(observation or "")
        took = number(step, "execution_time")
        if observation == "" and took == 0:
            outcome = "refused"  # blocked, or no shell syntax: it never came to the shell
        if observation is not None:
            main.returned(id, output=observation, outcome=outcome)
        self._last = action.split()[0] if outcome != "refused" else None

    def message(self, message: dict[str, object]) -> None:
        """One message of a history."""
        if _demonstrated(message):
            return
        role, agent = text(message, "role"), text(message, "agent")
        self._main = self._main or agent
        work = self._told.main if agent in (None, self._main) else self._told.work(agent or "")
        words = spoken(message.get("content"))
        if role == "assistant":
            self._assistant(work, message, words)
        elif role in ("user", "tool"):
            waiting = self._open.pop(work.id, None)
            if waiting is not None:
                output = _PROMPT.sub("", words)
                work.returned(waiting, output=output, outcome=_outcome(output))
            elif work is self._told.main:
                self._told.ask(words)
            elif work.description is None:
                work.description = words or None
        elif role != "system":
            self._told.ledger.lose("a message does not say whose it is")

    def _action(self, step: dict[str, object], *, needed: bool) -> str:
        action = step.get("action")
        if not isinstance(action, str) and (needed or action is not None):
            self._told.ledger.lose("a step does not say its action", *CALLS)
        return action if isinstance(action, str) else ""

    def _assistant(self, work: Work, message: dict[str, object], words: str) -> None:
        action = self._action(message, needed=bool(message.get("tool_calls")))
        work.say(words or text(message, "thought"))
        if not action.strip():
            if work is self._told.main:
                self._last, self._said = None, bool(words)
            return
        given = next((text(call, "id") for call in listing(message, "tool_calls")), None)
        self._open[work.id] = self._called(work, given, action)
        if work is self._told.main:
            self._last = action.split()[0]

    def _called(self, work: Work, given: str | None, action: str) -> str:
        doing = _doing(action)
        if doing.kind == "shell" and doing.tool in _EDITS_OPEN_FILE:
            why = "edits of the file that is open do not say in the call which file that is"
            self._told.ledger.lose(why, "write_file", "update_file")
        if work.has_call(given):
            given = None
        return work.call(given, doing.kind, doing.tool, doing.arguments)

    def end(self) -> Imported:
        """The job, when all was told."""
        told = self._told
        told.written_by("SWE-agent", text(self._info, "swe_agent_version"), self._model)
        spent = mapping(self._info, "model_stats")
        if spent:
            told.main.use(
                model=self._model,
                input_tokens=whole(spent, "tokens_sent"),
                output_tokens=whole(spent, "tokens_received"),
                cost_usd=number(spent, "instance_cost"),
            )
        status = text(self._info, "exit_status")
        # `submitted (exit_cost)` is what the harness hands in for an agent that it stopped.
        inner = re.fullmatch(r"submitted \((\w+)\)", status or "")
        word = inner[1] if inner else status
        if word in _LIMITS:
            told.end("timed_out", status, Stop(reason=_LIMITS[word], fault="agent"))
        elif word in _AGENTS_FAULT:
            told.end("failed", status, Stop(reason=_AGENTS_FAULT[word], fault="agent"))
        elif status in ("submitted", "exit_command"):
            told.end("completed", status)
        elif status:
            why = f"the agent's program stopped with {status[:100]}"
            told.end("failed", status, Stop(reason=why, fault="infrastructure"))
        elif not self._info and self._last == "submit":
            told.end("completed", "submit")
        elif not self._info and self._said and self._last is None:
            told.end("completed")
        return told.imported()


def _demonstrated(message: object) -> bool:
    """Part of an example that was shown to the agent."""
    about = mapping(message)
    return about.get("is_demo") is True or about.get("message_type") == "demonstration"


def _doing(action: str) -> _Doing:
    """What an action does: all of them are given to the shell, an editor's among them."""
    name = action.split(maxsplit=1)[0]
    if name == "str_replace_editor":
        editing = _edited(action)
        if editing is not None:
            return editing
    tool = name if name in _OWN else "bash"
    return _Doing("shell", tool, {"command": action})


def _edited(action: str) -> _Doing | None:
    try:
        words = shlex.split(action)
    except ValueError:
        return None
    if len(words) < 3 or words[1].startswith("-"):
        return None
    what, path = words[1], words[2]
    arguments: dict[str, object] = {"path": path, "command": what}
    for option, value in pairwise(words[3:]):
        if option in _OPTIONS:
            arguments[_OPTIONS[option]] = value
    kind = _EDITOR.get(what, "other")
    return _Doing(kind, "str_replace_editor", arguments)


def _outcome(observation: str) -> Outcome:
    if observation.startswith("The command ") and _TIMED_OUT.search(observation[-300:]):
        return "timed_out"
    if _OLD_TIMED_OUT in observation[:100]:
        return "timed_out"
    return "failed" if observation.lstrip().startswith(_OLD_CRASHED) else "ran"
