"""The regex dialect: Python's `re.search(pattern, value, re.IGNORECASE)`, bounded and fast."""

from opsdrill.patterns.bounded import BoundedSearcher
from opsdrill.patterns.pattern import Pattern, compile_pattern
from opsdrill.patterns.searcher import Found, Searched, Searcher, Searches, Span, prepare

__all__ = [
    "BoundedSearcher",
    "Found",
    "Pattern",
    "Searched",
    "Searcher",
    "Searches",
    "Span",
    "compile_pattern",
    "prepare",
]
