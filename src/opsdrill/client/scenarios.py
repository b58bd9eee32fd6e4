"""Scenarios: read wherever they are, and edited in the store."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel

from opsdrill.client.call import (
    LONG_SECONDS,
    Answer,
    Call,
    Value,
    address,
    content,
    get,
    model,
    nothing,
    several,
)
from opsdrill.client.uploads import Content, Upload
from opsdrill.model.scenario import Scenario
from opsdrill.wire.scenarios import (
    FileList,
    Origin,
    ScenarioPage,
    ScenarioTold,
    Validated,
    VersionList,
)

ANY = "*"
"""In the place of an etag: whichever version there is."""
SCENARIOS = address("/scenarios")

Written = Scenario | Mapping[str, Any] | str
"""A scenario: a model, plain data, or YAML or JSON as text."""
Rule = BaseModel | Mapping[str, Any]
"""A rule of `validation`: a model, or plain data."""


class TaggedScenario(ScenarioTold):
    """A scenario with what an edit of it gives back."""

    etag: str


def _tagged(answer: Answer) -> TaggedScenario:
    told = model(ScenarioTold)(answer)
    return TaggedScenario.model_construct(
        **{name: getattr(told, name) for name in ScenarioTold.model_fields},
        etag=answer.response.headers.get("etag", ""),
    )


def list_scenarios(
    *,
    search: str | None = None,
    tag: str | None = None,
    origin: Origin | None = None,
    limit: int | None = None,
    cursor: str | None = None,
) -> Call[ScenarioPage]:
    """All scenarios by key, or those that all of this lets through; `search` looks in key, title
    and tags."""
    wanted: dict[str, Value] = {"search": search, "tag": tag, "origin": origin}
    return get(SCENARIOS, model(ScenarioPage), **wanted, limit=limit, cursor=cursor)


def create_scenario(scenario: Written) -> Call[TaggedScenario]:
    """Keeps a new scenario in the store; `Refused` names what is wrong with it."""
    return Call("POST", SCENARIOS, _tagged, body=_written(scenario))


def validate_scenario(
    scenario: Written, *, key: str | None = None, notes: bool = False
) -> Call[Validated]:
    """What is wrong with a scenario; nothing is kept. `key`: whose files are meant."""
    query: dict[str, Value] = {"key": key, "notes": notes}
    path = address("/scenarios/validate")
    return Call("POST", path, model(Validated), query, body=_written(scenario), again=True)


def read_scenario_schema() -> Call[dict[str, Any]]:
    """The JSON Schema of scenarios."""
    return get(address("/scenarios/schema"), _plain)


def import_scenario(archive: Content | Written, *, etag: str | None = None) -> Call[TaggedScenario]:
    """Keeps the scenario of a ZIP archive of its folder, or of a text. With an etag it takes the
    place of the one that has its key."""
    zipped = not isinstance(archive, (str, BaseModel, Mapping))
    body = Upload(archive, "application/zip") if zipped else _written(archive)  # type: ignore[arg-type]
    path = address("/scenarios/import")
    return Call("POST", path, _tagged, headers=_seen(etag), body=body, seconds=LONG_SECONDS)


def read_scenario(key: str) -> Call[TaggedScenario]:
    """One scenario in full."""
    return get(address("/scenarios/{}", key), _tagged)


def replace_scenario(key: str, scenario: Written, *, etag: str) -> Call[TaggedScenario]:
    """Keeps a scenario's next version; `Conflict` (412) where it is not at this etag any more."""
    path = address("/scenarios/{}", key)
    return Call("PUT", path, _tagged, headers=_seen(etag), body=_written(scenario))


def patch_scenario(key: str, patch: Mapping[str, Any], *, etag: str) -> Call[TaggedScenario]:
    """Changes parts of a scenario by a JSON merge patch (RFC 7396)."""
    path, body = address("/scenarios/{}", key), _json(patch, "application/merge-patch+json")
    return Call("PATCH", path, _tagged, headers=_seen(etag), body=body)


def delete_scenario(key: str, *, etag: str) -> Call[None]:
    """Removes a scenario with all its versions."""
    return Call("DELETE", address("/scenarios/{}", key), nothing, headers=_seen(etag))


def export_scenario(
    key: str, *, format: Literal["yaml", "json", "zip"] = "yaml", number: int | None = None
) -> Call[bytes]:
    """A scenario as a file; `zip` has its support files, `number` is one of its versions."""
    return get(address("/scenarios/{}/export", key), content, format=format, number=number)


def list_scenario_files(key: str) -> Call[FileList]:
    """The files that are kept with a scenario."""
    return get(address("/scenarios/{}/files", key), model(FileList))


def read_scenario_file(key: str, path: str) -> Call[bytes]:
    """The content of a file of a scenario."""
    return get(_file(key, path), content)


def put_scenario_file(key: str, path: str, file: Content, *, etag: str) -> Call[TaggedScenario]:
    """Keeps a file with a scenario, which makes its next version."""
    body = Upload(file, "application/octet-stream")
    return Call(
        "PUT", _file(key, path), _tagged, headers=_seen(etag), body=body, seconds=LONG_SECONDS
    )


def remove_scenario_file(key: str, path: str, *, etag: str) -> Call[TaggedScenario]:
    """Keeps a file no longer."""
    return Call("DELETE", _file(key, path), _tagged, headers=_seen(etag))


def add_rule(key: str, rule: Rule, *, etag: str, at: int | None = None) -> Call[TaggedScenario]:
    """Puts a rule behind the last one, or before the one at `at`, counted from 0."""
    path = address("/scenarios/{}/validation", key)
    return Call("POST", path, _tagged, {"at": at}, _seen(etag), _json(rule))


def replace_rule(key: str, index: int, rule: Rule, *, etag: str) -> Call[TaggedScenario]:
    """Puts a rule in the place of the one at `index`, counted from 0."""
    path = address("/scenarios/{}/validation/{}", key, index)
    return Call("PUT", path, _tagged, headers=_seen(etag), body=_json(rule))


def remove_rule(key: str, index: int, *, etag: str) -> Call[TaggedScenario]:
    """Takes the rule at `index`, counted from 0, out of a scenario."""
    path = address("/scenarios/{}/validation/{}", key, index)
    return Call("DELETE", path, _tagged, headers=_seen(etag))


def list_scenario_versions(key: str) -> Call[VersionList]:
    """All versions of a scenario, the latest first."""
    return get(address("/scenarios/{}/versions", key), model(VersionList))


def read_scenario_version(key: str, number: int) -> Call[TaggedScenario]:
    """A scenario in full as it was in a version."""
    return get(address("/scenarios/{}/versions/{}", key, number), _tagged)


def _file(key: str, path: str) -> str:
    return address("/scenarios/{}/files/", key) + several(path)


def _seen(etag: str | None) -> dict[str, str]:
    return {} if etag is None else {"if-match": etag}


def _written(scenario: Written) -> Upload:
    if isinstance(scenario, str):
        kind = "json" if scenario.lstrip().startswith("{") else "yaml"
        return Upload(scenario.encode(), f"application/{kind}")
    return _json(scenario)


def _json(value: BaseModel | Mapping[str, Any], media: str = "application/json") -> Upload:
    if isinstance(value, BaseModel):
        return Upload(value.model_dump_json(by_alias=True, exclude_none=True).encode(), media)
    return Upload(json.dumps(dict(value)).encode(), media)


def _plain(answer: Answer) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(answer.content)
    return found
