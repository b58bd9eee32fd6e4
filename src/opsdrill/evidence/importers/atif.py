"""ATIF, the Agent Trajectory Interchange Format of Harbor, versions 1.5 to 1.7.

Source: Harbor, RFC 0001 "trajectory format" (laude-institute/harbor, docs/rfcs).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import get_args

from opsdrill.evidence.transcripts.call_ids import CallIds
from opsdrill.evidence.transcripts.glimpse import Glimpse
from opsdrill.evidence.transcripts.imported import Imported, Placing
from opsdrill.evidence.transcripts.outcome_text import outcome_in
from opsdrill.evidence.transcripts.reading import items_of, objects_in
from opsdrill.evidence.transcripts.rows import listing, mapping, number, row, spoken, text, within
from opsdrill.evidence.transcripts.rows import whole as integer
from opsdrill.evidence.transcripts.source import Damaged, Source
from opsdrill.evidence.transcripts.tools import Known, known
from opsdrill.evidence.transcripts.transcript import Transcript
from opsdrill.evidence.transcripts.work import Work
from opsdrill.model.job import Outcome, ToolKind

_PARTS = (
    "session_id",
    "agent",
    "steps",
    "final_metrics",
    "continued_trajectory_ref",
    "subagent_trajectories",
)
_FINISH = frozenset({"finish", "mark_task_complete", "submit", "task_complete"})
"""Tools by which an agent says that it is done."""
_AGENTS = frozenset({"Agent", "Task", "delegate"})
"""Tools that set another agent to work."""
_RAN = ("executed_commands", "tool_calls", "write_file", "update_file", "use_mcp_tool")
_IN_WORDS = "what was run stands only in the agent's words, not as tool calls"
_BEFORE = "it goes on from another file, which is not read"
_AFTER = "it goes on in another file, which is not read"
_OUTCOMES: dict[str | None, Outcome] = {each: each for each in get_args(Outcome)}
_KINDS: dict[str | None, ToolKind] = {each: each for each in get_args(ToolKind)}
_NESTED = 8
"""Levels of agents that called agents."""


class AtifImporter:
    """Trajectories of Harbor's agents, one file each."""

    title = "ATIF"

    def knows(self, glimpse: Glimpse) -> bool:
        """It names the format, or its steps are numbered and have a source."""
        version = glimpse.scalars.get("schema_version")
        if isinstance(version, str):
            return version.upper().startswith("ATIF") and glimpse.has("steps")
        return glimpse.has("steps.item.step_id", "steps.item.source")

    def read(self, source: Source, placing: Placing) -> Iterator[Imported]:
        """The one job of the file; agents that were called are tasks of their own."""
        told = Transcript("atif", self.title, placing)
        try:
            parts, missing = source.parts(*_PARTS)
        except Damaged as damage:
            raise source.broken(str(damage)) from None
        if "steps" not in parts:
            raise source.broken("holds no steps")
        if missing is not None:
            told.ledger.lose(missing)
        reader = _Reader(told)
        reader.trajectory(parts)
        yield reader.end()


def _value(parts: dict[str, Source], key: str) -> object:
    return parts[key].value("") if key in parts else None


@dataclass(slots=True)
class _Agent:
    """One agent's steps, as they are read."""

    work: Work
    ids: CallIds = field(default_factory=CallIds)
    open: dict[str, object] = field(default_factory=dict)
    """The calls without a result, and what they are."""
    stated: dict[str, tuple[Outcome, int | None]] = field(default_factory=dict)
    """What became of calls, where the transcript says it in OpsDrill's words."""
    copied: bool = False
    tokens: bool = False
    cost: bool = False
    """Whether its steps say what they used."""


