"""GitHub Copilot CLI: the events that it prints and keeps, JSON lines of `{type, data}`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from opsdrill.evidence.transcripts.call_ids import CallIds
from opsdrill.evidence.transcripts.glimpse import Glimpse
from opsdrill.evidence.transcripts.imported import Imported, Placing
from opsdrill.evidence.transcripts.patch import files_of
from opsdrill.evidence.transcripts.reading import objects_in, rows_of
from opsdrill.evidence.transcripts.rows import listing, mapping, row, spoken, text, whole, within
from opsdrill.evidence.transcripts.source import Source
from opsdrill.evidence.transcripts.transcript import Transcript
from opsdrill.evidence.transcripts.work import CALLS, Work
from opsdrill.model.job import Outcome, Stop, ToolKind

_PREFIXES = ("session.", "assistant.", "tool.", "user.message", "subagent.")
_SHELLS = frozenset({"bash", "shell", "powershell"})
_EXITED = re.compile(r"<(?:shellId: .{1,40} completed|exited) with exit code (-?\d{1,9})>\s*\Z")
_SAME_ID = "two calls that differ have the same id, and one is kept"
_REFUSED = re.compile(r"(?:The )?user (?:rejected|denied|declined)|Permission denied and", re.I)


class CopilotCliImporter:
    """Event logs of GitHub Copilot CLI."""

    title = "GitHub Copilot CLI"

    def knows(self, glimpse: Glimpse) -> bool:
        """A line is an event of a kind that only this program has, with its data."""
        return any(
            (text(each, "type") or "").startswith(_PREFIXES) and isinstance(each.get("data"), dict)
            for each in glimpse.rows
        )

    def read(self, source: Source, placing: Placing) -> Iterator[Imported]:
        """The one job of a session; sub-agents are tasks of their own."""
        reader = _Reader(Transcript("copilot-cli", self.title, placing))
        rows = 0
        for each in rows_of(source, reader.told.ledger):
            rows += 1
            reader.line(each)
        if not rows:
            raise source.broken("holds no event of GitHub Copilot CLI")
        yield reader.end()


@dataclass(frozen=True, slots=True)
class _Request:
    """A call that the model asked for; nothing says yet that it started."""

    work: Work
    request: dict[str, object]
    at: datetime | None


@dataclass(frozen=True, slots=True)
class _Call:
    work: Work
    id: str


class _Reader:
    """Tells a transcript what each event says."""

    def __init__(self, told: Transcript) -> None:
        self.told = told
        self._version: str | None = None
        self._model: str | None = None
        self._aborted = False
        self._requests: dict[str, _Request] = {}
        self._ids = CallIds()
        self._calls: dict[str, _Call] = {}
        self._agents: dict[str, str] = {}
        self._prompts: dict[str, str] = {}
        self._usage: dict[str, tuple[Work, str | None, int | None]] = {}
        self._total: dict[str, object] = {}

    def line(self, line: dict[str, object]) -> None:
        """One event, of whatever kind."""
        data = mapping(line, "data")
        at = self.told.clock.text(line.get("timestamp"))
        match text(line, "type"):
            case "session.start" | "session.resume":
                self.told.job = text(data, "sessionId") or self.told.job
                self._version = text(data, "copilotVersion") or self._version
                self._model = text(data, "selectedModel") or self._model
            case "session.model_change":
                self._model = text(data, "newModel") or self._model
            case "user.message":
                self._asked(line, data, at)
            case "assistant.message":
                self._said(line, data, at)
            case "tool.execution_start":
                self._started(line, data, at)
            case "tool.execution_complete":
                self._returned(data, at)
            case "subagent.started":
                self._agent(line, data)
            case "session.error":
                self._failed("session.error", text(data, "message"))
            case "abort":
                self._abort(text(data, "reason"))
            case "session.shutdown":
                self._shutdown(data)
            case "result":
                self._result(line)
            case None if data:
                self.told.ledger.lose("an event does not say of what type it is")

    def end(self) -> Imported:
        """The job, when all events were told."""
        told = self.told
        told.written_by("GitHub Copilot CLI", self._version, self._model)
        for id, asked in self._requests.items():
            self._call(asked.work, id, asked.request, asked.at)
        for id, prompt in self._prompts.items():
            told.delegate(id)
            if id in self._agents.values() and told.work(id).description is None:
                told.work(id).description = prompt or None
        if self._total:
            _use_all(told.main, self._total)
        else:
            for id, (work, model, tokens) in self._usage.items():
                work.use(id, model=model, output_tokens=tokens)
        return told.imported()

    def _work(self, line: dict[str, object], data: dict[str, object]) -> Work:
        """Whose event it is: a sub-agent's names the call that started it, or its own name."""
        agent = text(line, "agentId")
        called_by = text(data, "parentToolCallId") or self._agents.get(agent or "", agent)
        if called_by is None:
            return self.told.main
        self._agents.setdefault(agent or called_by, called_by)
        return self.told.work(called_by)

    def _agent(self, line: dict[str, object], data: dict[str, object]) -> None:
        call = text(data, "toolCallId")
        if call is not None:
            self._agents[text(line, "agentId") or call] = call
            work = self.told.work(call)
            work.agent = text(data, "agentName") or work.agent

    def _asked(self, line: dict[str, object], data: dict[str, object], at: datetime | None) -> None:
        words, work = spoken(data.get("content")), self._work(line, data)
        if text(data, "source") not in (None, "user"):
            return  # put there by the program, e.g. the text of a skill
        if work.id == "main":
            self.told.ask(words, at=at)
            self.told.goes_on()
        elif work.description is None and self.told.ledger.room(words):
            work.description = words or None

    def _said(self, line: dict[str, object], data: dict[str, object], at: datetime | None) -> None:
        work, id = self._work(line, data), text(data, "messageId")
        work.say(spoken(data.get("content")), at=at, id=id)
        if work.id == "main":
            self._model = text(data, "model") or self._model
        if id is not None:
            self._usage[id] = work, text(data, "model"), whole(data, "outputTokens")
        requests = objects_in(data, "toolRequests", self.told.ledger)
        for each in requests:
            call = text(each, "toolCallId")
            if call is None:
                self.told.ledger.lose("a call has no name")
            elif self._waits(call):
                self._call(work, call, each, at)
            elif self._requests.setdefault(call, _Request(work, each, at)).request != each:
                self.told.ledger.lose(_SAME_ID, *CALLS)
        if work.id == "main" and not requests and spoken(data.get("content")).strip():
            self.told.end("completed")
        elif work.id == "main":
            self.told.goes_on()

    def _started(
        self, line: dict[str, object], data: dict[str, object], at: datetime | None
    ) -> None:
        id = text(data, "toolCallId") or ""
        asked = self._requests.pop(id, None)
        work = asked.work if asked is not None else self._work(line, data)
        self._call(work, id, (asked.request if asked is not None else {}) | data, at)

    def _waits(self, named: str) -> bool:
        """Whether a call with this name is under way; another one with the name is a new call."""
        call = self._calls.get(named)
        return call is not None and call.work.waits_for(call.id)

    def _call(self, work: Work, named: str, asked: dict[str, object], at: datetime | None) -> None:
        # One that waits is told again: by its request and by its start.
        id = self._calls[named].id if self._waits(named) else self._ids.new(named)
        self._calls.setdefault(named, _Call(work, id))
        if self._calls[named].id != id:
            self._calls[named] = _Call(work, id)
        work = self._calls[named].work
        name = text(asked, "toolName") or text(asked, "name")
        given = asked.get("arguments")
        if isinstance(given, str):
            given = row(given.encode(errors="replace")) or given
        server = text(asked, "mcpServerName")
        patch = given if isinstance(given, str) else text(given, "input") or text(given, "patch")
        files = files_of(patch or "") if name == "apply_patch" else []
        if server is not None:
            tool = text(asked, "mcpToolName") or name
            work.call(id, "mcp", tool, given, server=server, at=at)
        elif files:
            work.call_files(id, name, files, at=at)
        else:
            work.call(id, _kind(name, given), name, given, at=at)
        if name == "task":
            self._prompts[id] = text(given, "prompt") or ""
        if work.id == "main":
            self.told.goes_on()

    def _returned(self, data: dict[str, object], at: datetime | None) -> None:
        named = text(data, "toolCallId") or ""
        asked = self._requests.pop(named, None)
        if asked is not None:
            self._call(asked.work, named, asked.request, asked.at)
        call = self._calls.get(named)
        work, id = (call.work, call.id) if call else (self.told.main, "")
        output = spoken(within(data, "result", "content"))
        parts = listing(data, "result", "contents")
        status = next(
            (code for part in parts if (code := whole(part, "exitCode")) is not None), None
        )
        exited = _EXITED.search(output)
        if status is None and exited is not None:
            status = int(exited[1])
        outcome = _outcome(data)
        if outcome in ("failed", "refused"):
            self._prompts.pop(id, None)
        output = output or text(data, "error", "message") or ""
        shell = work.kind_of(id) == "shell"
        work.returned(
            id, output=output, exit_code=status if shell else None, outcome=outcome, at=at
        )
        if work.id == "main":
            self.told.goes_on()

    def _failed(self, word: str, said: str | None) -> None:
        reason = (said or "").strip().partition("\n")[0][:200] or "the program gave an error"
        self.told.end("failed", word, Stop(reason=reason, fault="infrastructure"))

    def _abort(self, word: str | None) -> None:
        self._aborted = True
        stop = Stop(reason="a user interrupted the agent", fault="operator")
        self.told.end("cancelled", word or "abort", stop)

    def _shutdown(self, data: dict[str, object]) -> None:
        self._total = mapping(data, "modelMetrics")
        if text(data, "shutdownType") == "error":
            self._failed("session.shutdown", text(data, "errorReason"))

    def _result(self, line: dict[str, object]) -> None:
        """The last event of a session without a user."""
        status = whole(line, "exitCode")
        self.told.job = text(line, "sessionId") or self.told.job
        if status == 0 and not self._aborted:
            self.told.end("completed", "exitCode 0")
        elif status is not None and not self._aborted:
            self._failed(f"exitCode {status}", f"the program ended with exit code {status}")


def _kind(name: str | None, given: object) -> ToolKind:
    if name in _SHELLS:
        return "shell"
    if name == "create":
        return "write_file"
    if name == "edit":
        return "update_file"
    if name == "str_replace_editor":
        does = text(given, "command")
        if does == "create":
            return "write_file"
        return "update_file" if does in ("str_replace", "insert", "undo_edit") else "other"
    return "other"


def _outcome(data: dict[str, object]) -> Outcome:
    if data.get("success") is not False:
        return "ran"
    code, said = text(data, "error", "code"), text(data, "error", "message") or ""
    if code in ("denied", "rejected") or _REFUSED.match(said):
        return "refused"
    return "timed_out" if code == "timeout" else "failed"


def _use_all(work: Work, total: dict[str, object]) -> None:
    """What a whole session used, model by model."""
    for model, each in total.items():
        work.use(
            model,
            model=model,
            input_tokens=whole(each, "usage", "inputTokens"),
            output_tokens=whole(each, "usage", "outputTokens"),
        )
