"""Every operation of the OpenAPI document, called as it says and otherwise, in every role.

No answer is a defect, and none is another than the document tells. Its links are followed.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import FlakyStrategyDefinition, Unsatisfiable
from schemathesis.checks import CheckContext, not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.core.transport import Response
from schemathesis.generation import GenerationMode
from schemathesis.generation.case import Case
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.integration.api.server_program import HANGS, serving
from tests.unit.api.drills import small_place

from opsdrill.app.access import ROLES, Role
from opsdrill.client import ANY, Client
from opsdrill.wire.grading import JOB
from opsdrill.wire.scenarios import EXAMPLE

Operation: TypeAlias = APIOperation[Any, Any, Any, Any]
AnyCase: TypeAlias = Case[Any]


def what_is_wrong_is_named(_context: CheckContext, response: Response, _case: AnyCase) -> None:
    """[A6.1] What breaks its format is told with its places."""
    assert response.status_code != 422 or response.json()["errors"], response.text


CHECKS = [
    what_is_wrong_is_named,
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
CONFIG = {
    "seed": 1,
    "generation": {
        "deterministic": True, "database": "none", "with-security-parameters": False,
    },
}  # fmt: skip
ENDLESS = "follow_runs"
"""Does not end by itself, and is followed apart."""
SECONDS = 60
DEPTH = int(os.environ.get("OPSDRILL_TEST_DEPTH", "1"))
"""How many times as much is tried as on every change."""
OTHERS = DEPTH
"""Calls of each operation and kind in a role that may not do everything."""
OFTEN = 2 * DEPTH
"""The same of an admin."""
WALKS = 8 * DEPTH
STEPS = 10


@dataclass
class Drilled:
    """A server with something of everything."""

    address: str
    secrets: Mapping[Role, str]
    drills: Client
    schema: Any
    seen: dict[str, set[int]] = field(default_factory=dict)
    """The statuses that each operation answered."""

    def operations(self) -> Iterator[Operation]:
        for result in self.schema.get_all_operations():
            assert isinstance(result, Ok), result
            operation = result.ok()
            if name(operation) != ENDLESS:
                yield operation

    def called(self, case: AnyCase, role: Role | None) -> Response:
        headers = {"Authorization": f"Bearer {self.secrets[role]}"} if role else {}
        response = case.call(headers=headers, timeout=SECONDS)
        self.seen.setdefault(name(case.operation), set()).add(response.status_code)
        case.validate_response(response, checks=list(CHECKS))
        return response


def name(operation: Operation) -> str:
    found: str = operation.definition.raw["operationId"]
    return found


def of(times: int) -> settings:
    return settings(
        max_examples=times, derandomize=True, database=None, deadline=None,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drilled]:
    folder = tmp_path_factory.mktemp("served")
    place = small_place(folder)
    (place.folder / "opsdrill.toml").write_text('agent-config = "agents.yaml"\n')
    with (
        serving(folder) as (_process, address, secret, _notes),
        Client(address, secret) as drills,
    ):
        document = httpx.get(f"{address}/api/v1/openapi.json", timeout=HANGS).json()
        schema = schemathesis.openapi.from_dict(
            document, config=SchemathesisConfig.from_dict(CONFIG)
        )
        schema.config.update(base_url=address)
        secrets = {role: drills.create_token(role, role).secret for role in ROLES}
        yield Drilled(address, secrets, drills, schema)


def each_operation(server: Drilled, role: Role | None, times: int) -> None:
    """Call every operation in a role, by what its schema says and by what it forbids."""
    found: list[str] = []
    for operation in server.operations():
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

            @of(times)
            @given(case=operation.as_strategy(generation_mode=mode))
            def call(case: AnyCase) -> None:
                try:
                    server.called(case, role)
                except FailureGroup as group:
                    found.extend(f"{name(case.operation)}: {one}" for one in group.exceptions)

            try:
                call()
            except Unsatisfiable:  # nothing about it can be wrong
                assert mode is GenerationMode.NEGATIVE, name(operation)
    assert not found, "\n\n".join(found)


@pytest.mark.parametrize("role", [None, "read", "run", "edit"])
def test_whoever_calls_gets_what_the_document_says(server: Drilled, role: Role | None) -> None:
    each_operation(server, role, OTHERS)


def test_an_admin_gets_what_the_document_says(server: Drilled) -> None:
    each_operation(server, "admin", OFTEN)


FRESH = itertools.count()
RULE = {"label": "There", "validator": "host_state", "run": "test -e /srv"}


def bodies(server: Drilled) -> dict[str, tuple[Any, str]]:
    """A body with which each operation does what it is for, and its media type."""
    scenario = {**EXAMPLE, "key": f"fresh-{next(FRESH)}"}
    run = server.drills.list_runs(agent="script:good", limit=1).runs
    made = {
        "create_token": {"name": "a", "role": "read"},
        "log_in": {"token": server.secrets["admin"]},
        "create_scenario": scenario,
        "replace_scenario": scenario,
        "validate_scenario": scenario,
        "import_scenario": scenario,
        "add_rule": RULE,
        "replace_rule": RULE,
        "grade_record": {"scenario": scenario, "record": JOB},
        "keep_records": {**JOB, "job": {**JOB["job"], "id": scenario["key"]}},  # type: ignore[dict-item]
        "try_pattern": {"scenario": "drill", "pattern": "x", "where": "executed_commands"},
        "regrade_runs": {"runs": [each.id for each in run] or None},
        "start_runs": {"scenarios": ["drill"], "agents": ["good"], "lab": "practice"},
        "compare_runs": {"sets": [{"name": "a"}, {"name": "b", "tag": "small"}]},
    }
    found: dict[str, tuple[Any, str]] = {
        each: (body, "application/json") for each, body in made.items()
    }
    found["patch_scenario"] = {"title": "Other"}, "application/merge-patch+json"
    found["put_scenario_file"] = b"content", "application/octet-stream"
    return found


def resolved(expression: object, case: AnyCase, answer: Response) -> Any:
    """The value of a link's expression, https://spec.openapis.org/oas/v3.1.0#runtime-expressions."""
    if not isinstance(expression, str) or not expression.startswith("$"):
        return expression
    if expression.startswith("$request.path."):
        return case.path_parameters[expression.removeprefix("$request.path.")]
    if expression.startswith("$response.header."):
        return answer.headers[expression.removeprefix("$response.header.").lower()][0]
    found = answer.json()
    for step in expression.removeprefix("$response.body#/").split("/"):
        found = found[int(step)] if isinstance(found, list) else found[step]
    return found


