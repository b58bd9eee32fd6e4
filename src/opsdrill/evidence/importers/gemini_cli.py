"""Gemini CLI: the sessions that it keeps, JSON lines or, in older versions, one document.

A message is written again whenever it grows: the last form of each counts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from opsdrill.evidence.transcripts.call_ids import CallIds
from opsdrill.evidence.transcripts.glimpse import Glimpse
from opsdrill.evidence.transcripts.imported import Imported, Placing
from opsdrill.evidence.transcripts.reading import items_of, objects_in, rows_of
from opsdrill.evidence.transcripts.rows import listing, mapping, spoken, text, whole
from opsdrill.evidence.transcripts.source import Source
from opsdrill.evidence.transcripts.transcript import Transcript
from opsdrill.evidence.transcripts.work import CALLS
from opsdrill.model.job import Outcome, Stop, ToolKind

_EDITS: dict[str | None, ToolKind] = {
    "write_file": "write_file",
    "replace": "update_file",
    "edit": "update_file",
}
_FOOT = re.compile(r"(Error|Exit Code|Signal|Background PIDs|Process Group PGID|PIDs): ?(.*)")
_MCP = re.compile(r"(.+) \((.+) MCP Server\)", re.DOTALL)
_TIMED_OUT = re.compile(r"Command was automatically cancelled because it exceeded the timeout")
_REFUSED = re.compile(
    r"(?!Command|Output:)[^\n]{0,300}"
    r"(?:did not allow|denied by (?:the )?(?:policy|user)|[Tt]ool execution (?:was )?denied)"
)
"""On the first line, which is the program's own: what a command printed stands behind it."""
_NOT_ASKED = ("<session_context>", "<system-reminder>")
"""How the program's own words among the user's begin."""
_OPEN = frozenset({"validating", "scheduled", "executing", "awaiting_approval"})


class GeminiCliImporter:
    """Sessions of Gemini CLI."""

    title = "Gemini CLI"

    def knows(self, glimpse: Glimpse) -> bool:
        """It names its session and its project, as no other program does."""
        return _is_document(glimpse) or any(
            "sessionId" in row and "projectHash" in row for row in glimpse.rows
        )

    def read(self, source: Source, placing: Placing) -> Iterator[Imported]:
        """The one job of a session."""
        reader = _Reader(Transcript("gemini-cli", self.title, placing))
        ledger, read = reader.told.ledger, 0
        if _is_document(source.glimpse):
            reader.line({"sessionId": source.glimpse.scalars.get("sessionId")})
            rows = items_of(source, "messages.item", ledger)
        else:
            rows = rows_of(source, ledger)
        for row in rows:
            read += 1
            reader.line(row)
        if not read:
            raise source.broken("holds no message of a Gemini CLI session")
        yield reader.end()


def _is_document(glimpse: Glimpse) -> bool:
    return glimpse.has("sessionId", "projectHash", "messages")


