"""The twelve rules as a scenario of OpsDrill."""

from __future__ import annotations

from benchmarks.grading_peers.jobs import rules_as_data

from opsdrill.model.scenario import Scenario

SCENARIO = Scenario.model_validate(
    {
        "key": "slow-shop",
        "title": "The shop is slow",
        "ticket_title": "The shop is slow",
        "hosts": ["web-01", "web-02"],
        "validation": [
            {"label": f"rule {number}", "validator": "pattern_match", **rule}
            for number, rule in enumerate(rules_as_data())
        ],
    }
)
