"""Each operation tells its errors in the one shape, by a status that its document names."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from tests.structure.operations import openapi
from tests.unit.api.conftest import Api

from opsdrill.wire.problems import ProblemDetails

MEDIA = "application/problem+json"
OPERATIONS = [
    pytest.param(method.upper(), path, operation, id=operation["operationId"])
    for path, item in openapi()["paths"].items()
    for method, operation in item.items()
]


async def mistaken(client: httpx.AsyncClient, method: str, path: str, operation: Any) -> Any:
    """The answer to a request that names nothing that is there and sends what nobody reads."""
    filled = re.sub(r"\{[^}]*\}", "999999", path)
    wrong = {
        parameter["name"]: "-1"
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "query" and parameter["schema"].get("type") == "integer"
    }
    body = {"no": "such key"} if "requestBody" in operation else None
    return await client.request(method, filled, params=wrong, json=body)


@pytest.mark.parametrize(("method", "path", "operation"), OPERATIONS)
async def test_an_operation_tells_its_errors_in_the_one_shape(
    method: str, path: str, operation: Any, api: Api
) -> None:
    """[A6.1]"""
    admin = api.client("admin")
    refused = [await admin.request(method, path, headers={"host": "elsewhere"})]
    if not path.endswith("/events"):  # what follows does not end
        refused.append(await mistaken(admin, method, path, operation))
    if "401" in operation["responses"]:
        refused.append(await api.client().request(method, path))
    told = [answer for answer in refused if answer.status_code >= 400]
    assert len(told) >= len(refused) - 1
    for answer in told:
        assert answer.headers["content-type"] == MEDIA
        assert ProblemDetails.model_validate(answer.json()).status == answer.status_code
        assert str(answer.status_code) in operation["responses"], answer.text
        assert answer.status_code < 500
        assert answer.json()["errors"] or answer.status_code != 422, answer.text
