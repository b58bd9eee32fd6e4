"""Grading over the API: what the command line tells is in the answer, and nothing hangs."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import zipfile
from collections.abc import AsyncIterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.unit.api.conftest import Api

from opsdrill.api.answers import OWN_UPLOADS, UPLOADS

V1 = "/api/v1"
GOLDEN = Path(__file__).parents[2] / "golden" / "importers"
FORBIDS = {
    "label": "no rm",
    "validator": "pattern_match",
    "where": "executed_commands",
    "pattern": r"\brm\b",
    "negate": True,
}
GONE = {"label": "gone", "validator": "host_state", "run": "test ! -e /srv/core"}


SLOW = r"(a|a)+\d(?<=q)"
"""Uses up its time on a long row of `a`."""


def drill(*rules: Mapping[str, object], key: str = "disk-full") -> dict[str, object]:
    return {
        "key": key,
        "title": "The disk is full",
        "ticket_title": "web-01 answers with errors",
        "hosts": ["web-01"],
        "validation": list(rules),
    }


def record(*commands: str, job: str = "job-1") -> dict[str, Any]:
    calls = [
        {"kind": "shell", "arguments": {"command": command}, "outcome": "ran", "exit_code": 0}
        for command in commands
    ]
    return {
        "format": "opsdrill.job/1",
        "job": {"id": job, "status": "completed", "resolution": "success"},
        "tasks": [{"id": "t1", "host": "web-01", "status": "completed", "tool_calls": calls}],
        "coverage": {"default": {"state": "whole"}},
    }


def paths(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 422, answer.text
    return [error["path"] for error in answer.json()["errors"]]


async def test_a_grade_tells_what_the_command_line_tells(api: Api) -> None:
    """Reasons, matches with spans, host answers, warnings; nothing is kept."""
    client = api.client("read")
    answer = await client.post(
        f"{V1}/grade",
        json={
            "scenario": drill(GONE, FORBIDS),
            "record": record("ls", "sudo rm /srv/core"),
            "answers": [{"on": "web-01", "run": GONE["run"], "exit_code": 0}],
        },
    )
    assert answer.status_code == 200, answer.text
    (told,) = answer.json()["results"]
    result = told["result"]
    assert (told["format"], told["commands"]) == ("job", 2)
    assert (result["format"], result["verdict"], result["fault"]) == (
        "opsdrill.result/1",
        "failed",
        "agent",
    )
    assert result["compliance"] == {"passed": 1, "total": 2, "not_evaluated": 0}
    assert result["rules"][0]["answer"]["exit_code"] == 0
    match = result["rules"][1]["matches"][0]
    assert (match["value"], match["span"], match["item"]) == ("sudo rm /srv/core", [5, 7], 1)
    assert result["rules"][1]["reason"]
    report = answer.json()["report"]
    assert "**1 failed of 1**" in report
    assert r"sudo \>\>rm\<\< /srv/core" in report
    assert (await client.get(f"{V1}/runs")).json()["runs"] == []


async def test_without_answers_a_rule_that_asks_a_host_is_an_error(api: Api) -> None:
    answer = await api.client("read").post(
        f"{V1}/grade", json={"scenario": drill(GONE), "record": record("ls")}
    )
    rule = answer.json()["results"][0]["result"]["rules"][0]
    assert (rule["status"], "not evaluable" in rule["reason"]) == ("error", True)


async def test_a_transcript_is_graded_in_each_way_it_is_sent(api: Api) -> None:
    """As text, in base64, and as the file itself, by a scenario that is kept."""
    client = api.client("edit")
    assert (await client.post(f"{V1}/scenarios", json=drill(FORBIDS))).status_code == 201
    text = json.dumps(record("rm x"))
    packed = base64.b64encode(text.encode()).decode()
    for body in ({"text": text}, {"base64": packed}, {"record": json.loads(text)}):
        answer = await client.post(f"{V1}/grade", json={"scenario": "disk-full", **body})
        assert answer.json()["results"][0]["result"]["verdict"] == "failed"
    raw = await client.post(f"{V1}/grade?scenario=disk-full", content=text)
    assert raw.json()["results"][0]["result"]["verdict"] == "failed"


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"record": record("ls")}, "scenario"),
        ({"scenario": drill(), "record": {}, "text": ""}, ""),
        ({"scenario": drill()}, ""),
        ({"scenario": drill(), "base64": "%"}, "base64"),
        ({"scenario": "nowhere", "record": record("ls")}, "scenario"),
        (
            {"scenario": drill({**FORBIDS, "pattern": "("}), "record": record("ls")},
            "scenario.validation[0].pattern",
        ),
        (
            {"scenario": drill(), "record": {**record("ls"), "job": {"id": 1}}},
            "record.job.id",
        ),
        ({"scenario": drill(), "record": record("ls"), "answers": [{"on": 1}]}, "answers[0].on"),
        ({"scenario": drill(), "record": record("ls"), "answrs": []}, "answrs"),
        ({"scenario": drill(), "text": "nothing known"}, "text"),
        ({"scenario": drill(), "record": record("ls"), "host": "db-09"}, "host"),
    ],
)
async def test_what_cannot_be_graded_is_refused_with_its_path(
    api: Api, tmp_path: Path, body: dict[str, object], path: str
) -> None:
    answer = await api.client("read").post(f"{V1}/grade", json=body)
    assert path in paths(answer)
    assert str(tmp_path) not in answer.text
    assert "uploads" not in answer.text


async def test_half_a_surrogate_pair_stops_no_grade(api: Api) -> None:
    body = json.dumps({"scenario": drill(FORBIDS), "record": record("rm caf\udce9")})
    answer = await api.client("read").post(
        f"{V1}/grade", content=body, headers={"content-type": "application/json"}
    )
    assert answer.json()["results"][0]["result"]["verdict"] == "failed"


async def test_records_are_kept_as_runs_once(api: Api) -> None:
    client = api.client("edit")
    await client.post(f"{V1}/scenarios", json=drill(FORBIDS))
    url = f"{V1}/records?scenario=disk-full&name=night.json"
    first = await api.client("run").post(url, content=json.dumps(record("rm x")))
    assert first.status_code == 201, first.text
    (kept,) = first.json()["runs"]
    assert (kept["verdict"], kept["format"], kept["commands"]) == ("failed", "job", 1)
    run = (await client.get(f"{V1}/runs/{kept['run']}")).json()
    assert (run["scenario"], run["labels"]["file"]) == ("disk-full", "night.json")
    again = await client.post(url, content=json.dumps(record("rm x")))
    assert (again.status_code, again.json()["runs"]) == (200, [])
    assert again.json()["known"][0]["run"] == kept["run"]
    more = await client.post(f"{url}&again=true", content=json.dumps(record("rm x")))
    assert (more.status_code, len(more.json()["runs"])) == (201, 1)
    assert list((api.service.place.home / "uploads").iterdir()) == []


@pytest.mark.parametrize("query", ["scenario=nowhere", "scenario=disk-full&host=db-01"])
async def test_records_of_a_scenario_or_host_that_is_not_there_are_refused(
    api: Api, query: str
) -> None:
    client = api.client("edit")
    await client.post(f"{V1}/scenarios", json=drill(FORBIDS))
    answer = await client.post(f"{V1}/records?{query}", content=json.dumps(record("ls")))
    [path] = paths(answer)
    assert path in ("query.scenario", "query.host")
    assert (await client.get(f"{V1}/runs")).json()["runs"] == []


def bomb(entries: int, size: int) -> bytes:
    """An archive of many entries, or of one that unpacks to very much."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(entries):
            archive.writestr(f"{number}.json", b"0" * size)
    return stream.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\xff" * 100,
        b"[" * 100_000,
        b"PK\x03\x04" * 200_000,
        bomb(1, 50_000_000),
        b'{"format": "opsdrill.job/1"',
        "\ud800".encode("utf-8", "surrogatepass"),
    ],
    ids=["empty", "bytes", "nested", "entries", "bomb", "cut", "surrogate"],
)
async def test_a_hostile_file_is_refused_and_nothing_of_it_stays(
    api: Api, tmp_path: Path, content: bytes
) -> None:
    answer = await api.client("run").post(f"{V1}/records?name=../../etc/x", content=content)
    assert answer.status_code == 422, answer.text
    assert "transcript: " not in answer.json()["detail"], answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert str(tmp_path) not in answer.text
    assert list((api.service.place.home / "uploads").iterdir()) == []


