"""The values that options of several commands may have."""

from __future__ import annotations

from typing import Literal

ListFormat = Literal["table", "json", "jsonl"]
PageFormat = Literal["table", "json"]
DocumentFormat = Literal["json", "jsonl", "junit", "markdown"]
ResultFormat = Literal["table", "json", "jsonl", "junit", "markdown"]
FailOn = Literal["failed", "never"]
