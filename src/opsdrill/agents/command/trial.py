"""Trying a program: is it there, can it be isolated, does it answer, which model it would use."""

from __future__ import annotations

import asyncio
import re
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from opsdrill.agents.command.surroundings import (
    Layout,
    Links,
    Program,
    passed,
    path_of,
    read_program,
    room_for,
)
from opsdrill.agents.isolation.confined import Confined, Ending
from opsdrill.agents.isolation.probe import why_not_isolated
from opsdrill.model.agent import AgentSettings

ANSWER_SECONDS = 30.0
_KEPT = 4096
_NETWORK = "this machine's: it reaches all that this machine does, what listens on loopback too"


@dataclass(frozen=True, slots=True)
class Trial:
    """One thing that was tried.

    Args:
        what: the thing.
        good: it is as it should be.
        detail: what was found.
        remedy: what mends it.
        blocks: without it the agent cannot work.
    """

    what: str
    good: bool
    detail: str = ""
    remedy: str | None = None
    blocks: bool = True


async def try_program(
    argument: str | None, folder: Path, settings: AgentSettings | None
) -> list[Trial]:
    """Try the program that `command:ARGUMENT` means; its preflight was passed."""
    program = read_program(argument)
    path = path_of(program, folder)
    refused = await why_not_isolated()
    remedy = "allow user namespaces to this user: see `opsdrill doctor`"
    variables = passed(program, settings.environment if settings else ())
    return [
        Trial("starts", True, path),
        Trial("network", True, _NETWORK),
        Trial(
            "isolated", refused is None, refused or "", remedy if refused else None, blocks=False
        ),
        await _answers(program, path, variables, isolated=refused is None),
        Trial("model", True, _model(program, variables)),
    ]


async def _answers(
    program: Program, path: str, variables: dict[str, str], *, isolated: bool
) -> Trial:
    """Whether it says its version where an agent would be."""
    if program.preset is None:
        return Trial("answers", True, "not tried: nobody knows what this program does")
    asked = replace(program, argv=(program.argv[0], *program.preset.asks))
    with tempfile.TemporaryDirectory(prefix="opsdrill-agent-") as base:
        layout = Layout.isolated() if isolated else Layout.plain(Path(base))
        links = Links("check", "http://127.0.0.1:9/ticket", "", {})
        room = room_for(
            asked, path, layout, links, "", hosts=(), variables=variables, hidden=(), transcripts=()
        )
        said = bytearray()

        def heard(part: bytes) -> None:
            said.extend(part[: _KEPT - len(said)])

        confined = Confined(room, heard, heard, lambda _stream: None)
        running = asyncio.ensure_future(confined.run())
        done, _ = await asyncio.wait({running}, timeout=ANSWER_SECONDS)
        confined.stop()
        ending: Ending = await running
    words = said.decode(errors="replace").strip()
    lines = words.splitlines() or [""]
    line = next((line for line in lines if re.search(r"\d\.\d", line)), lines[0])
    if not done:
        return Trial("answers", False, f"said no version within {ANSWER_SECONDS:g} s")
    if ending.status == 0:
        return Trial("answers", True, line)
    command = " ".join(asked.argv)
    why = ending.cannot or ending.refused or f"`{command}` ended with {ending.status}: {line}"
    return Trial("answers", False, why, f"try `{command}` by hand")


def _model(program: Program, variables: dict[str, str]) -> str:
    words = program.argv
    for number, word in enumerate(words):
        if word in ("--model", "-m") and number + 1 < len(words):
            return words[number + 1]
        if word.startswith("--model="):
            return word.partition("=")[2]
    named = [value for name, value in variables.items() if name.endswith(("_MODEL", "MODEL_NAME"))]
    return named[0] if named else "the program's own choice"
