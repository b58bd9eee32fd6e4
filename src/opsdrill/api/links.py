"""OpenAPI links: where an answer leads on, so that programs find the way by themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_RUN, _OF_RUN = "$response.body#/runs/0/id", "$request.path.run"
_KEY, _OF_KEY = "$response.body#/scenario/key", "$request.path.key"
_SEEN = {"header.if-match": "$response.header.ETag"}
_RUN_PARTS = (
    "read_run", "read_results", "list_grades", "list_phases", "list_run_hosts", "list_evidence",
    "read_differences", "read_record", "list_run_files", "read_run_scenario", "follow_run",
    "cancel_run", "retry_run", "delete_run",
)  # fmt: skip
_SCENARIO_PARTS = (
    "read_scenario", "export_scenario", "list_scenario_files", "list_scenario_versions",
)  # fmt: skip
_SCENARIO_EDITS = ("replace_scenario", "patch_scenario", "delete_scenario", "add_rule")

Parameters = Mapping[str, object]


def _all(names: Sequence[str], parameters: Parameters) -> dict[str, Parameters]:
    return dict.fromkeys(names, parameters)


_SCENARIO: dict[str, Parameters] = {
    **_all(_SCENARIO_PARTS, {"path.key": _KEY}),
    **_all(_SCENARIO_EDITS, {"path.key": _KEY, **_SEEN}),
    "read_scenario_version": {"path.key": _KEY, "path.number": "$response.body#/number"},
    "replace_rule": {"path.key": _KEY, "path.index": 0, **_SEEN},
    "remove_rule": {"path.key": _KEY, "path.index": 0, **_SEEN},
    "put_scenario_file": {"path.key": _KEY, **_SEEN},
}
LINKS: Mapping[tuple[str, str], Mapping[str, Parameters]] = {
    ("start_runs", "202"): {
        **_all(_RUN_PARTS, {"path.run": _RUN}),
        "read_batch": {"path.batch": "$response.body#/batch"},
        "cancel_batch": {"path.batch": "$response.body#/batch"},
        "retry_batch": {"path.batch": "$response.body#/batch"},
        "follow_runs": {"query.batch": "$response.body#/batch"},
    },
    ("list_runs", "200"): _all(_RUN_PARTS, {"path.run": _RUN}),
    ("retry_run", "202"): {"read_run": {"path.run": "$response.body#/run"}},
    ("keep_records", "201"): {"read_results": {"path.run": "$response.body#/runs/0/run"}},
    ("list_grades", "200"): {
        "read_grade": {"path.run": _OF_RUN, "path.number": "$response.body#/grades/0/number"}
    },
    ("list_evidence", "200"): {
        "read_evidence": {"path.run": _OF_RUN, "path.number": "$response.body#/items/0/number"}
    },
    ("list_run_files", "200"): {
        "read_run_file": {"path.run": _OF_RUN, "path.digest": "$response.body#/support/0/digest"}
    },
    ("list_batches", "200"): {"read_batch": {"path.batch": "$response.body#/batches/0/id"}},
    ("create_scenario", "201"): _SCENARIO,
    ("import_scenario", "201"): _SCENARIO,
    ("read_scenario", "200"): _all(_SCENARIO_EDITS, {"path.key": _OF_KEY, **_SEEN}),
    ("list_scenarios", "200"): _all(
        _SCENARIO_PARTS, {"path.key": "$response.body#/scenarios/0/key"}
    ),
    ("list_scenario_versions", "200"): {
        "read_scenario_version": {
            "path.key": _OF_KEY,
            "path.number": "$response.body#/versions/0/number",
        }
    },
    ("put_scenario_file", "200"): {
        "read_scenario_file": {"path.key": _OF_KEY, "path.path": "$request.path.path"},
        "remove_scenario_file": {
            "path.key": _OF_KEY,
            "path.path": "$request.path.path",
            **_SEEN,
        },
    },
    ("regrade_runs", "202"): _all(
        ("read_regrade", "cancel_regrade"), {"path.id": "$response.body#/id"}
    ),
    ("create_token", "201"): _all(
        ("read_token", "revoke_token"), {"path.token": "$response.body#/id"}
    ),
    ("list_labs", "200"): {"check_lab": {"path.lab": "$response.body#/labs/0/name"}},
}
"""By operation and status of the answer: the operations that it leads to, and their parameters."""


def linked(operation: str, status: str) -> dict[str, Any]:
    """The links of an answer as the OpenAPI document has them."""
    return {
        name: {"operationId": name, "parameters": dict(parameters)}
        for name, parameters in LINKS.get((operation, status), {}).items()
    }