class Walk:
    """Calls operations as their users do, and goes where answers lead."""

    def __init__(self, server: Drilled) -> None:
        self.server = server
        self.known = {name(each): each for each in server.operations()}

    def call(
        self, operation: str, parameters: dict[str, Any], **body: Any
    ) -> tuple[AnyCase, Response]:
        """Call an operation; parameters by `path.NAME`, `query.NAME`, `header.NAME`."""
        parts: dict[str, dict[str, Any]] = {"path": {}, "query": {}, "header": {}}
        for place, value in parameters.items():
            where, _, what = place.partition(".")
            parts[where][what] = value
        found = self.known[operation]
        more: dict[str, Any] = {}
        if "requestBody" in found.definition.raw:
            content, media = bodies(self.server)[operation]
            more = {"body": body.get("body", content), "media_type": media}
        case = found.Case(
            path_parameters=parts["path"], query=parts["query"], headers=parts["header"], **more
        )
        return case, self.server.called(case, "admin")

    def parent(self, operation: str, target: str) -> tuple[AnyCase, Response]:
        """Call an operation for what its answer leads to."""
        parameters: dict[str, Any] = {}
        raw = self.known[operation].definition.raw
        for each in raw.get("parameters", []):
            if each["in"] == "path":
                parameters[f"path.{each['name']}"] = self.value(each["name"])
            elif each["name"] == "if-match" and operation != "import_scenario":
                parameters["header.if-match"] = ANY
        body = {}
        if target.startswith("retry"):
            body = {"body": {"scenarios": ["drill"], "agents": ["bad"], "lab": "broken"}}
        if operation == "retry_run":
            parameters["path.run"] = self.started("broken")
        if operation == "list_runs":
            self.started("broken" if target.startswith("retry") else "practice")
        case, answer = self.call(operation, parameters, **body)
        if operation == "start_runs":
            self.over(answer.json()["runs"][0]["id"])
        return case, answer

    def value(self, parameter: str) -> object:
        if parameter == "run":
            return self.started("practice")
        if parameter == "key":
            return self.call("create_scenario", {})[1].json()["scenario"]["key"]
        return {"path": "files/a"}[parameter]

    def started(self, lab: str) -> str:
        [run] = self.server.drills.start_runs(["drill"], ["good"], lab=lab).runs
        self.over(run.id)
        return run.id

    def over(self, run: str) -> None:
        for _event in self.server.drills.follow_run(run):
            pass


