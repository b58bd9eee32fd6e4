"""The client has what the API has, and imports no more than the API's bodies."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.structure.operations import openapi

import opsdrill.client
from opsdrill.client import batches, runs
from opsdrill.client.call import Call
from opsdrill.client.operation import Operation, Pages, Stream
from opsdrill.client.operations import Operations
from opsdrill.client.runs import Filters
from opsdrill.client.streams import Following
from opsdrill.errors import UsageError

ROOM = Path(opsdrill.client.__file__).parent
OWN = ("opsdrill.client", "opsdrill.errors", "opsdrill.model", "opsdrill.wire")
ARGUMENTS: dict[str, object] = {
    "key": "k", "name": "n", "role": "read", "run": "r", "batch": "b", "token": "t", "lab": "l",
    "scenario": "s", "record": {}, "archive": b"", "file": b"", "path": "p/q", "etag": '"1-a"',
    "rule": {}, "patch": {}, "index": 0, "number": 1, "digest": "0" * 64, "pattern": "x",
    "where": "executed_commands", "regrade": "g", "scenarios": ["s"], "agents": ["a"],
    "sets": [{"name": "a"}, {"name": "b"}],
}  # fmt: skip


def operations() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Method, path and description of every operation of the document, by its name."""
    return {
        operation["operationId"]: (method, path, operation)
        for path, item in openapi()["paths"].items()
        for method, operation in item.items()
    }


def methods() -> dict[str, Operation[Any, Any] | Stream[Any]]:
    return {
        name: value
        for name, value in vars(Operations).items()
        if isinstance(value, (Operation, Stream))
    }


def test_every_operation_of_the_document_has_a_method_of_its_name() -> None:
    assert set(methods()) == set(operations())


@pytest.mark.parametrize("name", sorted(methods()))
def test_a_method_asks_what_the_document_says(name: str) -> None:
    """Its method, its path, its parameters, and a body where there is one."""
    describe = methods()[name].describe
    assert describe.__doc__
    required = [
        parameter.name
        for parameter in inspect.signature(describe).parameters.values()
        if parameter.default is parameter.empty and parameter.kind != parameter.VAR_KEYWORD
    ]
    made = describe(**{each: ARGUMENTS[each] for each in required})
    method, path, operation = operations()[name]
    shape = re.sub(r"\\\{path\\\}", ".+", re.escape(path))
    shape = re.sub(r"\\\{[^}]*\\\}", "[^/]+", shape)
    assert re.fullmatch(shape, made.path), (made.path, path)
    if isinstance(made, Following):
        assert method == "get"
        return
    assert isinstance(made, Call)
    assert made.method.lower() == method
    assert (made.body is not None) == ("requestBody" in operation)
    if made.body is not None:
        assert made.body.media in operation["requestBody"]["content"]
    known = {each["name"].lower() for each in operation.get("parameters", [])}
    assert set(made.query) | set(made.headers) <= known
    if method == "get":
        assert made.again


@pytest.mark.parametrize("name", sorted(methods()))
def test_every_query_of_the_document_can_be_asked(name: str) -> None:
    describe = methods()[name].describe
    _, _, operation = operations()[name]
    wanted = {
        each["name"].replace("-", "_")
        for each in operation.get("parameters", [])
        if each["in"] == "query"
    }
    taken = set(inspect.signature(describe).parameters)
    if "filters" in taken:
        taken |= {*Filters.__annotations__, "label"}
    assert wanted <= taken


def test_every_listing_with_a_cursor_can_be_gone_through() -> None:
    paged = {value.describe for value in vars(Operations).values() if isinstance(value, Pages)}
    for name, (_, _, operation) in operations().items():
        if any(each["name"] == "cursor" for each in operation.get("parameters", [])):
            assert methods()[name].describe in paged, name


def test_the_client_needs_nothing_of_the_server() -> None:
    for path in ROOM.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("opsdrill"):
                assert (node.module or "").startswith(OWN), (path.name, node.module)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: runs.start_runs(["s"], ["a"], repeat=0), "repeat must be at least 1"),
        (lambda: batches.compare_runs([{"name": "a"}]), "sets must have at least 2 items"),
        (lambda: runs.list_runs(scenario="a\udcff").parameters(), "'a\\udcff' is no text"),
        (lambda: runs.read_run("a\udcff"), "'a\\udcff' is no text"),
        (lambda: runs.read_run(".."), "'..' names nothing"),
    ],
)
def test_what_cannot_be_asked_for_is_told_before_it_is_sent(
    call: Callable[[], object], words: str
) -> None:
    """In the words of the API; a text that has no bytes may come from the name of a file."""
    with pytest.raises(UsageError) as refused:
        call()
    assert str(refused.value).startswith(words)
