"""What holds for every route, found by walking all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.routing import APIRoute, iter_route_contexts
from tests.unit.api.conftest import Api

from opsdrill.api.entry import OPEN, ROLE_KEY, SAFE
from opsdrill.app.access import ROLES
from opsdrill.wire.problems import ProblemDetails


def routes(application: FastAPI) -> Iterator[tuple[str, str, str | None]]:
    """Method, path and role of every route."""
    for found in iter_route_contexts(application.routes):
        role = None
        if isinstance(found.original_route, APIRoute):
            role = (found.openapi_extra or {}).get(ROLE_KEY)
        for method in sorted(found.methods or ()):
            if method != "HEAD":
                yield method, str(found.path), role


def filled(path: str) -> str:
    """A path with something in the place of its parameters."""
    return re.sub(r"\{[^}]*\}", "1", path)


async def test_every_route_takes_a_role_or_is_known_to_take_none(api: Api) -> None:
    """[A1.1]"""
    found = list(routes(api.application))
    assert len(found) > 8
    without = {(method, path) for method, path, role in found if role is None}
    assert without <= OPEN
    assert {role for _, _, role in found if role} <= set(ROLES)


async def test_every_route_with_a_role_refuses_strangers_in_the_one_shape(api: Api) -> None:
    """[A1.1, A6.1]"""
    client = api.client()
    for method, path, role in routes(api.application):
        if role is None:
            continue
        answer = await client.request(method, filled(path), json={"broken": True})
        assert answer.status_code == 401, (method, path, answer.text)
        assert ProblemDetails.model_validate(answer.json()).status == 401


async def test_every_route_refuses_a_role_that_is_too_low(api: Api) -> None:
    """[A1.3]"""
    for method, path, role in routes(api.application):
        if role in (None, "read"):
            continue
        lower = ROLES[ROLES.index(role) - 1]
        answer = await api.client(lower).request(method, filled(path))
        assert answer.status_code == 403, (method, path, answer.text)
        assert ProblemDetails.model_validate(answer.json()).status == 403


async def test_every_change_of_a_browser_needs_its_csrf_token(api: Api) -> None:
    """[A3.2]"""
    browser, _ = await api.browser("admin")
    for method, path, role in routes(api.application):
        if role is None or method in SAFE:
            continue
        answer = await browser.request(method, filled(path))
        assert answer.status_code == 403, (method, path, answer.text)


async def test_an_unknown_path_and_method_are_told_in_the_one_shape(api: Api) -> None:
    """[A6.1]"""
    client = api.client("admin")
    for answer, status in (
        (await client.get("/api/v1/nothing"), 404),
        (await client.get("/api/v1/tokens/"), 404),
        (await client.get("/" + "x" * 9000), 404),
        (await client.request("BREW", "/api/v1/tokens"), 405),
        (await client.patch("/api/v1/tokens"), 405),
    ):
        assert answer.status_code == status
        assert ProblemDetails.model_validate(answer.json()).status == status
        assert len(answer.content) < 1000


async def test_what_is_not_possible_is_told_with_all_that_is(api: Api) -> None:
    """[A6.1] Also where several routes have one address."""
    client = api.client("admin")
    for path, methods in (
        ("/runs", "GET, POST"),
        ("/scenarios/x", "DELETE, GET, PATCH, PUT"),
        ("/session", "DELETE, GET, POST"),
        ("/scenarios/import", "DELETE, GET, PATCH, POST, PUT"),
    ):
        answer = await client.request("BREW", f"/api/v1{path}")
        assert (answer.status_code, answer.headers["allow"]) == (405, methods)


async def test_the_document_tells_of_every_operation(api: Api) -> None:
    """[A6.1] Its role, its security, what it says, and every error that all operations have."""
    document = api.application.openapi()
    assert "HTTPValidationError" not in str(document)
    for path, item in document["paths"].items():
        for method, operation in item.items():
            where = (method.upper(), path)
            assert operation["summary"], where
            assert operation["description"], where
            assert operation["operationId"], where
            answers = operation["responses"]
            assert {"400", "421", "500", "503"} <= set(answers), where
            if where not in OPEN:
                assert operation[ROLE_KEY] in ROLES
                assert {"401", "403", "429"} <= set(answers), where
                assert operation["security"], where
            if "requestBody" in operation:
                assert {"408", "413", "422"} <= set(answers), where
            for status, answer in answers.items():
                if int(status) >= 400:
                    assert list(answer["content"]) == ["application/problem+json"], where


async def test_the_document_is_told_to_anybody(api: Api) -> None:
    """[A1.1]"""
    for _ in range(2):
        answer = await api.client().get("/api/v1/openapi.json")
        assert answer.json() == api.application.openapi()
        assert answer.headers["content-type"] == "application/json"


async def test_no_operation_has_the_name_of_another(api: Api) -> None:
    found = [
        operation["operationId"]
        for item in api.application.openapi()["paths"].values()
        for operation in item.values()
    ]
    assert sorted(found) == sorted(set(found))


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json", "/docs/oauth2-redirect"])
async def test_no_page_that_loads_scripts_of_others_is_served(api: Api, path: str) -> None:
    """[A6.2]"""
    assert (await api.client("admin").get(path)).status_code == 404
