"""The words of mini-swe-agent: commands in what the agent said, results in what came back."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opsdrill.evidence.transcripts.rows import listing, mapping, row, spoken, text, whole
from opsdrill.model.job import Outcome

_FENCES = (
    ("```mswea_bash_command", "\n```"),
    ("```bash", "\n```"),
    ("<mswea_bash_command>", "</mswea_bash_command>"),
)
"""How a command stands in the agent's words, in the order in which they are looked for."""
_FENCE_LINE = 100
"""Characters that may stand behind an opening fence on its line, all of them white space."""
RETURNED = re.compile(r"\s*<returncode>\s*(-?\d{1,5})\s*</returncode>\s*")
"""How the result of a command begins."""
_TIMED_OUT = re.compile(r"The last command <command>.*timed out and has been killed", re.DOTALL)
_NOT_RUN = "action was not executed"


def commands(words: str) -> list[str]:
    """What stands in the agent's words as commands."""
    for opening, closing in _FENCES:
        found = list(_between(words, opening, closing))
        if found:
            return found
    return []


def _between(words: str, opening: str, closing: str) -> Iterator[str]:
    place = 0
    while (start := words.find(opening, place)) >= 0:
        start = place = start + len(opening)
        if opening.startswith("```"):
            line, _, _ = words[start : start + _FENCE_LINE].partition("\n")
            if line.strip() or len(line) == _FENCE_LINE:
                continue  # a fence of some other language
            start += len(line) + 1
        end = words.find(closing, start)
        if end < 0:
            return
        yield words[start:end].strip()
        place = end + len(closing)


def words_of(message: dict[str, object]) -> str:
    """What a message of either chat interface says."""
    if "output" in message and isinstance(message["output"], list):
        parts = [each for each in message["output"] if text(each, "type") == "message"]
        return "\n".join(spoken(mapping(part).get("content")) for part in parts)
    return spoken(message.get("content"))


def tool_calls(message: dict[str, object]) -> list[tuple[str | None, str, object]]:
    """Id, name and arguments of each call in a message of either chat interface."""
    found: list[tuple[str | None, str, object]] = []
    for call in listing(message, "tool_calls"):
        name = text(call, "function", "name") or ""
        found.append((text(call, "id"), name, _arguments(text(call, "function", "arguments"))))
    for item in listing(message, "output"):
        if text(item, "type") == "function_call":
            id = text(item, "call_id") or text(item, "id")
            name = text(item, "name") or ""
            found.append((id, name, _arguments(text(item, "arguments"))))
    return found


def _arguments(written: str | None) -> object:
    """What a call was given: JSON in a text, or the text where it is none."""
    found = row((written or "").encode(errors="replace"))
    return written if found is None else found


def result_of(words: str, extra: dict[str, object]) -> tuple[Outcome, int | None, str]:
    """The outcome, exit status and output of a command, as the message behind it tells them."""
    said = RETURNED.match(words)
    timed_out = said is None and _TIMED_OUT.match(words) is not None
    output = text(extra, "raw_output")
    if output is None:
        output = _inside(words) if said or timed_out else words
    if timed_out:
        return "timed_out", None, output
    why = text(extra, "exception_info")
    if not why:
        code = whole(extra, "returncode")
        return "ran", int(said[1]) if said and code is None else code, output
    if why == _NOT_RUN:
        return "refused", None, output
    late = "TimeoutExpired" in (text(extra, "exception_type") or "") or "timed out" in why
    return "timed_out" if late else "failed", None, output


def _inside(words: str) -> str:
    """The output in a result; all of it where it is not marked."""
    start, end = words.find("<output>"), words.rfind("</output>")
    if start < 0 or end < start:
        return words
    return words[start + len("<output>") : end].removeprefix("\n").removesuffix("\n")
