"""One trace, as a job: whose spans are whose, what was said once, and how it ended."""

from __future__ import annotations

import json
from datetime import datetime

from opsdrill.evidence.cut import OutputBudget
from opsdrill.evidence.importers.otel.calls import Wanted, failed, outcome_of
from opsdrill.evidence.importers.otel.steps import Step
from opsdrill.evidence.importers.otel.tree import MAIN, Answer, Tree
from opsdrill.evidence.transcripts.imported import Imported, Placing
from opsdrill.evidence.transcripts.ledger import KEPT, Ledger
from opsdrill.evidence.transcripts.tools import Known, known
from opsdrill.evidence.transcripts.transcript import TOLD, Transcript
from opsdrill.evidence.transcripts.work import Work
from opsdrill.model.job import Stop

FORMAT = "otel"
TITLE = "OpenTelemetry"

_SECOND = 1_000_000_000
_OVERHEAD = 1000
_NOISE = 200
_CALLS = ("executed_commands", "write_file", "update_file", "use_mcp_tool", "tool_calls")
_WORDS = ("agent_messages", "task_summary")
_DONE = {"stop", "end_turn", "stop_sequence", "completed", "end", "eos"}
_LIMITED = {"length", "max_tokens", "max_output_tokens"}
_ASKS_FOR_TOOLS = {"tool_call", "tool_calls", "tool_use", "tool-calls", "function_call"}


class Tally:
    """How much is kept of one trace, and what of it is new."""

    def __init__(self) -> None:
        self._output = OutputBudget()
        self._told: set[str] = set()

    def take(self, step: Step | None) -> int:
        """Cut a step down to what is kept; about how many characters that is.

        Output is cut as everywhere, and what a model is told again with each call is kept once.
        """
        if step is None:
            return _NOISE
        if step.result is not None:
            step.result = self._output.fit(step.result)
        new = {id: each for id, each in step.results.items() if id not in self._told}
        self._told.update(new)
        step.results = {id: self._output.fit(each) for id, each in new.items()}
        texts = [each.text for each in step.answers] + step.asked
        size = sum(map(len, texts)) + sum(map(len, step.results.values()))
        size += len(step.result or "") + _size(step.arguments)
        size += sum(_size(call.arguments) for each in step.answers for call in each.calls)
        return _OVERHEAD + size


def _size(value: object) -> int:
    if value is None or isinstance(value, str):
        return len(value or "")
    return len(json.dumps(value, ensure_ascii=False, default=str))


class Trace:
    """The spans of one trace, gathered in any order.

    Args:
        id: the trace's.
    """

    def __init__(self, id: str) -> None:
        self.id = id
        self._steps: list[Step] = []
        self._parents: dict[str, str] = {}
        self._results: dict[str, str] = {}
        self._asked: dict[str, str] = {}
        self._size = 0
        self._too_large = False
        self._by_id: dict[str, Step] = {}
        self._clash = False

    def add(self, id: str, parent: str, step: Step | None, size: int) -> None:
        """One span; without a step it is noise, which may still stand between others.

        Args:
            id: the span's.
            parent: the span that it is in.
            step: what it says of an agent's work.
            size: characters that are kept of it.
        """
        if id and id in self._parents:
            before = self._by_id.get(id)
            if step is not None and (before is None or not _same(before, step)):
                self._clash = True
            return  # sent twice
        if id:
            self._parents[id] = parent
        if step is None:
            return
        self._results.update(step.results)
        step.results = {}
        # The same request comes again with every call of the model: it is kept once.
        step.asked = [self._asked.setdefault(each, each) for each in step.asked]
        if step.asked_last is not None:
            step.asked_last = self._asked.setdefault(step.asked_last, step.asked_last)
        self._size += size
        if self._size > KEPT:
            self._too_large = True
            return
        self._steps.append(step)
        if id:
            self._by_id[id] = step

    def imported(self, placing: Placing, file: Ledger) -> Imported:
        """The job that it is.

        Args:
            placing: where commands ran.
            file: what is missing of the whole file.

        Raises:
            UsageError: nobody says on which host the agent worked.
        """
        if self._too_large:
            file = Ledger(TOLD)
            file.lose(f"there is more than {KEPT // 1024**2} MiB of commands and messages")
        if self._clash:
            file.lose("two spans that differ have the same id, and one is kept")
        self._steps.sort(key=lambda step: (step.start, -(step.end or 0)))
        tree = Tree(self._steps, self._parents)
        return _Telling(self.id, tree, self._results, placing).told(file)


def _same(one: Step, other: Step) -> bool:
    say, again = ((each.role, each.name, each.arguments, each.answers) for each in (one, other))
    return say == again


