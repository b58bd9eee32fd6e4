"""OpsDrill: drills for AI agents that operate servers, graded by rules.

Start reading at ARCHITECTURE.md; the main path is `cli/run` -> `app/runs` -> `runner/run`.
"""

__version__ = "0.1.0"
