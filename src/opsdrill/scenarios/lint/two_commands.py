"""OD025: two commands, or two lines, expected in one value.

Each command that was run is tested alone. An agent that runs `a` and then `b` never shows
`a && b`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opsdrill.errors import Severity
from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint.check import Finding
from opsdrill.scenarios.lint.expression import Sequence
from opsdrill.scenarios.lint.skeleton import DOT, EDGE, GAP, SPACES, Skeleton, skeleton
from opsdrill.scenarios.lint.sought import COMMANDS, Sought, sought

_SPACE = f"[ {GAP}{SPACES}{EDGE}{DOT}]*"
_JOINT = re.compile(rf"{_SPACE}(?P<joint>&&|;|\n){_SPACE}")
# These change the shell itself, so what follows must stand in the same command; and words that
# belong to one command of the shell.
_BEFORE = re.compile(r"(?:^|[;&\n]\s*)(?:cd|pushd|source|export|set|umask|ulimit|trap|\.)\b")
_AFTER = re.compile(r"(?:do|done|then|else|elif|fi|esac|in|\}|\))(?![\w-])")
_LOOP = re.compile(r"(?<![\w-])(?:for|while|until|if|case|function)(?![\w-])")
_WORD = re.compile(r"[A-Za-z]{2}")


class TwoCommands:
    code = "OD025"

    def __call__(self, scenario: Scenario) -> Iterator[Finding]:
        for pattern in sought(scenario):
            expression = pattern.expression
            if pattern.where != COMMANDS or expression is None:
                continue
            for option in expression.options:
                found = _ends_in_break(pattern, option) or _joined(
                    pattern, option, alone=len(expression.options) == 1, head=expression.head
                )
                if found is not None:
                    yield found
                    break


def _ends_in_break(pattern: Sought, option: Sequence) -> Finding | None:
    shape = skeleton(option)
    if len(shape.text) < 2 or not shape.text.endswith("\n"):
        return None
    end = len(shape.text.rstrip("\n"))
    last = shape.items[end - 1].end if end else option.start
    return Finding(
        pattern.location,
        "ends with a line break, which no command has there; in YAML write `|-` or `>-` where `|` "
        "or `>` stands, or put the pattern in quotes",
        better=(pattern.text[:last] + pattern.text[option.end :],),
    )


def _joined(pattern: Sought, option: Sequence, *, alone: bool, head: int) -> Finding | None:
    shape = skeleton(option)
    if "<<" in shape.text:
        return None  # a here-document has lines
    for joint in _JOINT.finditer(shape.text):
        before, after = shape.text[: joint.start()], shape.text[joint.end() :]
        if not _two(before, after):
            continue
        which = joint["joint"]
        severity: Severity = "note" if which == ";" else "warning"
        shown = "a line break" if which == "\n" else f"`{which}`"
        halves = _halves(pattern, shape, joint, option, head) if alone else ()
        return Finding(
            pattern.location,
            f"expects two commands joined by {shown} in one value, but each command that was run "
            "is tested alone",
            severity=severity,
            suggestion=None if halves else "write a rule for each of them",
            better=halves,
        )
    return None


def _two(before: str, after: str) -> bool:
    if not (_WORD.search(before) and _WORD.match(after.lstrip(f"'\"({EDGE}/"))):
        return False
    return not (_BEFORE.search(before) or _AFTER.match(after) or _LOOP.search(before))


def _halves(
    pattern: Sought, shape: Skeleton, joint: re.Match[str], option: Sequence, head: int
) -> tuple[str, ...]:
    text = pattern.text
    left = text[max(option.start, head) : shape.items[joint.start() - 1].end]
    right = text[shape.items[joint.end()].start : option.end]
    return text[:head] + left, text[:head] + right
