"""The engine: a grade from a scenario's rules, a sealed job record and host answers.

A pure function but for one thing: a pattern may use up its CPU budget, and that budget is kept in
the grade.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from opsdrill.errors import Fault
from opsdrill.grading import score
from opsdrill.grading.completion import broken_off, check_completion
from opsdrill.grading.evidence import Evidence
from opsdrill.grading.explain import counted, quoted
from opsdrill.grading.searches import RuleSearches
from opsdrill.grading.warnings import warnings_of
from opsdrill.model.host import HostAnswer
from opsdrill.model.result import GRADING_VERSION, Completion, Grade, RuleResult, Verdict
from opsdrill.model.rules import PatternMatch, Rule
from opsdrill.model.scenario import Scenario
from opsdrill.model.sealed import AnyRecord
from opsdrill.patterns import Searcher
from opsdrill.registry import Registry


class Validator(Protocol):
    """Judges one rule. Sees the evidence and nothing else; never raises for what it holds."""

    def __call__(self, rule: Rule, index: int, evidence: Evidence, /) -> RuleResult: ...


VALIDATORS: Registry[Validator] = Registry("validator", "opsdrill.validators")


class Grader:
    """A scenario's rules, prepared once and used for any number of jobs; for one thread at a time.

    Args:
        scenario: its rules and hosts, and the time limit of its job.
        searcher: the regex engine.
        scenario_version: the digest to keep with each grade.
    """

    def __init__(
        self, scenario: Scenario, searcher: Searcher, *, scenario_version: str | None = None
    ) -> None:
        self._scenario = scenario
        self._searcher = searcher
        self._searches = RuleSearches(scenario.validation, searcher)
        self._version = scenario_version
        self._validators = [VALIDATORS.get(rule.validator) for rule in scenario.validation]
        self._has_pattern = any(isinstance(rule, PatternMatch) for rule in scenario.validation)

    def grade(self, record: AnyRecord, answers: Sequence[HostAnswer]) -> Grade:
        """Grade a job. Every rule is graded, also after a failed completion check.

        Args:
            record: the job record, sealed.
            answers: what the hosts answered to `host_state` rules, in the order asked.
        """
        scenario = self._scenario
        evidence = Evidence(scenario, record, tuple(answers), self._searcher, self._searches)
        completion = check_completion(scenario, record)
        rules = tuple(
            validator(rule, index, evidence)
            for index, (rule, validator) in enumerate(
                zip(scenario.validation, self._validators, strict=True)
            )
        )
        verdict = score.verdict(completion, rules)
        return Grade.made(
            grading_version=GRADING_VERSION,
            scenario_version=self._version,
            verdict=verdict,
            reason=_reason(verdict, completion, rules),
            fault=_fault(verdict, rules, record),
            compliance=score.compliance(verdict, rules),
            remediation=score.remediation(verdict, rules),
            completion=completion,
            rules=rules,
            after_agent=verdict == "error"
            and evidence.acted
            and not _never_asked(completion, rules),
            pattern_seconds=self._searcher.seconds if self._has_pattern else None,
            warnings=warnings_of(scenario, record),
        )


def grade(
    scenario: Scenario,
    record: AnyRecord,
    answers: Sequence[HostAnswer],
    searcher: Searcher,
    *,
    scenario_version: str | None = None,
) -> Grade:
    """Grade one job; whoever grades many by the same rules keeps a `Grader`."""
    return Grader(scenario, searcher, scenario_version=scenario_version).grade(record, answers)


def _decisive(verdict: Verdict, rules: Sequence[RuleResult]) -> list[RuleResult]:
    """The rules that make the verdict what it is; silent hosts first, then array order."""
    if verdict == "error":
        return sorted(filter(score.blocks, rules), key=lambda rule: not score.silent(rule))
    return [rule for rule in rules if rule.status == "failed" and rule.required]


def _reason(verdict: Verdict, completion: Completion, rules: Sequence[RuleResult]) -> str:
    if verdict == "passed":
        return _passed(completion, rules)
    bad = "error" if verdict == "error" else "failed"
    decisive = _decisive(verdict, rules)
    said = [completion.reason] if completion.status == bad else []
    if decisive:
        first = f"rule {decisive[0].index} {quoted(decisive[0].label)}: {decisive[0].reason}"
        more = f" (and {counted(len(decisive) - 1, 'more rule')})" if len(decisive) > 1 else ""
        said.append(first + more)
    return "; ".join(said)


def _passed(completion: Completion, rules: Sequence[RuleResult]) -> str:
    if not rules:
        return f"{completion.reason}; there are no rules"
    others = [rule for rule in rules if rule.status != "passed"]
    all_passed = f"{counted(len(rules) - len(others), 'rule')} passed"
    beside = f", {counted(len(others), 'optional rule')} did not" if others else ""
    return f"{completion.reason}; {all_passed}{beside}"


def _fault(verdict: Verdict, rules: Sequence[RuleResult], record: AnyRecord) -> Fault | None:
    """For an `error`: of the stop where the job was broken off, else of the first rule's error."""
    if verdict == "passed":
        return None
    if verdict == "failed":
        return "agent"
    if broken_off(record):
        return record.stop.fault if record.stop else None
    return _decisive("error", rules)[0].fault


def _never_asked(completion: Completion, rules: Sequence[RuleResult]) -> bool:
    """What is missing was never asked for, or cannot be known: no doing of the agent's."""
    return completion.status != "error" and all(
        rule.fault == "operator" for rule in _decisive("error", rules)
    )
