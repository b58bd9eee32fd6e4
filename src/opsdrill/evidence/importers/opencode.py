"""OpenCode: an exported session, one document of `{info, messages: [{info, parts}]}`, and what
`opencode run --format json` prints, JSON lines of `{type, timestamp, sessionID, part}`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opsdrill.evidence.transcripts.call_ids import CallIds
from opsdrill.evidence.transcripts.glimpse import Glimpse
from opsdrill.evidence.transcripts.imported import Imported, Placing
from opsdrill.evidence.transcripts.patch import files_of
from opsdrill.evidence.transcripts.reading import items_of, objects_in, rows_of
from opsdrill.evidence.transcripts.rows import mapping, number, text, whole, within
from opsdrill.evidence.transcripts.source import Source
from opsdrill.evidence.transcripts.transcript import Transcript
from opsdrill.evidence.transcripts.work import CALLS
from opsdrill.model.job import Outcome, Stop, ToolKind

_EDITS: dict[str | None, ToolKind] = {
    "write": "write_file",
    "edit": "update_file",
    "multiedit": "update_file",
}
_PATCHES = frozenset({"patch", "apply_patch"})
_EVENTS = frozenset({"step_start", "step_finish", "tool_use", "text", "reasoning", "error"})
_OWN = frozenset({"todo_write", "todo_read", "plan_enter", "plan_exit", "apply_patch"})
"""Its own tools that look like those of MCP servers, whose names are put before an underscore."""
_TIMED_OUT = re.compile(
    r"<(\w+)_metadata>\s*(?:shell|bash) tool terminated command after .*timeout"
)
_REFUSED = re.compile(r"The user rejected permission|The user has specified a rule which prevents")


class OpenCodeImporter:
    """Exported sessions of OpenCode, and the events of a run of it."""

    title = "OpenCode"

    def knows(self, glimpse: Glimpse) -> bool:
        """Its messages are of an `info` and parts, and so is no other program's."""
        document = glimpse.has("info.id", "messages") and (
            glimpse.has("messages.item.info", "messages.item.parts")
            or glimpse.has("info.directory", "info.time")
        )
        return document or _is_stream(glimpse)

    def read(self, source: Source, placing: Placing) -> Iterator[Imported]:
        """The one job of a session."""
        reader = _Reader(Transcript("opencode", self.title, placing))
        if _is_stream(source.glimpse):
            for row in rows_of(source, reader.told.ledger):
                reader.event(row)
            yield reader.end()
            return
        reader.head(mapping(source.value("info")))
        read = 0
        for message in items_of(source, "messages.item", reader.told.ledger):
            read += 1
            parts = objects_in(message, "parts", reader.told.ledger)
            reader.message(mapping(message, "info"), parts)
        if not read:
            raise source.broken("holds no message of an OpenCode session")
        yield reader.end()


def _is_stream(glimpse: Glimpse) -> bool:
    return any(
        text(row, "type") in _EVENTS
        and text(row, "sessionID") is not None
        and bool({"part", "error"} & set(row))
        for row in glimpse.rows
    )


