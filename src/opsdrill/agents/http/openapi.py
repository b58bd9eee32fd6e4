"""The protocol as an OpenAPI document, made from the models that keep it."""

from __future__ import annotations

from pydantic import JsonValue
from pydantic.json_schema import models_json_schema

from opsdrill.agents.http import protocol
from opsdrill.agents.http.signing import SIGNATURE, TIMESTAMP

_REF = "#/components/schemas/{model}"
_JOB: dict[str, JsonValue] = {
    "name": "job",
    "in": "path",
    "required": True,
    "description": "The `id` of the order.",
    "schema": {"type": "string"},
}


def document() -> dict[str, JsonValue]:
    """The document: what a service must answer, and where it may call back."""
    _, schemas = models_json_schema(
        [
            (protocol.Greeting, "validation"),
            (protocol.JobOrder, "validation"),
            (protocol.Events, "validation"),
            (protocol.CallBack, "validation"),
            (protocol.Result, "validation"),
        ],
        ref_template=_REF,
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Agents that are services",
            "version": "1",
            "description": "What a service answers so that `--agent http:URL` can drive it.",
        },
        "servers": [{"url": "http://127.0.0.1:8800", "description": "the URL of --agent http:URL"}],
        "security": [{}, {"token": []}, {"signature": []}],
        "paths": {
            "/": {"get": _does("What the service is.", answer="Greeting")},
            "/jobs": {"post": _does("Start a job; once for each id.", body="JobOrder")},
            "/jobs/{job}/events": {
                "parameters": [_JOB],
                "get": _does(
                    "The events from a number on, oldest first; none when there are no more yet.",
                    answer="Events",
                    query={
                        "after": "How many events were taken already.",
                        "wait": "Seconds that the answer may be kept back until there is one.",
                    },
                ),
            },
            "/jobs/{job}/results": {
                "parameters": [_JOB],
                "post": _does("What became of a command that was asked for.", body="Result"),
            },
            "/jobs/{job}": {
                "parameters": [_JOB],
                "delete": _does("The job was stopped; whatever it is answered is fine."),
            },
        },
        "webhooks": {
            "events": {
                "post": _does(
                    "Events, posted to the order's `callback` instead of being polled; signed. "
                    "The answer is the number of the next event.",
                    body="CallBack",
                    signed=True,
                )
            }
        },
        "components": {
            "schemas": dict(sorted(schemas["$defs"].items())),
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "signature": {"type": "apiKey", "in": "header", "name": SIGNATURE},
            },
        },
    }


def _does(
    summary: str,
    *,
    body: str | None = None,
    answer: str | None = None,
    query: dict[str, str] | None = None,
    signed: bool = False,
) -> dict[str, JsonValue]:
    """One operation."""
    made: dict[str, JsonValue] = {"summary": summary}
    parameters: list[JsonValue] = [
        {"name": name, "in": "query", "description": text, "schema": {"type": "integer"}}
        for name, text in (query or {}).items()
    ]
    if signed:
        parameters += [
            {"name": name, "in": "header", "required": True, "schema": {"type": "string"}}
            for name in (TIMESTAMP, SIGNATURE)
        ]
    if parameters:
        made["parameters"] = parameters
    if body is not None:
        made["requestBody"] = {"required": True, "content": _json(body)}
    good: dict[str, JsonValue] = {"description": "Good."}
    if answer is not None:
        good["content"] = _json(answer)
    made["responses"] = {"200" if answer or signed else "2XX": good}
    return made


def _json(model: str) -> dict[str, JsonValue]:
    return {"application/json": {"schema": {"$ref": _REF.format(model=model)}}}
