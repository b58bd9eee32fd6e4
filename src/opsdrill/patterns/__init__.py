"""The regex dialect: Python's `re.search(pattern, value, re.IGNORECASE)`, bounded and fast."""

from opsdrill.patterns.bounded import BoundedSearcher
from opsdrill.patterns.pattern import Pattern, compile_pattern
from opsdrill.patterns.searcher import Searched, Searcher, Span

__all__ = ["BoundedSearcher", "Pattern", "Searched", "Searcher", "Span", "compile_pattern"]