class _Reader:
    """Tells a transcript what each message says."""

    def __init__(self, told: Transcript) -> None:
        self.told = told
        self._version: str | None = None
        self._model: str | None = None
        self._ids = CallIds()
        self._agents: set[str] = set()
        self._calls = 0

    def head(self, info: dict[str, object]) -> None:
        """What stands before the messages."""
        self.told.job = text(info, "id")
        self._version = text(info, "version")
        self._model = text(info, "model", "id")

    def message(self, info: dict[str, object], parts: list[dict[str, object]]) -> None:
        """One message, of whatever kind."""
        if text(info, "role") == "user":
            said = [
                text(part, "text")
                for part in parts
                if text(part, "type") == "text"
                and within(part, "synthetic") is not True
                and within(part, "ignored") is not True
            ]
            at = self.told.clock.count(within(info, "time", "created"), 1000)
            self.told.ask("\n".join(each for each in said if each), at=at)
            self.told.goes_on()
        elif text(info, "role") == "assistant":
            self._answer(info, parts)
        else:
            self.told.ledger.lose("a message does not say whose it is")

    def event(self, row: dict[str, object]) -> None:
        """One line of what a run prints; what was asked is not among them."""
        part, kind = mapping(row, "part"), text(row, "type")
        self.told.job = self.told.job or text(row, "sessionID")
        if kind == "error":
            self._ended({"error": row.get("error") or {"name": "error"}}, None, False)
        elif kind == "text":
            at = self.told.clock.count(within(part, "time", "start") or row.get("timestamp"), 1000)
            self.told.main.say(text(part, "text"), at=at, id=text(part, "id"))
        elif kind == "tool_use" or text(part, "type") == "tool":
            self._calls += 1
            self.told.goes_on()
            self._call(part)
        elif kind == "step_start":
            self._calls = 0
            self.told.goes_on()
        elif kind == "step_finish":
            reason = text(part, "reason")
            if reason == "tool-calls" and not self._calls:
                # Older versions print no call that failed.
                self.told.ledger.lose("a step called a tool that is not in it", *CALLS)
            self._use(part)
            self._ended({"time": {"completed": 0}}, reason, self._calls > 0)
        elif kind != "reasoning" and "part" in row:
            self.told.ledger.lose("an event is of no type that is known here", *CALLS)

    def end(self) -> Imported:
        """The job, when all messages were told."""
        self.told.written_by("OpenCode", self._version, self._model)
        for id in self._agents:
            self.told.delegate(id)
        return self.told.imported()

    def _answer(self, info: dict[str, object], parts: list[dict[str, object]]) -> None:
        self._model = text(info, "modelID") or self._model
        self._use(info)
        calls, reason = False, text(info, "finish")
        for part in parts:
            kind = text(part, "type")
            if kind == "text" and within(part, "synthetic") is not True:
                at = self.told.clock.count(within(part, "time", "start"), 1000)
                self.told.main.say(text(part, "text"), at=at, id=text(part, "id"))
            elif kind == "tool":
                calls = True
                self._call(part)
            elif kind == "step-finish":
                reason = text(info, "finish") or text(part, "reason")
            elif kind == "subtask":
                # Asked of another agent, whose session is kept apart.
                self._agents.add(text(part, "id") or "subtask")
            elif kind is None or "tool" in part:
                self.told.ledger.lose("a part of an answer does not say of what type it is")
        self._ended(info, reason, calls)

    def _ended(self, info: dict[str, object], reason: str | None, calls: bool) -> None:
        error = text(info, "error", "name")
        completed = within(info, "time", "completed") is not None
        if error == "MessageAbortedError":
            stop = Stop(reason="a user interrupted the agent", fault="operator")
            self.told.end("cancelled", error, stop)
        elif error in ("MessageOutputLengthError", "ContextOverflowError") or reason == "length":
            stop = Stop(reason="the agent reached its limit of tokens", fault="agent")
            self.told.end("timed_out", error or reason, stop)
        elif error is not None or reason in ("error", "content-filter"):
            said = (text(info, "error", "data", "message") or "").strip().partition("\n")[0][:200]
            stop = Stop(reason=said or "the provider gave an error", fault="infrastructure")
            self.told.end("failed", error or reason, stop)
        elif reason == "tool-calls" or (reason in (None, "unknown") and (calls or not completed)):
            self.told.goes_on()
        else:
            self.told.end("completed", reason)

    def _use(self, info: dict[str, object]) -> None:
        """Input is all that the model read, from its provider's cache too."""
        tokens = mapping(info, "tokens")
        read = [whole(tokens, "input"), whole(tokens, "cache", "read")]
        read.append(whole(tokens, "cache", "write"))
        written = [whole(tokens, "output"), whole(tokens, "reasoning")]
        self.told.main.use(
            text(info, "id"),
            model=text(info, "modelID"),
            input_tokens=_sum(read),
            output_tokens=_sum(written),
            cost_usd=number(info, "cost"),
        )

    def _call(self, part: dict[str, object]) -> None:
        state, name = mapping(part, "state"), text(part, "tool")
        given, clock, work = mapping(state, "input"), self.told.clock, self.told.main
        # A part is one call; some models give the same name to several.
        id = self._ids.new(text(part, "callID") or text(part, "id"))
        at = clock.count(within(state, "time", "start"), 1000)
        patch = text(given, "patchText") or text(given, "patch") or ""
        files = files_of(patch) if name in _PATCHES else []
        if files:
            id = work.call_files(id, name, files, at=at)
        elif name in _EDITS:
            rest = {key: value for key, value in given.items() if key != "filePath"}
            arguments = {"path": given.get("filePath"), **rest}
            id = work.call(id, _EDITS[name], name, arguments, at=at)
        elif name is not None and "_" in name.strip("_") and name not in _OWN:
            server, _, tool = name.partition("_")
            if "_" in tool:
                why = "it is not clear where a server's name ends and its tool's begins"
                self.told.ledger.lose(why, "use_mcp_tool")
            id = work.call(id, "mcp", tool, given, server=server, at=at)
        else:
            id = work.call(id, "shell" if name == "bash" else "other", name, given, at=at)
        if text(state, "status") in ("completed", "error"):
            self._returned(id, name, state)

    def _returned(self, id: str, name: str | None, state: dict[str, object]) -> None:
        failed = text(state, "status") == "error"
        output = text(state, "error") if failed else text(state, "output")
        ended = _TIMED_OUT.search((output or "")[-2000:])
        outcome: Outcome = "ran"
        if failed and _REFUSED.match(output or ""):
            outcome = "refused"
        elif failed or name == "invalid":
            outcome = "failed"
        elif name == "bash" and ended is not None:
            outcome = "timed_out"
        if name == "task" and outcome == "ran":
            self._agents.add(id)
        self.told.main.returned(
            id,
            output=output,
            exit_code=whole(state, "metadata", "exit") if name == "bash" else None,
            outcome=outcome,
            at=self.told.clock.count(within(state, "time", "end"), 1000),
        )


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