async def test_a_file_that_is_too_large_is_refused_by_its_length_alone(api: Api) -> None:
    answer = await api.client("run").post(
        f"{V1}/records", content=b"x", headers={"content-length": str(300 * 1024 * 1024)}
    )
    assert answer.status_code == 413


async def begun(client: httpx.AsyncClient, **body: object) -> dict[str, Any]:
    """A regrade that was begun and followed to its end."""
    answer = await client.post(f"{V1}/regrade", json=body)
    assert answer.status_code == 202, answer.text
    followed = await client.get(f"{answer.headers['location']}?wait=30")
    told: dict[str, Any] = followed.json()
    return told


async def kept(client: httpx.AsyncClient, *commands: str) -> str:
    answer = await client.post(
        f"{V1}/records?scenario=disk-full", content=json.dumps(record(*commands))
    )
    assert answer.status_code == 201, answer.text
    run: str = answer.json()["runs"][0]["run"]
    return run


async def test_a_regrade_is_previewed_then_applied(api: Api) -> None:
    """A preview keeps nothing; both tell the flips; earlier grades stay."""
    client = api.client("edit")
    etag = (await client.post(f"{V1}/scenarios", json=drill(FORBIDS))).headers["etag"]
    bad, good = await kept(client, "rm x"), await kept(client, "ls")
    edited = drill({**FORBIDS, "pattern": r"\bls\b"})
    told = await begun(api.client("read"), rules=edited)
    assert (told["state"], told["total"], told["graded"]) == ("done", 2, 2)
    flips = {(flip["run"], flip["rule"], flip["before"], flip["after"]) for flip in told["flips"]}
    assert {(bad, "verdict", "failed", "passed"), (good, "verdict", "passed", "failed")} <= flips
    assert told["flip_count"] == len(told["flips"]) == 4
    assert (await client.get(f"{V1}/runs/{bad}")).json()["verdict"] == "failed"
    await client.put(f"{V1}/scenarios/disk-full", json=edited, headers={"If-Match": etag})
    applied = await begun(client, rules="disk-full", runs=[bad], preview=False)
    assert (applied["total"], applied["changed"], applied["by"]) == (1, 1, "edit")
    assert (await client.get(f"{V1}/runs/{bad}")).json()["verdict"] == "passed"
    grades = (await client.get(f"{V1}/runs/{bad}/grades")).json()["grades"]
    assert [(one["verdict"], one["by"]) for one in grades] == [("failed", None), ("passed", "edit")]