class _Reader:
    """Tells a transcript what the trajectories of a file say."""

    def __init__(self, told: Transcript) -> None:
        self._told = told
        self._sidechains: dict[str, _Agent] = {}
        self._here: set[str] = set()
        self._called: dict[str, tuple[str, ...]] = {}
        self._works = 0
        self._model: str | None = None

    def trajectory(self, parts: dict[str, Source], level: int = 0) -> None:
        """One trajectory, and those of the agents that it called."""
        about = mapping(_value(parts, "agent"))
        work = self._told.main
        if level == 0:
            session = _value(parts, "session_id")
            self._told.job = session if isinstance(session, str) and session else None
            self._model = text(about, "model_name")
            name = text(about, "name") or self._told.title
            self._told.written_by(name, text(about, "version"), self._model)
        else:
            work = self._told.work(f"agent-{self._works}")
            work.agent = text(about, "name")
        agent = _Agent(work)
        if (integer(about, "extra", "continuation_index") or 0) > 0:
            self._told.ledger.lose(_BEFORE)
        for step in items_of(parts["steps"], "item", self._told.ledger):
            self._step(agent, step)
        self._totals(agent, mapping(_value(parts, "final_metrics")))
        following = _value(parts, "continued_trajectory_ref")
        if isinstance(following, str) and following:
            self._told.ledger.lose(_AFTER)
            if level == 0:
                self._told.goes_on()
        if "subagent_trajectories" in parts:
            self._others(parts["subagent_trajectories"], level + 1)

    def _others(self, several: Source, level: int) -> None:
        if level > _NESTED:
            self._told.ledger.lose("agents called agents more deeply than is read")
            return
        try:
            for each in several.objects():
                parts, _ = each.parts("trajectory_id", *_PARTS)
                names = [_value(parts, "trajectory_id"), _value(parts, "session_id")]
                self._here |= {name for name in names if isinstance(name, str)}
                if "steps" in parts:
                    self._works += 1
                    self.trajectory(parts, level)
        except Damaged as damage:
            self._told.ledger.lose(str(damage))

    def end(self) -> Imported:
        """The job, when all steps were told."""
        for id, names in self._called.items():
            found = self._here & set(names) if names else self._sidechains
            if not found:
                self._told.delegate(f"called by {id}")
        return self._told.imported()

    def _step(self, agent: _Agent, step: dict[str, object]) -> None:
        at = self._told.clock.text(step.get("timestamp"))
        extra = mapping(step, "extra")
        source, words = text(step, "source"), spoken(step.get("message"))
        main = agent.work is self._told.main
        if main and extra.get("is_sidechain") is True:
            main = False
            agent = self._sidechain(text(extra, "agent_id") or text(extra, "agentId") or "")
        if step.get("is_copied_context") is True:
            # It stands in the trajectory that this one goes on from. Only what was asked at first
            # is taken from it.
            if not agent.copied:
                self._told.ledger.lose(_BEFORE)
            agent.copied = True
            if source == "user" and agent.work.description is None:
                self._asked(agent, words, at, main=main)
            return
        if source == "agent":
            self._agent_step(agent, step, words, at, main=main)
            return
        if source == "user":
            self._asked(agent, words, at, main=main)
        if main:
            self._told.goes_on()
        self._results(agent, step, [])

    def _sidechain(self, name: str) -> _Agent:
        if name not in self._sidechains:
            work = self._told.work(f"agent {name}" if name else "agent")
            self._sidechains[name] = _Agent(work)
        return self._sidechains[name]

    def _asked(self, agent: _Agent, words: str, at: datetime | None, *, main: bool) -> None:
        if main:
            self._told.ask(words, at=at)
        elif agent.work.description is None and words.strip():
            agent.work.description = words

    def _agent_step(
        self,
        agent: _Agent,
        step: dict[str, object],
        words: str,
        at: datetime | None,
        *,
        main: bool,
    ) -> None:
        agent.work.say(words, at=at)
        self._used(agent, step)
        made: list[str] = []
        finished: str | None = None
        for call in objects_in(step, "tool_calls", self._told.ledger):
            name = text(call, "function_name") or ""
            made.append(self._call(agent, step, call, name, at))
            if name in _FINISH:
                finished = name
                agent.work.returned(made[-1])
                agent.work.say(text(call, "arguments", "message"), at=at)
        self._results(agent, step, made)
        if not made and "keystrokes" in words:
            self._told.ledger.lose(_IN_WORDS, *_RAN)
        if main:
            self._ended(step, words, calls=bool(made), finished=finished)

    def _ended(
        self, step: dict[str, object], words: str, *, calls: bool, finished: str | None
    ) -> None:
        said = mapping(row(words.encode(errors="replace"))) if words.startswith("{") else {}
        if finished is not None:
            self._told.end("completed", finished)
        elif said.get("task_complete") is True:
            self._told.end("completed", "task_complete")
        elif calls or listing(said, "commands"):
            self._told.goes_on()
        else:
            self._told.end("completed", text(step, "extra", "stop_reason"))

    def _call(
        self,
        agent: _Agent,
        step: dict[str, object],
        call: object,
        name: str,
        at: datetime | None,
    ) -> str:
        """One call; its id. A call that is told again while it has no result is the same."""
        given = text(call, "tool_call_id")
        arguments = within(call, "arguments")
        arguments = {} if arguments is None else arguments
        what = (name, arguments)
        before = agent.ids.of(given) if given is not None else None
        if before is not None and agent.open.get(before) == what:
            return before
        id = agent.ids.new(given)
        agent.open[id] = what
        doing = _stated(call, known(name, arguments))
        host = text(step, "extra", "host") if text(step, "extra", "task") else None
        doing.tell(agent.work, id, at=at, host=host)
        outcome = text(call, "extra", "outcome")
        if outcome in _OUTCOMES:
            agent.stated[id] = _OUTCOMES[outcome], integer(call, "extra", "exit_code")
            agent.work.returned(id, outcome=agent.stated[id][0], exit_code=agent.stated[id][1])
        if name in _AGENTS:
            self._called[id] = ()
        return id

    def _results(self, agent: _Agent, step: dict[str, object], made: list[str]) -> None:
        unnamed: list[str] = []
        open_ = list(made)
        for result in listing(step, "observation", "results"):
            words = spoken(mapping(result).get("content"))
            given = text(result, "source_call_id")
            self._refers(agent, result, given)
            if given is None:
                unnamed.append(words)
                continue
            id = agent.ids.of(given)
            self._returned(agent, id, words)
            open_ = [each for each in open_ if each != id]
        if len(unnamed) == len(open_):
            for id, words in zip(open_, unnamed, strict=True):
                self._returned(agent, id, words)
        elif open_ and unnamed:
            # One screen for all that was typed.
            for id in open_:
                self._returned(agent, id, "\n".join(unnamed) if id == open_[-1] else None)
        elif any(unnamed) and not made and text(step, "source") == "agent":
            self._told.ledger.lose(_IN_WORDS, *_RAN)

    def _refers(self, agent: _Agent, result: object, given: str | None) -> None:
        refs = mapping(result).get("subagent_trajectory_ref")
        for ref in refs if isinstance(refs, list) else [refs]:
            if isinstance(ref, dict):
                names = (text(ref, "trajectory_id"), text(ref, "session_id"))
                id = agent.ids.of(given) or f"{len(self._called)}"
                self._called[id] = tuple(name for name in names if name) or ("",)

    def _returned(self, agent: _Agent, id: str | None, words: str | None) -> None:
        shell = agent.work.kind_of(id) == "shell"
        outcome, code = agent.stated.get(id or "") or outcome_in(words or "", shell=shell)
        agent.work.returned(id, output=words, exit_code=code, outcome=outcome)
        agent.open.pop(id or "", None)

    def _used(self, agent: _Agent, step: dict[str, object]) -> None:
        metrics = mapping(step, "metrics")
        if not metrics:
            return
        agent.tokens = agent.tokens or integer(metrics, "prompt_tokens") is not None
        agent.cost = agent.cost or number(metrics, "cost_usd") is not None
        agent.work.use(
            model=text(step, "model_name") or self._model,
            input_tokens=integer(metrics, "prompt_tokens"),
            output_tokens=integer(metrics, "completion_tokens"),
            cost_usd=number(metrics, "cost_usd"),
        )

    def _totals(self, agent: _Agent, metrics: dict[str, object]) -> None:
        """What only the trajectory as a whole says: often its cost."""
        taken = integer(metrics, "total_prompt_tokens")
        given = integer(metrics, "total_completion_tokens")
        cost = number(metrics, "total_cost_usd")
        if not agent.tokens and (taken, given) != (None, None):
            agent.work.use(input_tokens=taken, output_tokens=given)
        if not agent.cost and cost is not None:
            agent.work.use(cost_usd=cost)


def _stated(call: object, doing: Known) -> Known:
    """What a call does, where the transcript itself says so in OpsDrill's words."""
    kind, tool = text(call, "extra", "kind"), text(call, "function_name")
    if kind not in _KINDS or tool is None:
        return doing
    return Known(_KINDS[kind], tool, mapping(call, "arguments"), text(call, "extra", "server"))
