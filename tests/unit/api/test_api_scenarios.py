"""Scenarios over the API: every refusal names its path, and no editor overwrites another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.unit.api.conftest import Api

URL = "/api/v1/scenarios"
RULE = {"label": "gone", "validator": "host_state", "run": "test ! -e /srv/core"}


def drill(key: str = "disk-full", **more: object) -> dict[str, object]:
    """A scenario as it is sent."""
    return {
        "key": key,
        "title": "The disk is full",
        "tags": ["disk"],
        "ticket_title": "web-01 answers with errors",
        "hosts": ["web-01"],
        "validation": [RULE],
        **more,
    }


def paths(answer: httpx.Response) -> list[str]:
    return [error["path"] for error in answer.json()["errors"]]


async def created(client: httpx.AsyncClient, **more: object) -> tuple[dict[str, Any], str]:
    """A new scenario as it was told, and its ETag."""
    answer = await client.post(URL, json=drill(**more))  # type: ignore[arg-type]
    assert answer.status_code == 201, answer.text
    return answer.json(), answer.headers["etag"]


async def test_a_scenario_is_created_and_read(api: Api) -> None:
    client = api.client("edit")
    told, etag = await created(client)
    assert (told["origin"], told["number"], told["by"]) == ("kept", 1, "edit")
    assert told["scenario"]["validation"][0]["exit_code"] == 0  # every default written out
    read = await api.client("read").get(f"{URL}/disk-full")
    assert read.headers["etag"] == etag
    assert {**read.json(), "warnings": []} == {**told, "warnings": []}
    again = await api.client("read").get(f"{URL}/disk-full", headers={"If-None-Match": etag})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"validation": [RULE, {**RULE, "exit_code": "0"}]}, "validation[1].exit_code"),
        ({"validation": [{**RULE, "validator": "hots_state"}]}, "validation[0].validator"),
        ({"validation": [{**RULE, "on": "db-01"}]}, "validation[0].on"),
        (
            {
                "validation": [
                    {
                        "label": "x",
                        "validator": "pattern_match",
                        "where": "executed_commands",
                        "pattern": "(a",
                    }
                ]
            },
            "validation[0].pattern",
        ),
        ({"validation": {"host_state": []}}, "validation"),
        ({"hosts": ["WEB"]}, "hosts[0]"),
        ({"titel": "x"}, "titel"),
        ({"title": None}, "title"),
        ({"files": [{"from": "a.conf", "to": "/etc/a"}]}, "files[0].from"),
        ({"key": "schema"}, "key"),
        ({"limits": {"job_seconds": 0}}, "limits.job_seconds"),
    ],
)
async def test_a_refusal_names_the_path_and_the_line(
    api: Api, changed: Mapping[str, object], path: str
) -> None:
    text = json.dumps({**drill(), **changed}, indent=2)
    answer = await api.client("edit").post(
        URL, content=text, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 422
    error = answer.json()["errors"][0]
    assert error["path"] == path
    assert error["line"] > 1
    assert error["code"].startswith("OD00")
    assert (await api.client("read").get(f"{URL}/disk-full")).status_code == 404


async def test_what_lint_calls_an_error_is_refused_and_a_warning_is_told(api: Api) -> None:
    """[S6.9]"""
    client = api.client("edit")
    rule = {"label": "x", "validator": "pattern_match", "where": "executed_commands"}
    lost = await client.post(URL, json=drill(validation=[{**rule, "pattern": "\brm\b"}]))
    assert lost.status_code == 422
    assert paths(lost) == ["validation[0].pattern"]
    dotted = await client.post(URL, json=drill(validation=[{**rule, "pattern": "ping 10.0.0.1"}]))
    assert dotted.status_code == 201
    warned = dotted.json()["warnings"]
    assert [(one["path"], one["severity"]) for one in warned] == [
        ("validation[0].pattern", "warning")
    ]


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [('{"key": "a",\n "key": "b"}', 2, 2), ('{"key": 1', 1, 10), ("key: a\n\tb: c\n", 2, 1)],
)
async def test_a_text_that_cannot_be_read_has_a_line_and_a_column(
    api: Api, text: str, line: int, column: int
) -> None:
    kind = "application/json" if text.startswith("{") else "application/yaml"
    answer = await api.client("edit").post(URL, content=text, headers={"content-type": kind})
    error = answer.json()["errors"][0]
    assert (answer.status_code, error["code"]) == (422, "OD001")
    assert (error["line"], error["column"]) == (line, column)


async def test_yaml_is_taken_too(api: Api) -> None:
    text = "key: by-yaml\ntitle: x\nticket_title: 22:22\n"
    answer = await api.client("edit").post(
        URL, content=text, headers={"content-type": "application/yaml"}
    )
    assert answer.status_code == 201
    assert answer.json()["scenario"]["ticket_title"] == "22:22"


async def test_two_editors_do_not_overwrite_each_other(api: Api) -> None:
    """[S6.10] 428 without If-Match, 412 with one that is no longer right."""
    one, two = api.client("edit"), api.client("edit")
    _, etag = await created(one)
    url = f"{URL}/disk-full"
    for method in ("PUT", "PATCH", "DELETE"):
        answer = await one.request(method, url, json=drill() if method != "DELETE" else None)
        assert answer.status_code == 428
        assert answer.json()["type"] == "urn:opsdrill:problem:precondition-required"
    first = await one.put(url, json=drill(title="By one"), headers={"If-Match": etag})
    assert (first.status_code, first.json()["number"]) == (200, 2)
    second = await two.put(url, json=drill(title="By two"), headers={"If-Match": etag})
    assert second.status_code == 412
    patched = await two.patch(url, json={"title": "By two"}, headers={"If-Match": etag})
    assert patched.status_code == 412
    assert (await two.delete(url, headers={"If-Match": etag})).status_code == 412
    none = await two.delete(url, headers={"If-Match": ""})
    assert none.status_code == 400
    weak = await two.delete(url, headers={"If-Match": f"W/{first.headers['etag']}"})
    assert weak.status_code == 412
    assert (await one.get(url)).json()["scenario"]["title"] == "By one"
    gone = await two.delete(url, headers={"If-Match": first.headers["etag"]})
    assert (gone.status_code, (await one.get(url)).status_code) == (204, 404)


async def test_the_same_content_makes_no_new_version(api: Api) -> None:
    """[S6.7]"""
    client = api.client("edit")
    _, etag = await created(client)
    same = await client.put(f"{URL}/disk-full", json=drill(), headers={"If-Match": etag})
    assert (same.status_code, same.headers["etag"]) == (200, etag)


async def test_a_patch_merges_objects_and_replaces_lists(api: Api) -> None:
    """RFC 7396: null takes a key back to its default."""
    client = api.client("edit")
    _, etag = await created(client, description="before", limits={"job_seconds": 60})
    answer = await client.patch(
        f"{URL}/disk-full",
        json={
            "description": None,
            "limits": {"setup_seconds": 5},
            "validation": [{"label": "none", "validator": "task_count", "max": 0}],
        },
        headers={"If-Match": etag, "content-type": "application/merge-patch+json"},
    )
    told = answer.json()["scenario"]
    assert answer.status_code == 200
    assert told["description"] == ""
    assert (told["limits"]["job_seconds"], told["limits"]["setup_seconds"]) == (60, 5)
    assert [rule["label"] for rule in told["validation"]] == ["none"]


@pytest.mark.parametrize(
    ("patch", "path"),
    [
        ({"validation": [{**RULE, "exit_code": 256}]}, "validation[0].exit_code"),
        ({"key": "other"}, "key"),
        ([], ""),
        ({"title": None}, "title"),
    ],
)
async def test_a_refused_patch_names_the_path(api: Api, patch: object, path: str) -> None:
    client = api.client("edit")
    _, etag = await created(client)
    answer = await client.patch(f"{URL}/disk-full", json=patch, headers={"If-Match": etag})
    assert (answer.status_code, paths(answer)) == (422, [path])


async def test_single_rules_are_added_replaced_and_removed(api: Api) -> None:
    client = api.client("edit")
    _, etag = await created(client)
    rules = f"{URL}/disk-full/validation"

    async def labels(answer: httpx.Response) -> list[str]:
        assert answer.status_code == 200, answer.text
        return [rule["label"] for rule in answer.json()["scenario"]["validation"]]

    one = await client.post(rules, json={**RULE, "label": "last"}, headers={"If-Match": etag})
    assert await labels(one) == ["gone", "last"]
    two = await client.post(
        f"{rules}?at=0",
        json={**RULE, "label": "first"},
        headers={"If-Match": one.headers["etag"]},
    )
    assert await labels(two) == ["first", "gone", "last"]
    three = await client.put(
        f"{rules}/1", json={**RULE, "label": "new"}, headers={"If-Match": two.headers["etag"]}
    )
    assert await labels(three) == ["first", "new", "last"]
    four = await client.delete(f"{rules}/0", headers={"If-Match": three.headers["etag"]})
    assert await labels(four) == ["new", "last"]
    etag = four.headers["etag"]
    missing = await client.put(f"{rules}/2", json=RULE, headers={"If-Match": etag})
    assert missing.status_code == 404
    wrong = await client.put(f"{rules}/1", json={"label": "x"}, headers={"If-Match": etag})
    assert (wrong.status_code, paths(wrong)) == (422, ["validation[1].validator"])
    old = await client.delete(f"{rules}/0", headers={"If-Match": one.headers["etag"]})
    assert old.status_code == 412


async def test_versions_stay_readable(api: Api) -> None:
    """[S6.7]"""
    client = api.client("edit")
    first, etag = await created(client)
    await client.patch(f"{URL}/disk-full", json={"title": "B"}, headers={"If-Match": etag})
    listed = (await client.get(f"{URL}/disk-full/versions")).json()["versions"]
    assert [one["number"] for one in listed] == [2, 1]
    assert listed[1]["version"] == first["version"]
    old = await client.get(f"{URL}/disk-full/versions/1")
    assert old.json()["scenario"] == first["scenario"]
    assert (await client.get(f"{URL}/disk-full/versions/3")).status_code == 404


async def test_a_key_that_any_origin_has_is_a_conflict(api: Api) -> None:
    """[S6.8] Packs and folders count as well, and their scenarios are only read here."""
    client = api.client("edit")
    folder = api.service.place.folder / "scenarios" / "mine"
    folder.mkdir(parents=True)
    (folder / "scenario.json").write_text(json.dumps(drill("mine")))
    pack = (await client.get(f"{URL}?origin=pack")).json()["scenarios"][0]["key"]
    await created(client)
    for key in ("disk-full", "mine", pack):
        assert (await client.post(URL, json=drill(key))).status_code == 409
    for key in ("mine", pack):
        read = await client.get(f"{URL}/{key}")
        etag = read.headers["etag"]
        assert (read.json()["number"], etag.startswith('"0-')) == (0, True)
        answer = await client.put(f"{URL}/{key}", json=drill(key), headers={"If-Match": etag})
        assert answer.status_code == 409
        assert "copy" in answer.json()["hint"]
    assert (await client.get(f"{URL}/mine/versions/0")).status_code == 200


async def test_a_listing_is_searched_and_paged_over_all_origins(api: Api) -> None:
    client = api.client("edit")
    folder = api.service.place.folder / "scenarios"
    for key in ("bb", "dd"):
        (folder / key).mkdir(parents=True)
        (folder / key / "scenario.json").write_text(json.dumps(drill(key, tags=["paged"])))
    for key in ("aa", "cc", "ee"):
        await created(client, key=key, tags=["paged"])
    seen: list[str] = []
    cursor = ""
    while True:
        page = (await client.get(f"{URL}?tag=paged&limit=2{cursor}")).json()
        seen += [row["key"] for row in page["scenarios"]]
        if "cursor" not in page or page["cursor"] is None:
            break
        cursor = f"&cursor={page['cursor']}"
    assert seen == ["aa", "bb", "cc", "dd", "ee"]
    found = (await client.get(f"{URL}?search=CC")).json()["scenarios"]
    assert [row["key"] for row in found] == ["cc"]
    kept = (await client.get(f"{URL}?tag=paged&origin=kept")).json()["scenarios"]
    assert [row["key"] for row in kept] == ["aa", "cc", "ee"]
    bad = await client.get(f"{URL}?cursor=x")
    assert bad.status_code == 400


async def test_a_broken_file_is_listed_without_any_path_of_the_machine(
    api: Api, tmp_path: Path
) -> None:
    folder = api.service.place.folder / "scenarios"
    for name in ("one", "two"):
        (folder / name).mkdir(parents=True)
        (folder / name / "scenario.json").write_text(json.dumps(drill("twice")))
    client = api.client("read")
    answer = await client.get(f"{URL}?search=twice")
    row = answer.json()["scenarios"][0]
    assert (row["key"], row.get("version")) == ("twice", None)
    assert row["problems"][0]["code"] == "OD005"
    refused = await client.get(f"{URL}/twice")
    assert refused.status_code == 422
    assert str(tmp_path) not in answer.text + refused.text


async def test_validate_answers_any_text(api: Api) -> None:
    client = api.client("read")
    good = await client.post(f"{URL}/validate", json=drill())
    assert (good.json()["valid"], good.json()["problems"]) == (True, [])
    text = "key: x\ntitle: x\nticket_title: x\nvalidation:\n  - label: y\n    pattern: '('\n"
    bad = await client.post(f"{URL}/validate", content=text)
    told = bad.json()
    assert (bad.status_code, told["valid"]) == (200, False)
    assert {(one["path"], one["line"]) for one in told["problems"]} == {
        ("validation[0].validator", 5),
        ("validation[0].pattern", 6),
    }
    assert (await client.post(f"{URL}/validate", content=b"\xff")).json()["problems"][0][
        "line"
    ] == 1
    assert (await client.post(f"{URL}/validate", content=b"")).json()["valid"] is False
    noted = await client.post(
        f"{URL}/validate?notes=true",
        json=drill(
            validation=[
                {
                    "label": "x",
                    "validator": "pattern_match",
                    "where": "executed_commands",
                    "pattern": "top",
                    "negate": True,
                }
            ]
        ),
    )
    assert "note" in {one["severity"] for one in noted.json()["problems"]}


async def test_the_schema_is_there(api: Api) -> None:
    answer = await api.client("read").get(f"{URL}/schema")
    assert answer.json()["title"] == "Scenario"
    assert answer.headers["content-type"] == "application/schema+json"


@pytest.mark.parametrize(
    ("method", "url"),
    [
        ("POST", URL),
        ("PUT", f"{URL}/x"),
        ("PATCH", f"{URL}/x"),
        ("DELETE", f"{URL}/x"),
        ("POST", f"{URL}/import"),
        ("PUT", f"{URL}/x/files/a"),
        ("POST", f"{URL}/x/validation"),
    ],
)
async def test_changes_take_the_role_edit(api: Api, method: str, url: str) -> None:
    assert (await api.client("run").request(method, url, json=drill())).status_code == 403


async def test_files_are_kept_with_a_scenario(api: Api) -> None:
    """[S6.7] Each is part of the version; one that the scenario puts on hosts stays."""
    client = api.client("edit")
    _, etag = await created(client)
    url = f"{URL}/disk-full/files/etc/app.conf"
    put = await client.put(url, content=b"a=1\n", headers={"If-Match": etag})
    assert (put.status_code, put.json()["number"]) == (200, 2)
    assert [file["path"] for file in put.json()["files"]] == ["etc/app.conf"]
    used = await client.patch(
        f"{URL}/disk-full",
        json={"files": [{"from": "etc/app.conf", "to": "/etc/app.conf"}]},
        headers={"If-Match": put.headers["etag"]},
    )
    assert used.status_code == 200
    read = await client.get(url)
    assert read.content == b"a=1\n"
    assert read.headers["content-disposition"] == "attachment; filename*=UTF-8''app.conf"
    etag = used.headers["etag"]
    assert (await client.delete(url, headers={"If-Match": etag})).status_code == 409
    free = await client.patch(f"{URL}/disk-full", json={"files": []}, headers={"If-Match": etag})
    gone = await client.delete(url, headers={"If-Match": free.headers["etag"]})
    assert (gone.status_code, gone.json()["files"]) == (200, [])
    assert (await client.get(url)).status_code == 404


@pytest.mark.parametrize(
    "path",
    ["..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "a%5cb", "scenario.yaml", "a%00b", "a%0ab"],
)
async def test_no_file_has_a_path_that_leads_elsewhere(api: Api, path: str) -> None:
    client = api.client("edit")
    _, etag = await created(client)
    answer = await client.put(
        f"{URL}/disk-full/files/{path}", content=b"x", headers={"If-Match": etag}
    )
    assert answer.status_code in (404, 422)
    assert (await client.get(f"{URL}/disk-full/files")).json()["files"] == []


async def test_a_file_that_is_too_large_is_refused(api: Api) -> None:
    client = api.client("edit")
    _, etag = await created(client)
    answer = await client.put(
        f"{URL}/disk-full/files/a",
        content=b"x" * (16 * 1024 * 1024 + 1),
        headers={"If-Match": etag},
    )
    assert answer.status_code == 413
    uploads = api.service.place.home / "uploads"
    assert not uploads.exists() or list(uploads.iterdir()) == []
