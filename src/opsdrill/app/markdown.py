"""Results as Markdown, for a pull request or a report."""

from __future__ import annotations

import re
from collections.abc import Sequence

from opsdrill.app import wording
from opsdrill.app.safe_text import shown
from opsdrill.model.result import Result

# A hyphen inside a word means nothing to Markdown, and is in every host's name.
_MEANT = re.compile(r"([\\`*_{}\[\]<>()#+!|~&@]|(?<!\w)-|-(?!\w))")


def literal(text: str) -> str:
    """`text` as it is: no link, image, mention, tag or table cell can come out of it."""
    return _MEANT.sub(r"\\\1", shown(text))


def results(found: Sequence[Result]) -> bytes:
    """A table of verdicts, the counts, then every rule that did not pass."""
    lines = [
        "| scenario | agent | verdict | compliance | remediation | run |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    lines += [f"| {' | '.join(map(literal, _row(result)))} |" for result in found]
    lines += ["", f"**{wording.tally(found)}**"]
    for extra in (wording.pass_rate(found), wording.broken_unseen(found)):
        lines += ["", extra] if extra else []
    for result in found:
        lines += _wrong(result)
    return "\n".join(lines).encode()


def _row(result: Result) -> list[str]:
    return [
        result.scenario,
        result.agent or "-",
        wording.verdict(result),
        wording.share(result.compliance),
        wording.share(result.remediation),
        result.run or "-",
    ]


def _wrong(result: Result) -> list[str]:
    if result.verdict == "passed":
        return []
    lines = ["", f"### {literal(wording.name(result))}: {wording.verdict(result)}", ""]
    lines += [literal(result.reason), ""] if result.reason else []
    if result.completion and result.completion.status in ("failed", "error"):
        lines.append(f"- completion check: {literal(result.completion.reason)}")
    for rule in result.rules:
        if rule.status != "passed":
            lines.append(f"- {literal(wording.rule_line(rule))}")
            lines += [f"  - {literal(wording.match_line(match))}" for match in rule.matches[:3]]
    return lines