class _Telling:
    """Tells a transcript what the steps of a trace say."""

    def __init__(self, id: str, tree: Tree, results: dict[str, str], placing: Placing) -> None:
        self._tree = tree
        self._results = results
        self._answers = tree.answers()
        self._wanted = Wanted(self._answers)
        self._transcript = Transcript(FORMAT, TITLE, placing, TOLD - self._unsaid())
        self._ledger = self._transcript.ledger
        self._transcript.job = id.strip("0") and id
        self._name = id
        self._requested: set[str] = set()
        self._taken: dict[str, int] = {}

    def told(self, file: Ledger) -> Imported:
        for why in dict.fromkeys(file.lost.values()):
            self._ledger.lose(why)
        self._about()
        spans = [step for step in self._tree.steps if step.role == "tool"]
        tools = [step for step in spans if not self._tree.within_itself(step)]
        for step in tools:
            self._wanted.given_to(step)
        outermost = set(map(id, tools))
        for step in self._tree.steps:
            if step.role == "agent":
                self._agent(step)
            elif id(step) in outermost:
                self._tool(step)
            elif step.role == "model":
                answer = self._tree.answer_of(step)
                if answer is not None:
                    self._model(answer)
        self._gaps(tools)
        self._end()
        return self._transcript.imported(self._name)

    def _unsaid(self) -> set[str]:
        """What nothing in the trace says."""
        said = any(answer.answered for answer in self._answers)
        agents = (step for step in self._tree.steps if step.role == "agent")
        return set() if said or any(step.answers for step in agents) else set(_WORDS)

    def _about(self) -> None:
        steps = self._tree.steps
        main = self._tree.main
        named = main.name if main else next((step.name for step in steps if step.name), None)
        model = next((step.model for step in steps if step.model), None)
        program = named if main or not steps or steps[0].role != "tool" else None
        self._transcript.written_by(program or TITLE, None, model)
        self._transcript.main.agent = main.name if main else None

    def _work(self, id: str) -> Work:
        return self._transcript.work(id)

    def _at(self, nanoseconds: int | None) -> datetime | None:
        return self._transcript.clock.count(nanoseconds, _SECOND) if nanoseconds else None

    def _ask(self, work: str, step: Step) -> None:
        """The first request of an agent, and what its user said later."""
        begun = self._work(work).description is not None
        texts = step.asked or ([step.asked_last] if step.asked_last and not begun else [])
        for each in texts:
            if work == MAIN:
                self._request(each, step)
            elif not begun:
                self._work(work).description = each
                begun = True

    def _request(self, said: str, step: Step) -> None:
        if said not in self._requested:
            self._requested.add(said)
            self._transcript.ask(said, at=self._at(step.start))

    def _agent(self, step: Step) -> None:
        id = self._tree.works[step.id] if step.id else MAIN
        work = self._work(id)
        if work.agent is None:
            work.agent = step.name
        self._ask(id, step)
        if step.start and work.started_at is None:
            work.started_at = self._at(step.start)
        if step.end:
            work.ended_at = self._at(step.end)
        if id != MAIN and step.error:
            work.status = "failed"
            work.stop_reason = step.error
        if not any(answer.work == id and answer.answered for answer in self._answers):
            for message in step.answers:
                work.say(message.text, at=self._at(step.end))

    def _model(self, answer: Answer) -> None:
        for step in answer.steps:
            self._ask(answer.work, step)
        work, first = self._work(answer.work), answer.first
        at = self._at(first.end or first.start)
        for message in answer.messages:
            work.say(message.text, at=at)
        used = next((each.used for each in answer.steps if each.used != (None, None)), None)
        if used is not None:
            model = next((each.model for each in answer.steps if each.model), None)
            work.use(model=model, input_tokens=used[0], output_tokens=used[1])
        for call in self._wanted.left_of(answer):
            id = known(call.name, call.arguments).tell(work, call.id, at=at)
            if call.id is not None and call.id in self._results:
                work.returned(id, output=self._results[call.id] or None, at=None)

    def _tool(self, step: Step) -> None:
        work = self._work(self._tree.work_of(step))
        name = step.name or "tool"
        if step.arguments is None:
            self._ledger.lose("the arguments of a call were not recorded", *_CALLS)
        call = known(name, step.arguments)
        if step.mcp and call.kind != "mcp":
            call = Known("mcp", name, step.arguments, server=step.server)
        at = self._at(step.start)
        id = call.tell(work, self._free(step.call), at=at, host=step.host)
        if step.end is None:
            return
        result = step.result if step.result is not None else self._results.get(step.call or "")
        outcome = outcome_of(step)
        work.returned(id, output=result or step.error, outcome=outcome, at=self._at(step.end))

    def _free(self, id: str | None) -> str | None:
        """The id for a call; a second span under one id is a call of its own."""
        if id is None:
            return None
        number = self._taken[id] = self._taken.get(id, 0) + 1
        return id if number == 1 else f"{id}#{number}"

    def _gaps(self, tools: list[Step]) -> None:
        """What spans say was there and do not hold."""
        silent = [answer for answer in self._answers if not answer.answered]
        heard = {answer.work for answer in self._answers if answer.answered}
        heard |= {
            self._tree.work_of(step)
            for step in self._tree.steps
            if step.role == "agent" and step.answers
        }
        if silent or not heard.issuperset(self._tree.work_of(step) for step in self._tree.steps):
            self._ledger.lose("an answer of the model was not recorded", *_WORDS)
        unsaid = [answer for answer in silent if answer.finish not in _DONE]
        if unsaid and not tools:
            self._ledger.lose("the model's calls of tools were not recorded", *_CALLS)

    def _end(self) -> None:
        main = self._tree.main
        if main is not None and main.error:
            self._transcript.end(*failed(main.error))
            return
        last = max(
            (answer for answer in self._answers if answer.work == MAIN),
            key=lambda answer: answer.first.end or answer.first.start,
            default=None,
        )
        ended = main is not None and main.end is not None
        if last is None:
            if ended:
                self._transcript.end()
            return
        self._end_of(last, ended=ended)

    def _end_of(self, last: Answer, *, ended: bool) -> None:
        finish = last.finish
        error = next((step.error for step in last.steps if step.error), None)
        if finish in _LIMITED:
            stop = Stop(reason=f"the model's limit was reached: {finish}", fault="agent")
            self._transcript.end("timed_out", finish, stop)
        elif finish == "content_filter":
            stop = Stop(reason="the model's provider filtered its answer", fault="infrastructure")
            self._transcript.end("failed", finish, stop)
        elif error is not None and not last.answered:
            self._transcript.end(*failed(error))
        elif ended or (not last.calls and (finish in _DONE or (last.answered and not finish))):
            self._transcript.end("completed", finish or None)