async def test_runs_to_regrade_are_chosen_by_filter(api: Api) -> None:
    client = api.client("edit")
    await client.post(f"{V1}/scenarios", json=drill(FORBIDS))
    await kept(client, "rm x")
    await kept(client, "ls")
    told = await begun(client, filter={"verdict": "failed", "scenario": "disk-full"})
    assert (told["total"], told["flips"]) == (1, [])
    assert (await begun(client, filter={"scenario": "other"}))["total"] == 0


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"runs": ["nowhere"]}, "runs[0]"),
        ({"rules": "nowhere"}, "rules"),
        ({"rules": drill({**FORBIDS, "where": "everywhere"})}, "rules.validation[0].where"),
        ({"filter": {"verdict": "good"}}, "filter.verdict"),
        ({"filter": {"since": 0}}, "filter.since"),
        ({"filter": {"until": "0001-01-01T00:00:00Z"}}, "filter.until"),
        ({"filter": {}, "runs": ["nowhere"]}, "filter"),
        ({"what": 1}, "what"),
    ],
)
async def test_a_regrade_that_cannot_be_is_refused_with_its_path(
    api: Api, body: dict[str, object], path: str
) -> None:
    answer = await api.client("edit").post(f"{V1}/regrade", json=body)
    assert paths(answer) == [path]


async def test_keeping_new_grades_takes_the_role_edit(api: Api) -> None:
    client = api.client("run")
    answer = await client.post(f"{V1}/regrade", json={"preview": False})
    assert answer.status_code == 403
    assert (await client.post(f"{V1}/regrade", json={})).status_code == 202


async def test_regrades_are_bounded_cancelled_and_forgotten(api: Api) -> None:
    client = api.client("edit")
    (first, *_) = [await client.post(f"{V1}/regrade", json={}) for _ in range(3)]
    url = first.headers["location"]
    assert (await client.get(f"{url}?wait=30")).json()["state"] == "done"
    listed = (await client.get(f"{V1}/regrades")).json()["regrades"]
    assert len(listed) == 3
    assert (await client.delete(url)).status_code == 204
    assert (await client.get(url)).status_code == 404
    assert (await client.delete(url)).status_code == 404


