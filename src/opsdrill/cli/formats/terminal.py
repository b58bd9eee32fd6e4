"""Results for people at a terminal: the table of verdicts, then what did not pass and why."""

from __future__ import annotations

from collections.abc import Sequence

from opsdrill.app import wording
from opsdrill.app.safe_text import indented, shown, shown_end, shown_ends
from opsdrill.cli.output import Output
from opsdrill.cli.table import Column
from opsdrill.model.host import HostAnswer
from opsdrill.model.result import Completion, Result, RuleResult

MATCHES_SHOWN = 3
OUTPUT_SHOWN = 8000
"""Characters of a host's output that are shown with a rule."""
BRIEF_SHOWN, BRIEF_LINES = 2000, 10
"""Characters and lines of it that are shown with a rule that did not pass, among others."""


def table(out: Output, results: Sequence[Result]) -> None:
    """The verdicts, the counts, then each run that did not pass with its rules."""
    out.table(
        [
            Column("SCENARIO", "shorten"),
            Column("AGENT", "end"),
            Column("VERDICT"),
            Column("COMPLIANCE"),
            Column("REMEDIATION", "drop"),
            Column("RUN", "drop"),
        ],
        [
            [
                result.scenario,
                result.agent or "-",
                wording.verdict(result),
                wording.share(result.compliance),
                wording.share(result.remediation),
                result.run or "-",
            ]
            for result in results
        ],
        none="no runs",
    )
    out.line()
    out.line(wording.tally(results))
    for extra in (wording.pass_rate(results), wording.broken_unseen(results)):
        if extra:
            out.line(extra)
    for result in results:
        if result.verdict in ("failed", "error"):
            out.line()
            # What failed stands in the lines below; a stop may have none.
            headline(out, result, with_reason=result.verdict != "failed")
            explained(out, result, only_wrong=True)


def headline(out: Output, result: Result, *, with_reason: bool = True) -> None:
    """The run, its verdict and the one sentence of reason, with whose fault it was."""
    word = wording.verdict(result)
    told = f": {result.reason}" if result.reason and with_reason else ""
    fault = f" (fault: {result.fault})" if result.fault and result.verdict == "error" else ""
    head = out.styled(shown(wording.name(result)), "label")
    run = f" (run {shown(result.run)})" if result.run else ""
    out.line(f"{head}: {_word(out, word)}{shown(told)}{fault}{run}")


def explained(out: Output, result: Result, *, only_wrong: bool = False) -> None:
    """The completion check first, then the rules with their reasons and evidence."""
    if result.completion and (not only_wrong or result.completion.status in ("failed", "error")):
        _completion(out, result.completion)
    for rule in result.rules:
        if not only_wrong or rule.status != "passed":
            _rule(out, rule, brief=only_wrong)
    for warning in wording.by_kind(result.warnings):
        out.line(f"  warning: {shown(warning)}")


def _completion(out: Output, check: Completion) -> None:
    out.line(f"  {_word(out, check.status)}  completion check: {shown(check.reason)}")


def _rule(out: Output, rule: RuleResult, *, brief: bool) -> None:
    words = wording.rule_line(rule).removeprefix(rule.status)
    out.line(f"  {_word(out, rule.status)}{shown(words)}")
    count = MATCHES_SHOWN if brief else len(rule.matches)
    for match in rule.matches[:count]:
        out.line(f"            {shown(wording.match_line(match))}")
    more = rule.match_count - min(count, len(rule.matches))
    if more > 0 and rule.match_count:
        out.line(f"            and {more} more")
    if rule.answer is not None:
        answer(out, rule.answer, brief=brief)


def answer(out: Output, given: HostAnswer, *, brief: bool = False) -> None:
    """What was asked of a host and what it answered, with its output.

    Args:
        brief: of a command of several lines only the first, of long output only the end.
    """
    first, *more = given.run.rstrip("\n").split("\n")
    head = f"            {shown(given.on)}$ {shown(first, limit=500)}"
    if brief and more:
        out.line(f"{head} ... ({len(more)} more lines)")
    else:
        out.line(head)
        for line in more:
            out.line(f"              {shown(line, limit=500)}")
    for name, text, size in (
        ("stdout", given.stdout, given.stdout_bytes),
        ("stderr", given.stderr, given.stderr_bytes),
    ):
        if text.strip():
            cut = f" (cut, {size} bytes in all)" if size is not None else ""
            out.line(f"            {name}{cut}:")
            said = text.rstrip("\r\n")
            if brief:
                said = shown_end(said, lines=BRIEF_LINES, limit=BRIEF_SHOWN)
            else:
                said = shown_ends(said, limit=OUTPUT_SHOWN)
            out.line(indented(said, 14))


def _word(out: Output, word: str) -> str:
    return out.styled(word, word) if word in ("passed", "failed", "error") else word
