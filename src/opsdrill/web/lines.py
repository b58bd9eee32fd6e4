"""Lines of a transcript as people see them: in short, and opened up, with long texts cut."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from opsdrill.app.lines import Line, written
from opsdrill.model.job import AgentMessage, Job, Task, ToolCall
from opsdrill.model.ticket import TicketMessage

SHORT = 240
"""Characters of the one line that stands for a piece."""
OPENED = 4000
"""Characters of one text of an opened piece."""
WHOLE = 1024 * 1024
"""Characters of one text where the whole of it is asked for."""

_OUTCOMES = {"failed": "failed", "timed_out": "timed out", "refused": "refused"}
_CLAIMED = "claimed, never ran"


@dataclass(frozen=True, slots=True)
class Text:
    """One text of a piece; `size` is that of the whole, in characters."""

    name: str
    text: str
    size: int

    @property
    def cut(self) -> bool:
        return len(self.text) < self.size


@dataclass(frozen=True, slots=True)
class LineShown:
    """One line.

    Args:
        number: its place.
        kind: what it is.
        sort: for a call the kind of tool, else its kind, in words.
        host: the task's host.
        short: what it is in one line.
        badge: what became of it, in a word or two.
        tone: the class of that badge.
        texts: all that it says.
        facts: short facts of it.
        at: when it began, or was said.
    """

    number: int
    kind: str
    sort: str
    host: str | None
    short: str
    badge: str
    tone: str
    texts: tuple[Text, ...]
    facts: tuple[tuple[str, str], ...]
    at: datetime | None

    @property
    def cut(self) -> bool:
        """Some text is not whole here."""
        return any(text.cut for text in self.texts)


def shown_line(line: Line, most: int = OPENED) -> LineShown:
    """A line with every text cut after `most` characters."""
    piece = line.piece
    if isinstance(piece, ToolCall):
        sort, short, badge, tone, texts, facts = _call(piece)
    elif isinstance(piece, Task):
        sort, short, badge, tone, texts, facts = _task(piece)
    elif isinstance(piece, AgentMessage):
        sort, short, badge, tone, texts, facts = _plain("says", piece.text)
    elif isinstance(piece, TicketMessage):
        sort, short, badge, tone, texts, facts = _plain(f"{piece.author} on the ticket", piece.body)
        facts = [("name", piece.name)] if piece.name else []
    elif line.kind == "plan":
        sort, short, badge, tone, texts, facts = _plain("plan", piece.plan or "")
    else:
        sort, short, badge, tone, texts, facts = _resolution(piece)
    return LineShown(
        line.number,
        line.kind,
        sort,
        line.task.host if line.task else None,
        one_line(short),
        badge,
        tone,
        tuple(Text(name, text[:most], len(text)) for name, text in texts if text),
        tuple(facts),
        line.at,
    )


def one_line(text: str) -> str:
    """The beginning of a text, on one line."""
    return " ".join(text[: 2 * SHORT].split())[:SHORT]


_Parts = tuple[str, str, str, str, Sequence[tuple[str, str]], Sequence[tuple[str, str]]]


def _plain(sort: str, text: str) -> _Parts:
    return sort, text, "", "", [("text", text)], []


def _call(call: ToolCall) -> _Parts:
    given = written(call)
    name = "/".join(filter(None, (call.server, call.tool)))
    said = call.command or call.path or given
    sort = {"shell": "runs", "write_file": "writes", "update_file": "edits"}.get(call.kind, name)
    badge, tone = _ended(call)
    first = "command" if call.command else "arguments"
    texts = [(first, call.command or given), ("output", call.output or "")]
    facts = [(name, value) for name, value in _facts(call).items() if value]
    return sort or call.kind, said, badge, tone, texts, facts


def _ended(call: ToolCall) -> tuple[str, str]:
    if call.outcome == "claimed":
        return _CLAIMED, "error"
    if call.outcome != "ran":
        return _OUTCOMES.get(call.outcome, call.outcome), "failed"
    if call.exit_code:
        return f"exit {call.exit_code}", "failed"
    return "", ""


def _facts(call: ToolCall) -> Mapping[str, str | None]:
    both = call.started_at and call.ended_at
    took = (call.ended_at - call.started_at).total_seconds() if both else None  # type: ignore[operator]
    seen = {"agent": "reported by the agent", "gateway": "seen by the gateway, not reported"}
    return {
        "tool": "/".join(filter(None, (call.server, call.tool))) or None,
        "outcome": call.outcome.replace("_", " "),
        "exit status": None if call.exit_code is None else str(call.exit_code),
        "took": None if took is None else f"{took:.2f} s",
        "witness": seen.get(call.witness, "reported by the agent and seen by the gateway"),
    }


def _task(task: Task) -> _Parts:
    tone = {"completed": "passed", "failed": "failed", "timed_out": "failed"}.get(task.status, "")
    ended = ": ".join(filter(None, (task.stop_reason, task.summary)))
    rules = "\n".join(task.operational_rules or ())
    texts = [
        ("description", task.description or ""),
        ("operational rules", rules),
        ("summary", ended),
    ]
    facts = [("task", task.id), ("host", task.host)]
    if task.turn is not None:
        facts.append(("turn", str(task.turn)))
    if task.agent:
        facts.append(("agent", task.agent))
    short = task.description or task.summary or task.id
    return "task", short, task.status.replace("_", " "), tone, texts, facts


def _resolution(job: Job) -> _Parts:
    resolution = job.resolution or "no resolution"
    good = resolution in ("success", "partial", "no_action")
    why = job.resolution_reasoning or ""
    short = f"{resolution.replace('_', ' ')}: {why}" if why else resolution.replace("_", " ")
    facts = [("resolution", resolution), ("status", job.status.replace("_", " "))]
    return (
        "ends",
        short,
        job.status.replace("_", " "),
        "" if good else "failed",
        [("reasoning", why)],
        facts,
    )
