"""How a job of OpenHands ended: each version says it in its own words, and more than once."""

from __future__ import annotations

from opsdrill.evidence.transcripts.transcript import Transcript
from opsdrill.model.job import Stop


class Ending:
    """Keeps the end of a job up to date while its events are read.

    Attributes:
        completed: the agent came to its own end, and did nothing since.
        finished: so it said itself; otherwise it only stopped to call tools.
        explained: the program stopped it and said why.
    """

    def __init__(self, told: Transcript) -> None:
        self._told = told
        self.completed = False
        self.finished = False
        self.explained = False

    def goes_on(self) -> None:
        """The agent does or is asked something more."""
        self.completed = self.explained = False
        self._told.goes_on()

    def done(self, word: str | None) -> None:
        """The agent came to its own end."""
        self.completed, self.finished = True, word is not None
        self._told.end("completed", word)

    def gave_up(self, word: str) -> None:
        """The agent says that it cannot do what it was asked."""
        self.completed = False
        self._told.end("failed", word, Stop(reason="the agent gave up", fault="agent"))

    def cancelled(self, word: str) -> None:
        """A user stopped the agent."""
        self.completed = False
        self._told.end("cancelled", word, Stop(reason="a user stopped it", fault="operator"))

    def stopped(self, why: str) -> None:
        """The program stopped the agent and says why."""
        self.completed, self.explained = False, True
        words = why.lower().replace(" ", "")
        reason, status = "", "timed_out"
        if "maximumiteration" in words or "maxiteration" in words:
            reason = "the agent reached its limit of steps"
        elif "budget" in words:
            reason = "the agent reached its limit of cost"
        elif "contextwindow" in words:
            reason = "the agent's context was full"
        elif "stuck" in words:
            reason, status = "the agent was stuck in a loop", "failed"
        word = why.partition(":")[0].partition("\n")[0][:100]
        if not reason:
            stop = Stop(reason=f"OpenHands stopped with {word}", fault="infrastructure")
            self._told.end("failed", word, stop)
        elif status == "failed":
            self._told.end("failed", word, Stop(reason=reason, fault="agent"))
        else:
            self._told.end("timed_out", word, Stop(reason=reason, fault="agent"))
