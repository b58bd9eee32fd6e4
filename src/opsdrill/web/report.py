"""The report: one run as one HTML file that opens anywhere and asks nobody for anything."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence

from markupsafe import Markup

from opsdrill.app.lines import Line, Lines, OpenRecords
from opsdrill.app.whole_run import WholeRun, whole_run
from opsdrill.app.wiring import Place
from opsdrill.store.store import Store
from opsdrill.web.assets import files
from opsdrill.web.lines import LineShown, shown_line
from opsdrill.web.render import templates
from opsdrill.web.run_shown import run_values
from opsdrill.web.verdicts import RuleShown

MOST_LINES = 2000
"""Lines that are told from the first on; tasks and what rules matched are told beside them."""
MOST_POINTED = 500
TEXT, TEXTS, BRIEF = 2000, 4 * 1024 * 1024, 200
"""Characters of one text, of all of them together, and of one text past that."""
SUFFIX = ".html"


def written(place: Place, store: Store, run: str) -> bytes:
    """The report of a run by its whole id. Raises NotThere."""
    return made(whole_run(place, store, run), OpenRecords(store).lines(run))


def made(whole: WholeRun, found: Lines) -> bytes:
    """The report of a run and its record."""
    values = run_values(whole, found)
    rules = values["rules"]
    assert isinstance(rules, list)
    style, script = _static("opsdrill.css"), _static("report.js")
    values |= {
        "lines": _lines(found, _pointed(rules)),
        "report": True,
        "style": style,
        "script": script,
        "policy": policy(style, script),
    }
    text = templates().get_template("report.html").render(values)
    return text.encode("utf-8", "replace")


def policy(style: str, script: str) -> str:
    """What the file may do: its own style and script, and nothing else."""
    hashes = f"style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    return f"default-src 'none'; {hashes}; base-uri 'none'; form-action 'none'"


def file_name(run: str) -> str:
    """What a file with the report of a run is called."""
    return f"run-{re.sub(r'[^A-Za-z0-9._-]', '_', run)[:100]}{SUFFIX}"


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _static(name: str) -> Markup:
    """A file of our own; it holds no end tag."""
    return Markup(files()[name].decode())  # noqa: S704


def _pointed(rules: Sequence[RuleShown]) -> set[int]:
    """The lines that rules lead to."""
    every = [match.line for rule in rules for match in rule.matches if match.line is not None]
    return set(every[:MOST_POINTED])


def _lines(found: Lines, pointed: set[int]) -> list[LineShown]:
    tasks = {line.number for line in found.tasks[:MOST_POINTED]}
    last = {line.number for line in found.all[-1:]}
    chosen = sorted({*range(min(MOST_LINES, len(found))), *tasks, *pointed, *last})
    shown: list[LineShown] = []
    left = TEXTS
    for number in chosen:
        line: Line = found.all[number]
        one = shown_line(line, TEXT if left > 0 else BRIEF)
        left -= sum(len(text.text) for text in one.texts)
        shown.append(one)
    return shown
