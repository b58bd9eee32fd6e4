"""OD022: a bare word, which also matches inside longer words: `top` in `stop`.

Told where a longer word is known, or the word is very short. Whether it matters is for the author.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint.check import Finding
from opsdrill.scenarios.lint.expression import Character, Choice, Group, Item, Position
from opsdrill.scenarios.lint.replacement import Replacement, insert, replaced
from opsdrill.scenarios.lint.skeleton import is_space
from opsdrill.scenarios.lint.sought import PATHS, Sought, sought
from opsdrill.scenarios.lint.words import ALL_WORDS

_SHORT = (2, 3)


class BareWord:
    code = "OD022"

    def __call__(self, scenario: Scenario) -> Iterator[Finding]:
        for pattern in sought(scenario):
            if pattern.where not in PATHS and (found := _bare(pattern)):
                yield found


def _bare(pattern: Sought) -> Finding | None:
    if pattern.expression is None:
        return None
    changes: list[Replacement] = []
    told: tuple[str, str] | None = None
    for run, left, right in _open_words(pattern.expression.body, left=True, right=True):
        word = "".join(item.char for item in run)
        longer = _longer(word.lower(), left=left, right=right)
        # Of several words in what people say, the outer ones are hardly ever parts of others.
        if longer is None or (pattern.in_prose and not (left and right)):
            continue
        told = told or (word, longer)
        changes += [insert(run[0].start, r"\b")] if left else []
        changes += [insert(run[-1].end, r"\b")] if right else []
    if told is None:
        return None
    word, longer = told
    inside = f"`{longer}`" if longer else "longer words"
    return Finding(
        pattern.location,
        f"has the bare word `{word}`, which is also found inside {inside}",
        severity="note",
        better=(replaced(pattern.text, changes),),
    )


@lru_cache(maxsize=1024)
def _longer(word: str, *, left: bool, right: bool) -> str | None:
    """A known word that holds this one at an open side; empty for a short one without such."""
    if len(word) < min(_SHORT):
        return None
    for longer in ALL_WORDS:
        held = (
            (left and right and word in longer)
            or (left and not right and longer.endswith(word))
            or (right and not left and longer.startswith(word))
        )
        if held and not _apart(longer, word):
            return longer
    return "" if left and right and len(word) in _SHORT else None


def _apart(longer: str, word: str) -> bool:
    """Whether the word stands in the longer one only between hyphens, where `\\b` finds it too."""
    return word in longer.replace(".", "-").split("-")  # the word itself is such a one too


def _open_words(
    choice: Choice, *, left: bool, right: bool
) -> Iterator[tuple[list[Character], bool, bool]]:
    """The words at the open ends of a pattern, and at which of their ends it is open."""
    for option in choice.options:
        items = option.items
        if not items:
            continue
        run = _word(items)
        if run and len(run) == len(items):
            if left or right:
                yield run, left, right
            continue
        if left and run and _ends_word(items[len(run)]):
            yield run, True, False
        last = _word(items[::-1])[::-1]
        if right and last and _ends_word(items[-1 - len(last)]):
            yield last, False, True
        first = items[0]
        if isinstance(first, Group) and first.kind in ("capture", "plain") and left:
            alone = len(items) == 1
            follows = alone or _ends_word(items[1])
            if follows:
                yield from _open_words(first.body, left=True, right=right and alone)


def _word(items: tuple[Item, ...]) -> list[Character]:
    run: list[Character] = []
    for item in items:
        if not isinstance(item, Character) or not (item.char.isalnum() or item.char == "_"):
            break
        run.append(item)
    return run


def _ends_word(item: Item) -> bool:
    """Whether a word on its own ends here: not at the dot of `.log`, nor in `apt(-get)?`."""
    return isinstance(item, Position) or is_space(item)
