"""The patterns of a scenario's rules, made ready to be searched target by target."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from opsdrill.errors import InvalidPattern
from opsdrill.model.rules import PatternMatch, Rule, Where
from opsdrill.patterns import Found, Pattern, Searcher, compile_pattern, prepare


class RuleSearches:
    """Searches each target once for all rules that look at it; for one thread at a time.

    Args:
        rules: all rules of a scenario.
        searcher: the regex engine.
    """

    def __init__(self, rules: Sequence[Rule], searcher: Searcher) -> None:
        self._refused: dict[int, InvalidPattern] = {}
        patterns: dict[Where, dict[int, Pattern]] = defaultdict(dict)
        for index, rule in enumerate(rules):
            if isinstance(rule, PatternMatch):
                try:
                    patterns[rule.where][index] = compile_pattern(rule.pattern)
                except InvalidPattern as error:
                    self._refused[index] = error
        self._ready = {
            where: (tuple(by_index), prepare(tuple(by_index.values()), searcher))
            for where, by_index in patterns.items()
        }

    def check(self, index: int) -> None:
        """Make sure that rule number `index` has a pattern.

        Raises:
            InvalidPattern: it is refused.
        """
        if index in self._refused:
            raise self._refused[index]

    def search(self, where: Where, texts: Sequence[str], shown: int) -> Mapping[int, Found]:
        """What was found for each rule of a target, by its index."""
        indexes, searches = self._ready[where]
        return dict(zip(indexes, searches.search(texts, shown), strict=True))
