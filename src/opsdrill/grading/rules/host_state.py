"""`host_state`: a command, run on a host after the job, ended with the expected exit status."""

from __future__ import annotations

from opsdrill.grading.evidence import Evidence
from opsdrill.grading.explain import QUOTED, clean, ending, quoted
from opsdrill.grading.outcome import failed, passed, undecided
from opsdrill.model.host import HostAnswer
from opsdrill.model.result import RuleResult
from opsdrill.model.rules import HostState


def evaluate(rule: HostState, index: int, evidence: Evidence) -> RuleResult:
    """Compares the exit status that was answered; a missing one equals no expected one."""
    host = evidence.scenario.host_of(rule.on)
    answer = evidence.answer(index)
    if answer is None:
        reason = (
            f"not evaluable from the record: it holds no answer of {host} to {quoted(rule.run)}"
        )
        return undecided(rule, index, reason, fault="operator")
    if answer.unreachable:
        reason = f"{host} did not answer{_why(answer)}{_before(host, answer, evidence)}"
        return undecided(rule, index, reason, fault="infrastructure", answer=answer)
    if answer.exit_code is None:
        reason = f"{_no_status(answer, evidence)} on {host}{_before(host, answer, evidence)}"
        return failed(rule, index, reason, fault=evidence.blame, answer=answer)
    if answer.exit_code == rule.exit_code:
        reason = f"exit status {answer.exit_code} on {host}, as expected"
        return passed(rule, index, reason, answer=answer)
    reason = f"exit status {answer.exit_code} on {host}, expected {rule.exit_code}{_said(answer)}"
    return failed(rule, index, reason, fault=evidence.blame, answer=answer)


def _no_status(answer: HostAnswer, evidence: Evidence) -> str:
    if answer.timed_out:
        limit = answer.timeout or evidence.scenario.limits.command_seconds
        return f"no exit status within {limit:g} s"
    return "no exit status, for the connection ended half way though the host answered again,"


def _why(answer: HostAnswer) -> str:
    return f" ({clean(answer.reason)})" if answer.reason else ""


def _before(host: str, answer: HostAnswer, evidence: Evidence) -> str:
    """When the host last answered and what the agent last ran there, for whoever must judge it."""
    at = answer.last_answered_at
    last = "when it last answered is not known"
    if at is not None:
        last = f"it last answered at {at.isoformat().replace('+00:00', 'Z')}"
    command = evidence.last_command(host)
    if command is not None:
        ran = f"the last command of the agent there: {quoted(command)}"
    elif evidence.gap("executed_commands"):
        ran = "the record shows no command of the agent there, and is not whole"
    else:
        ran = "the agent ran no command there"
    return f"; {last}; {ran}"


def _said(answer: HostAnswer) -> str:
    """The end of what the command wrote to standard error."""
    tail = answer.stderr[-8 * QUOTED :].strip()
    return f"; standard error ends {ending(tail)}" if tail else ""
