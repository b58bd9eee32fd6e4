"""What the options of several commands are, and the values they may have."""

from __future__ import annotations

from typing import Literal

import typer

ListFormat = Literal["table", "json", "jsonl"]
PageFormat = Literal["table", "json"]
DocumentFormat = Literal["json", "jsonl", "junit", "markdown"]
ResultFormat = Literal["table", "json", "jsonl", "junit", "markdown"]
FailOn = Literal["failed", "never"]

HOST = typer.Option("--host", metavar="NAME", help="The host of whatever names none.")
SPLIT_SSH = typer.Option(
    "--split-ssh", help="Take `ssh HOST COMMAND` for a command that ran on that host."
)