def test_every_operation_does_what_it_is_for_and_every_link_leads_on(server: Drilled) -> None:
    """As an admin: at least one 2xx of each operation, through the links of the document."""
    walk = Walk(server)
    for operation, found in walk.known.items():
        if not any(each["in"] == "path" for each in found.definition.raw.get("parameters", [])):
            walk.call(operation, {})
    for operation, found in walk.known.items():
        for status, said in found.definition.raw["responses"].items():
            for target, link in said.get("links", {}).items():
                if target == ENDLESS:
                    continue
                case, answer = walk.parent(operation, target)
                assert str(answer.status_code) == status, (operation, answer.content)
                parameters = {
                    place: resolved(value, case, answer)
                    for place, value in link["parameters"].items()
                }
                if target == "put_scenario_file":
                    parameters["path.path"] = "files/a"
                if target == "replace_scenario":
                    body = {"body": {**EXAMPLE, "key": parameters["path.key"]}}
                else:
                    body = {}
                _, reached = walk.call(target, parameters, **body)
                assert reached.status_code < 300, (operation, target, reached.content)
    never = {
        each for each in walk.known
        if not any(200 <= status < 300 for status in server.seen.get(each, ()))
    }  # fmt: skip
    assert never == set()


def test_the_events_of_all_runs_are_a_stream(server: Drilled) -> None:
    """The one operation that does not end by itself."""
    [run] = server.drills.start_runs(["drill"], ["slow"], lab="practice").runs
    headers = {"Authorization": f"Bearer {server.secrets['read']}"}
    address = f"{server.address}/api/v1/events"
    with httpx.stream("GET", address, headers=headers, timeout=HANGS) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert any(run.id in line for line in answer.iter_lines())
    server.drills.cancel_run(run.id)


def test_random_walks_along_the_links_meet_no_defect(server: Drilled) -> None:
    """Chains of operations, each fed by the answer of the one before."""
    machine = server.schema.exclude(operation_id=ENDLESS).as_state_machine()
    walked = 0
    found: list[str] = []

    class Machine(machine):  # type: ignore[misc, valid-type]
        def get_call_kwargs(self, case: AnyCase) -> dict[str, Any]:
            headers = {"Authorization": f"Bearer {server.secrets['admin']}"}
            return {"headers": headers, "timeout": SECONDS}

        def validate_response(self, response: Response, case: AnyCase, **_: Any) -> None:
            nonlocal walked
            walked += 1
            try:
                case.validate_response(response, checks=list(CHECKS))
            except FailureGroup as group:
                found.extend(f"{name(case.operation)}: {one}" for one in group.exceptions)

    # A server does not answer the same twice, which the library may take for a mistake of ours.
    with suppress(FlakyStrategyDefinition):
        Machine.run(
            settings=settings(
                max_examples=WALKS, stateful_step_count=STEPS, derandomize=True,
                database=None, deadline=None, phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
        )  # fmt: skip
    assert walked
    assert not found, "\n\n".join(found)
