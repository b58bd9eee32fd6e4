"""Results as JUnit XML, for continuous integration: one test case a run.

Rules are no test cases of their own: an optional rule may fail in a run that passed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from opsdrill.app import wording
from opsdrill.app.safe_text import shown_block
from opsdrill.model.result import Result


def results(found: Sequence[Result]) -> bytes:
    """A `testsuites` document; every text is free of what XML 1.0 cannot hold."""
    verdicts = [result.verdict for result in found]
    counts = {
        "tests": len(found),
        "failures": verdicts.count("failed"),
        "errors": verdicts.count("error"),
        "skipped": verdicts.count(None),
    }
    attributes = {"name": "opsdrill"} | {key: str(value) for key, value in counts.items()}
    root = Xml.Element("testsuites", attributes)
    suite = Xml.SubElement(root, "testsuite", attributes)
    seen: Counter[tuple[str, str | None]] = Counter()
    for result in found:
        seen[result.scenario, result.agent] += 1
        _case(suite, result, seen[result.scenario, result.agent])
    Xml.indent(root)
    text: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
    return text


def _case(suite: Xml.Element, result: Result, repeat: int) -> None:
    # Whoever reads JUnit knows a test case again by its names, so no run's id may be in them.
    name = result.agent or "recorded job"
    case = Xml.SubElement(
        suite,
        "testcase",
        {
            "classname": shown_block(result.scenario),
            "name": shown_block(name if repeat == 1 else f"{name} ({repeat})"),
            "time": f"{_seconds(result):.3f}",
        },
    )
    if result.run:
        properties = Xml.SubElement(case, "properties")
        Xml.SubElement(properties, "property", {"name": "run", "value": result.run})
    kind = {"failed": "failure", "error": "error", None: "skipped"}.get(result.verdict)
    if kind:
        told = Xml.SubElement(case, kind, {"message": shown_block(result.reason or result.state)})
        if result.fault:
            told.set("type", result.fault)
        told.text = shown_block("\n".join(_wrong(result)))


def _wrong(result: Result) -> list[str]:
    check = result.completion
    lines = [f"{check.status}  completion check: {check.reason}"] if check else []
    return lines + [wording.rule_line(rule) for rule in result.rules if rule.status != "passed"]


def _seconds(result: Result) -> float:
    ends = [phase.ended_at for phase in result.phases if phase.ended_at]
    starts = [phase.started_at for phase in result.phases]
    return (max(ends) - min(starts)).total_seconds() if ends else 0.0
