"""Claude Code: the session files that it keeps (JSON lines) and what `--output-format stream-json`
prints. Both hold the same messages; only the second says at its end how the job ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from opsdrill.evidence.importers.claude_code.calls import (
    called,
    outcome_of,
    tells_status,
    total_of,
    use,
)
from opsdrill.evidence.transcripts.call_ids import CallIds
from opsdrill.evidence.transcripts.glimpse import Glimpse
from opsdrill.evidence.transcripts.imported import Imported, Placing
from opsdrill.evidence.transcripts.reading import rows_of
from opsdrill.evidence.transcripts.rows import listing, mapping, spoken, text, within
from opsdrill.evidence.transcripts.source import Source
from opsdrill.evidence.transcripts.transcript import Transcript
from opsdrill.evidence.transcripts.work import CALLS, Work
from opsdrill.model.job import Stop

_AGENTS = frozenset({"Task", "Agent"})
_NOT_ASKED = (
    "<command-name>", "<command-message>", "<local-command-stdout>", "<local-command-stderr>",
    "<bash-input>", "<bash-stdout>", "<bash-stderr>", "<system-reminder>", "<task-notification>",
    "Caveat: The messages below were generated",
)  # fmt: skip
"""How the program's own words among the user's begin."""
_INTERRUPTED = "[Request interrupted by user"
_LIMITS = {
    "error_max_turns": "the agent reached its limit of turns",
    "error_max_budget_usd": "the agent reached its limit of cost",
    "max_tokens": "the agent's answer reached its limit of tokens",
    "model_context_window_exceeded": "the agent's context was full",
}


class ClaudeCodeImporter:
    """Sessions and streams of Claude Code."""

    title = "Claude Code"

    def knows(self, glimpse: Glimpse) -> bool:
        """A line that only this program writes is among the first."""
        return any(map(_ours, glimpse.rows))

    def read(self, source: Source, placing: Placing) -> Iterator[Imported]:
        """The one job of a session; sub-agents are tasks of their own."""
        reader = _Reader(Transcript("claude-code", self.title, placing), _root(source.glimpse))
        rows = 0
        for row in rows_of(source, reader.told.ledger):
            rows += 1
            reader.line(row)
        if not rows:
            raise source.broken("holds no line of a Claude Code session")
        yield reader.end()


def _ours(row: dict[str, object]) -> bool:
    kind = row.get("type")
    session = "sessionId" in row or "session_id" in row
    if kind in ("user", "assistant"):
        return isinstance(row.get("message"), dict) and (session or "parentUuid" in row)
    if kind == "system":
        return row.get("subtype") == "init" and session
    if kind == "file-history-snapshot":
        return "snapshot" in row
    return (kind == "summary" and "leafUuid" in row) or (kind == "queue-operation" and session)


def _root(glimpse: Glimpse) -> str | None:
    """The agent whose own file it is, when it is that of a sub-agent alone."""
    for row in glimpse.rows:
        if row.get("type") in ("user", "assistant"):
            return text(row, "agentId") if row.get("isSidechain") is True else None
    return None


@dataclass(frozen=True, slots=True)
class _Call:
    work: Work
    id: str
    message: str | None
    block: object


class _Reader:
    """Tells a transcript what each line says."""

    def __init__(self, told: Transcript, root: str | None) -> None:
        self.told = told
        self._root = root
        self._version: str | None = None
        self._model: str | None = None
        self._stream = False
        self._sidechains: dict[str, str] = {}
        self._ids = CallIds()
        self._calls: dict[str | None, _Call] = {}
        self._agents: dict[str, Work] = {}
        self._prompts: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._interrupted = False
        self._usage: dict[str, tuple[Work, dict[str, object]]] = {}
        self._total: dict[str, object] = {}

    def line(self, row: dict[str, object]) -> None:
        """One line, of whatever kind."""
        kind = row.get("type")
        session = text(row, "sessionId") or text(row, "session_id")
        self.told.job = self.told.job or session
        self._version = text(row, "version") or self._version
        if kind == "system" and row.get("subtype") == "init":
            self._stream = True
            self._version = text(row, "claude_code_version") or self._version
            self._model = text(row, "model") or self._model
        elif kind == "assistant":
            self._assistant(row)
        elif kind == "user":
            self._user(row)
        elif kind == "result":
            self._result(row)
        elif not isinstance(kind, str) and "message" in row:
            self.told.ledger.lose("a line does not say of what type it is")

    def end(self) -> Imported:
        """The job, when all lines were told."""
        told = self.told
        told.written_by("Claude Code", self._version, self._model)
        for id, prompt in self._prompts.items():
            self._delegated(id, prompt)
        if self._stream and told.clock.zoned:
            told.ledger.lose("a stream gives no time of what the agent said and called", "times")
        if self._total:
            use(told.main, None, self._total)
        else:
            for id, (work, usage) in self._usage.items():
                use(work, id, usage)
        return told.imported()

    def _delegated(self, id: str, prompt: str) -> None:
        """A call of a sub-agent: its lines may be here under its call, its name or its prompt."""
        agent = self._agents.get(id) or self._agents.get(self._names.get(id, ""))
        if agent is None:
            if all(each.description != prompt for each in self._agents.values()):
                self.told.delegate(id)
        elif agent.description is None and prompt:
            agent.description = prompt

    def _work(self, row: dict[str, object]) -> Work:
        """Whose line it is: a sub-agent's is marked, each version in its own way."""
        called_by, agent = text(row, "parent_tool_use_id"), text(row, "agentId")
        side = row.get("isSidechain") is True and (agent is None or agent != self._root)
        if called_by is None and not side:
            return self.told.main
        key = called_by or agent
        if key is None:
            own = text(row, "uuid") or ""
            key = self._sidechains.get(text(row, "parentUuid") or "")
            key = key or f"sidechain-{len(set(self._sidechains.values())) + 1}"
            self._sidechains[own] = key
        return self._agents.setdefault(key, self.told.work(key))

    def _assistant(self, row: dict[str, object]) -> None:
        self._interrupted = False
        message = mapping(row, "message")
        if not isinstance(message.get("content"), str | list):
            self.told.ledger.lose("an answer of the agent has no content")
        words = spoken(message.get("content"))
        if row.get("isApiErrorMessage") is True:
            reason = words.strip().partition("\n")[0][:200] or "the provider gave an error"
            self.told.end("failed", "api_error", Stop(reason=reason, fault="infrastructure"))
            return
        if message.get("model") == "<synthetic>":
            return
        work = self._work(row)
        id = text(message, "id") or text(row, "uuid")
        at = self.told.clock.text(row.get("timestamp"))
        self._model = (text(message, "model") if work.id == "main" else None) or self._model
        self._say(work, id, words, at)
        if id is not None and isinstance(message.get("usage"), dict):
            usage = mapping(message, "usage")
            self._usage[id] = work, usage | {"model": message.get("model")}
        calls = False
        for block in listing(message.get("content")):
            calls = self._block(work, id, block, at) or calls
        if work.id == "main":
            self._ended(text(message, "stop_reason"), words, calls)

    def _say(self, work: Work, id: str | None, words: str, at: datetime | None) -> None:
        """The text of a line; lines with one id are parts of one message."""
        before = work.said(id)
        if before is None:
            work.say(words, at=at, id=id)
        elif words.strip() and words not in before:
            work.say(f"{before}\n{words}", at=at, id=id)

    def _block(self, work: Work, message: str | None, block: object, at: datetime | None) -> bool:
        """One part of an answer; whether it calls a tool."""
        kind = text(block, "type") or ""
        if not kind and not isinstance(block, str):
            self.told.ledger.lose("a part of an answer does not say of what type it is")
        if kind.endswith("tool_result"):
            self._returned(block, None, at)
            return False
        if not kind.endswith("tool_use"):
            return False
        named = text(block, "id")
        known = self._calls.get(named)
        if known is not None and known.message == message and known.block == block:
            return True
        name, arguments = text(block, "name"), mapping(block, "input")
        if within(block, "input") is not None and not isinstance(within(block, "input"), dict):
            self.told.ledger.lose("the arguments of a call cannot be read", *CALLS)
        tool, server, how, kept = called(name, arguments)
        id = work.call(self._ids.new(named), how, tool, kept, server=server, at=at)
        self._calls[named] = _Call(work, id, message, block)
        if name in _AGENTS:
            self._prompts[id] = text(arguments, "prompt") or ""
        return True

    def _ended(self, reason: str | None, words: str, calls: bool) -> None:
        limit = _LIMITS.get(reason or "")
        if calls or reason == "tool_use" or (reason is None and not words.strip()):
            self.told.goes_on()
        elif limit is not None:
            self.told.end("timed_out", reason, Stop(reason=limit, fault="agent"))
        elif reason == "refusal":
            stop = Stop(reason="the model refused to go on", fault="agent")
            self.told.end("failed", reason, stop)
        elif reason is not None or not self._stream:
            # In a stream a missing reason says nothing: its last line does.
            self.told.end("completed", reason)

    def _user(self, row: dict[str, object]) -> None:
        content = within(row, "message", "content")
        at = self.told.clock.text(row.get("timestamp"))
        blocks = listing(content)
        results = [block for block in blocks if text(block, "type") == "tool_result"]
        for block in results:
            result = row.get("toolUseResult", row.get("tool_use_result"))
            self._returned(block, result if len(results) == 1 else None, at)
        work = self._work(row)
        main = work.id == "main"
        words = spoken([block for block in blocks if block not in results] if blocks else content)
        if results and main:
            self.told.goes_on()
        start = words.lstrip()
        if not start or start.startswith(_NOT_ASKED):
            return
        if row.get("isMeta") is True or row.get("isCompactSummary") is True:
            return
        if start.startswith(_INTERRUPTED):
            stop = Stop(reason="a user interrupted the agent", fault="operator")
            self.told.end("cancelled", "interrupted", stop)
            self._interrupted = True
        elif main:
            self.told.ask(words, at=at)
            self.told.goes_on()
        elif work.description is None and self.told.ledger.room(words):
            work.description = words

    def _returned(self, block: object, result: object, at: datetime | None) -> None:
        call = self._calls.get(text(block, "tool_use_id"))
        output = spoken(within(block, "content"))
        error = within(block, "is_error") is True
        work, id = (call.work, call.id) if call else (self.told.main, "")
        shell = work.kind_of(id) == "shell"
        outcome, status = outcome_of(shell, error, output, result)
        if shell and outcome == "refused" and not tells_status(self._version):
            # The command may have printed just that.
            why = "whether a command was refused or ran cannot be told in a version this old"
            self.told.ledger.lose(why, "executed_commands")
        if outcome in ("refused", "failed"):
            self._prompts.pop(id, None)
        elif (agent := text(result, "agentId")) is not None:
            self._names[id] = agent
        work.returned(id, output=output, exit_code=status, outcome=outcome, at=at)

    def _result(self, row: dict[str, object]) -> None:
        """The last line of a stream."""
        word = text(row, "subtype") or "result"
        for denial in listing(row, "permission_denials"):
            call = self._calls.get(text(denial, "tool_use_id"))
            if call is not None:
                call.work.returned(call.id, outcome="refused")
        self._total = total_of(row)
        if word == "success" and row.get("is_error") is not True:
            self.told.end("completed", text(row, "stop_reason") or word)
        elif word in _LIMITS:
            self.told.end("timed_out", word, Stop(reason=_LIMITS[word], fault="agent"))
        elif not self._interrupted:
            said = (text(row, "result") or "").strip().partition("\n")[0][:200]
            reason = said or f"the agent's program ended with {word}"
            self.told.end("failed", word, Stop(reason=reason, fault="infrastructure"))
