"""Results as documents: one format a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from opsdrill.app import markdown
from opsdrill.cli.choices import DocumentFormat
from opsdrill.cli.formats import json, junit
from opsdrill.model.result import Result

WRITERS: dict[DocumentFormat, Callable[[Sequence[Result]], bytes]] = {
    "json": json.results,
    "jsonl": json.lines,
    "junit": junit.results,
    "markdown": markdown.results,
}