class _Reader:
    """Tells a transcript what each line says."""

    def __init__(self, told: Transcript) -> None:
        self.told = told
        self._model: str | None = None
        self._asked: set[str] = set()
        self._ids = CallIds()
        self._known: dict[tuple[str | None, int, str], str] = {}
        self._agents: set[str] = set()

    def line(self, row: dict[str, object]) -> None:
        """A message, a patch that may hold messages, or the head."""
        patch = mapping(row, "$set")
        if patch:
            for message in objects_in(patch, "messages", self.told.ledger):
                self._message(message)
        elif "type" in row:
            self._message(row)
        elif "toolCalls" in row:
            self.told.ledger.lose("a message does not say whose it is")
        else:
            self.told.job = text(row, "sessionId") or self.told.job

    def end(self) -> Imported:
        """The job, when all lines were told."""
        self.told.written_by("Gemini CLI", None, self._model)
        for id in self._agents:
            self.told.delegate(id)
        return self.told.imported()

    def _message(self, message: dict[str, object]) -> None:
        at = self.told.clock.text(message.get("timestamp"))
        if message.get("type") != "gemini" and message.get("toolCalls"):
            self.told.ledger.lose("a message with calls is not the agent's")
        words, id = spoken(message.get("content")), text(message, "id")
        match text(message, "type"):
            case "user":
                self._user(id, words, at)
            case "gemini":
                self._answer(message, id, words, at)
            case "error":
                reason = words.strip().partition("\n")[0][:200] or "the program gave an error"
                self.told.end("failed", "error", Stop(reason=reason, fault="infrastructure"))
            case "info" if words.strip().lower().startswith("request cancelled"):
                stop = Stop(reason="a user interrupted the agent", fault="operator")
                self.told.end("cancelled", "Request cancelled", stop)

    def _user(self, id: str | None, words: str, at: datetime | None) -> None:
        """What a user said; what tools gave back stands among it without a text."""
        if words.lstrip().startswith(_NOT_ASKED) or id in self._asked:
            return
        if words.strip():
            self.told.ask(words, at=at)
            self._asked.add(id or "")
        self.told.goes_on()

    def _answer(
        self, message: dict[str, object], id: str | None, words: str, at: datetime | None
    ) -> None:
        self.told.main.say(words, at=at, id=id)
        self._model = text(message, "model") or self._model
        tokens = mapping(message, "tokens")
        if tokens:
            written = [whole(tokens, "output"), whole(tokens, "thoughts")]
            counted = [count for count in written if count is not None]
            self.told.main.use(
                id,
                model=text(message, "model"),
                input_tokens=whole(tokens, "input"),
                output_tokens=sum(counted) if counted else None,
            )
        calls = objects_in(message, "toolCalls", self.told.ledger)
        times: Counter[str | None] = Counter()
        for call in calls:
            times[text(call, "id")] += 1
            self._call((id, times[text(call, "id")]), call, at)
        if words.strip() and not calls:
            self.told.end("completed")
        else:
            self.told.goes_on()

    def _call(
        self, place: tuple[str | None, int], call: dict[str, object], at: datetime | None
    ) -> None:
        """A call in a message: the same in its next form, where it has its name as often before."""
        named, name = text(call, "id"), text(call, "name")
        id = self._known.get((*place, named or "")) or self._ids.new(named)
        if place[0] is not None and named is not None:
            self._known[*place, named] = id
        given = mapping(call, "args")
        if call.get("args") is not None and not isinstance(call.get("args"), dict):
            self.told.ledger.lose("the arguments of a call cannot be read", *CALLS)
        shown = _MCP.fullmatch(text(call, "displayName") or "")
        work = self.told.main
        if shown is not None:
            id = work.call(id, "mcp", shown[1], given, server=shown[2], at=at, revised=True)
        elif name is not None and name.startswith("mcp_"):
            server, _, tool = name.removeprefix("mcp_").strip("_").partition("_")
            if "_" in tool:
                why = "it is not clear where a server's name ends and its tool's begins"
                self.told.ledger.lose(why, "use_mcp_tool")
            id = work.call(id, "mcp", tool, given, server=server, at=at, revised=True)
        else:
            kind, kept = _kind(name, given)
            id = work.call(id, kind, name, kept, at=at, revised=True)
        status = text(call, "status")
        if status in _OPEN or status is None:
            return
        said = _said(call)
        outcome = _outcome(status, said)
        exit_code = _exit_code(said) if work.kind_of(id) == "shell" else None
        ended = self.told.clock.text(call.get("timestamp"))
        if text(call, "agentId") is not None and outcome == "ran":
            self._agents.add(id)
        work.returned(id, output=said, exit_code=exit_code, outcome=outcome, at=ended, revised=True)


def _kind(name: str | None, given: dict[str, object]) -> tuple[ToolKind, dict[str, object]]:
    if name == "run_shell_command":
        return "shell", given
    if name in _EDITS:
        path = given.get("file_path", given.get("absolute_path"))
        rest = {key: given[key] for key in given if key not in ("file_path", "absolute_path")}
        return _EDITS[name], {"path": path, **rest}
    return "other", given


def _said(call: dict[str, object]) -> str:
    """What a call gave back, as the model got it, or else as it was shown."""
    answers = [mapping(part, "functionResponse", "response") for part in listing(call, "result")]
    texts = [text(answer, "output") or text(answer, "error") for answer in answers]
    said = "\n".join(each for each in texts if each)
    return said or text(call, "resultDisplay") or ""


def _exit_code(said: str) -> int | None:
    """The status at the foot of a shell's answer; zero is not always told."""
    lines = said.removesuffix("\n").removesuffix("</untrusted_context>").rstrip().splitlines()
    for line in reversed(lines):
        foot = _FOOT.fullmatch(line)
        if foot is None:
            return None
        if foot[1] == "Exit Code":
            digits = foot[2].strip()
            return int(digits) if re.fullmatch(r"-?[0-9]{1,9}", digits) else None
    return None


def _outcome(status: str, said: str) -> Outcome:
    if _TIMED_OUT.search(said[:2000]):
        return "timed_out"
    if status == "success":
        return "ran"
    # A call that a user broke off may have begun: only one that was not allowed did not.
    return "refused" if _REFUSED.match(said) else "failed"