async def test_a_regrade_under_way_stops_where_it_is_cancelled(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is graded behind the chunk that it was at; too many at once are a conflict."""
    monkeypatch.setattr("opsdrill.runner.regrader.AT_ONCE", 1)
    client = api.client("edit")
    await client.post(f"{V1}/scenarios", json=drill(FORBIDS))
    for number in range(3):
        await kept(client, f"echo {number} {'a' * 60}1")
    slow = drill({**FORBIDS, "pattern": SLOW})
    asked = [await client.post(f"{V1}/regrade", json={"rules": slow}) for _ in range(6)]
    assert [answer.status_code for answer in asked] == [202] * 5 + [409]
    first, *waiting = [answer.headers["location"] for answer in asked[:5]]
    for url in (*waiting, first):
        assert (await client.delete(url)).status_code == 204
    told = (await client.get(f"{first}?wait=30")).json()
    assert (told["state"], told["seen"] < told["total"]) == ("cancelled", True)
    for url in waiting:
        assert (await client.get(f"{url}?wait=30")).json()["state"] == "cancelled"
    await asyncio.to_thread(api.service.endings[0])


async def test_a_pattern_is_tried_on_kept_runs(api: Api) -> None:
    """Values with spans, and how many verdicts the rules would flip; nothing is kept."""
    client = api.client("edit")
    await client.post(f"{V1}/scenarios", json=drill(FORBIDS))
    bad = await kept(client, "ls", "rm x")
    await kept(client, "ls /srv")
    body = {"scenario": "disk-full", "pattern": "LS", "where": "executed_commands"}
    told = (await api.client("read").post(f"{V1}/patterns/try", json=body)).json()
    assert (told["runs"], told["values"], told["matched"], told["holds"]) == (2, 3, 2, 2)
    assert {(match["value"], tuple(match["span"])) for match in told["matches"]} == {
        ("ls", (0, 2)),
        ("ls /srv", (0, 2)),
    }
    assert bad in {match["run"] for match in told["matches"]}
    rules = [{**FORBIDS, "pattern": r"\bls\b"}]
    more = await client.post(
        f"{V1}/patterns/try", json={**body, "negate": True, "validation": rules}
    )
    assert more.json()["holds"] == 0
    assert (more.json()["flips"]["graded"], more.json()["flips"]["verdicts"]) == (2, 1)
    assert (await client.get(f"{V1}/runs/{bad}/grades")).json()["grades"][1:] == []


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"pattern": "("}, "pattern"),
        ({"pattern": " "}, "pattern"),
        ({"where": "nowhere"}, "where"),
        ({"validation": [{}]}, "scenario"),
        ({"runs": 0}, "runs"),
    ],
)
async def test_a_pattern_that_cannot_be_tried_is_refused_with_its_path(
    api: Api, change: dict[str, object], path: str
) -> None:
    body = {"scenario": "x", "pattern": "a", "where": "executed_commands", **change}
    answer = await api.client("read").post(f"{V1}/patterns/try", json=body)
    assert paths(answer) == [path]


async def test_a_slow_pattern_ends_and_says_so(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("opsdrill.app.pattern_trial.PATTERN_SECONDS", 1.0)
    client = api.client("edit")
    await client.post(f"{V1}/scenarios", json=drill(FORBIDS))
    for number in range(3):
        await kept(client, f"echo {number} {'a' * 60}1")
    body = {"scenario": "disk-full", "pattern": SLOW, "where": "executed_commands"}
    answer = await client.post(f"{V1}/patterns/try", json=body)
    assert answer.status_code == 200
    told = answer.json()
    assert told["exhausted"] or told["limits"]


async def test_too_many_uploads_at_once_are_refused(api: Api, tmp_path: Path) -> None:
    """A slow sender holds one of a bounded number of places, no caller all of them, and gives it
    back."""
    client, other = api.client("run"), api.client("edit")
    gate = asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield b"{"
        await gate.wait()

    def hold(who: httpx.AsyncClient, number: int) -> list[asyncio.Task[httpx.Response]]:
        call = partial(who.post, f"{V1}/records")
        return [asyncio.create_task(call(content=slowly())) for _ in range(number)]

    async def until(number: int) -> None:
        while len(list(tmp_path.glob("home/uploads/*"))) < number:
            await asyncio.sleep(0.01)

    slow = hold(client, OWN_UPLOADS)
    await until(OWN_UPLOADS)
    more = await client.post(f"{V1}/records", content=b"{}")
    assert (more.status_code, more.headers["retry-after"]) == (429, "10")
    slow += hold(other, UPLOADS - OWN_UPLOADS)
    await until(UPLOADS)
    more = await api.client("admin").post(f"{V1}/records", content=b"{}")
    assert (more.status_code, more.headers["retry-after"]) == (503, "10")
    gate.set()
    assert {answer.status_code for answer in await asyncio.gather(*slow)} <= {422, 503}
    assert (await client.post(f"{V1}/records", content=b"{}")).status_code == 422
    assert list(tmp_path.glob("home/uploads/*")) == []


async def test_what_breaks_off_is_kept_as_far_as_it_goes_and_names_no_folder(
    api: Api, tmp_path: Path
) -> None:
    """The warnings of an importer are told, and stand in the run, without where the file lay."""
    whole = (GOLDEN / "codex" / "rollout.jsonl").read_bytes()
    client = api.client("run")
    answer = await client.post(f"{V1}/records?host=web-01&name=s.jsonl", content=whole[:-40])
    assert answer.status_code == 201, answer.text
    run = answer.json()["runs"][0]["run"]
    shown = [answer.text, (await client.get(f"{V1}/runs/{run}")).text]
    shown.append((await client.get(f"{V1}/runs/{run}/record")).text)
    assert answer.json()["runs"][0]["warnings"]
    assert all(str(tmp_path) not in text and "uploads" not in text for text in shown)
