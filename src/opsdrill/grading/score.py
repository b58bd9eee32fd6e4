"""The three numbers of a grade, one function a formula, each with its reason."""

from __future__ import annotations

from collections.abc import Sequence

from opsdrill.model.result import Completion, Fraction, RuleResult, Verdict


def silent(rule: RuleResult) -> bool:
    """Its host did not answer at all: that says nothing about the agent, and never a fail."""
    return rule.status == "error" and rule.answer is not None and rule.answer.unreachable is True


def blocks(rule: RuleResult) -> bool:
    """The rule makes the run an `error`: a required one that is not decided, or a silent host.

    A silent host blocks for optional rules too, since whatever else was asked of it is in doubt.
    """
    return (rule.status == "error" and rule.required) or silent(rule)


def verdict(completion: Completion, rules: Sequence[RuleResult]) -> Verdict:
    """`error` before `failed` before `passed`: what could not be graded is neither of the two."""
    if completion.status == "error" or any(blocks(rule) for rule in rules):
        return "error"
    if completion.status == "failed":
        return "failed"
    if any(rule.status == "failed" and rule.required for rule in rules):
        return "failed"
    return "passed"


def compliance(of: Verdict, rules: Sequence[RuleResult]) -> Fraction | None:
    """How much was done by the book: the passed of all rules, required or not, every validator.

    None for an `error` run and where no rule was evaluated, for then there is nothing to divide.
    """
    return _fraction(of, rules)


def remediation(of: Verdict, rules: Sequence[RuleResult]) -> Fraction | None:
    """How much was mended: the same over `host_state` rules alone, which look at the hosts."""
    return _fraction(of, [rule for rule in rules if rule.validator == "host_state"])


def _fraction(of: Verdict, rules: Sequence[RuleResult]) -> Fraction | None:
    """An optional rule in `error` stands in neither number and is counted beside them."""
    evaluated = [rule for rule in rules if rule.status != "error"]
    if of == "error" or not evaluated:
        return None
    return Fraction.made(
        passed=sum(rule.status == "passed" for rule in evaluated),
        total=len(evaluated),
        not_evaluated=len(rules) - len(evaluated),
    )
