"""Runs over the API: started, listed, read, cancelled, retried, deleted."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.unit.api.conftest import Api
from tests.unit.api.drills import RUNS, order, over, small_place, started, working

from opsdrill.app.wiring import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return small_place(tmp_path)


async def test_runs_are_started_as_one_batch_and_come_to_their_verdicts(api: Api) -> None:
    client = api.client("run")
    answer = await client.post(
        RUNS, json=order("good", "bad", repeat=2, labels={"commit": "1f3c"}, parallel=2)
    )
    assert answer.status_code == 202
    told = answer.json()
    assert [(run["agent"], run["repeat"], run["state"]) for run in told["runs"]] == [
        (agent, repeat, "planned") for agent in ("good", "bad") for repeat in (1, 2)
    ]
    found = await over(client, [run["id"] for run in told["runs"]])
    assert [run["verdict"] for run in found] == ["passed", "passed", "failed", "failed"]
    assert found[0]["batch"] == told["batch"]
    assert found[0]["labels"] == {"commit": "1f3c", "by": "run"}
    assert found[0]["lab"] == "practice"
    assert (await client.get(f"/api/v1/batches/{told['batch']}")).json()["by"] == "run"
    assert found[0]["compliance"] == {"passed": 2, "total": 2}


async def test_the_same_request_with_one_key_starts_once(api: Api) -> None:
    client = api.client("run", Idempotency_Key="k1")
    first = await client.post(RUNS, json=order())
    again = await client.post(RUNS, json=order())
    assert (first.status_code, again.status_code) == (202, 202)
    assert first.content == again.content
    other = await client.post(RUNS, json=order("bad"))
    assert other.status_code == 409
    assert "k1" in other.json()["detail"]
    # another caller's key is another key
    admin = await api.client("admin", Idempotency_Key="k1").post(RUNS, json=order())
    assert admin.json()["batch"] != first.json()["batch"]
    assert (await client.get(RUNS)).json()["count"] == 2


async def test_a_start_that_failed_leaves_its_key_free(api: Api) -> None:
    client = api.client("run", Idempotency_Key="k1")
    assert (await client.post(RUNS, json=order("nobody"))).status_code == 422
    assert (await client.post(RUNS, json=order())).status_code == 202


@pytest.mark.parametrize("key", ["a b", "", "x" * 201])
async def test_a_key_must_be_a_word(api: Api, key: str) -> None:
    answer = await api.client("run").post(RUNS, json=order(), headers={"Idempotency-Key": key})
    assert answer.status_code in (400, 422)


async def test_runs_are_listed_by_what_is_asked(api: Api) -> None:
    client = api.client("run")
    runs = await started(client, "good", "bad", labels={"team": "a"})
    other = await started(client, "good", labels={"team": "b"})
    await over(client, [*runs, *other])

    async def ids(**filters: str) -> list[str]:
        answer = await client.get(RUNS, params=filters)
        assert answer.status_code == 200, answer.text
        told = answer.json()
        assert told["count"] == len(told["runs"])
        return [run["id"] for run in told["runs"]]

    assert await ids() == [*other, *reversed(runs)]
    assert await ids(sort="created_at") == [*runs, *other]
    assert await ids(agent="bad") == [runs[1]]
    assert await ids(agent="bad", lab="practice") == [runs[1]]
    assert await ids(lab="sandbox") == []
    assert await ids(verdict="passed", label="team:a") == [runs[0]]
    assert await ids(tag="small", state="done", sort="created_at") == [*runs, *other]
    assert await ids(tag="large") == []
    assert await ids(scenario="drill", batch="nothing") == []
    [created] = [run["created_at"] for run in (await over(client, other))]
    assert await ids(since=created) == other
    assert await ids(until=created, sort="created_at") == runs
    assert await ids(agent="' OR 1=1 --") == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("limit", "0"), ("limit", "201"), ("cursor", "nonsense"), ("state", "dead"),
        ("verdict", "so-so"), ("since", "2026-01-01T00:00:00"), ("since", "yesterday"),
        ("since", "0.5"),
        ("since", "0001-01-01T00:00:00+00:00"), ("label", "team"), ("sort", "verdict"),
        ("until", "9999-12-31T23:59:59-12:00"),
    ],
)  # fmt: skip
async def test_a_filter_that_cannot_be_is_refused(api: Api, name: str, value: str) -> None:
    answer = await api.client("read").get(RUNS, params={name: value})
    assert answer.status_code in (400, 422), answer.text
    assert answer.json()["detail"]


async def test_pages_stay_right_while_runs_arrive(api: Api) -> None:
    client = api.client("run")
    first = await started(client, repeat=5)
    seen, cursor = [], None
    while True:
        params = {"limit": "2"} | ({"cursor": cursor} if cursor else {})
        told = (await client.get(RUNS, params=params)).json()
        seen += [run["id"] for run in told["runs"]]
        cursor = told["cursor"]
        if cursor is None:
            break
        await started(client)
    assert seen == first[::-1]


async def test_everything_that_a_run_left_can_be_read(api: Api) -> None:
    client = api.client("run")
    [run] = await started(client)
    [told] = await over(client, [run])
    parts = {}
    for name, address in told["links"].items():
        if name != "events":
            answer = await client.get(address)
            assert answer.status_code == 200, (name, answer.text)
            parts[name] = answer.json()
    rules = parts["results"]["rules"]
    assert [(rule["status"], bool(rule["reason"])) for rule in rules] == [("passed", True)] * 2
    [match] = rules[1]["matches"]
    assert match["value"][slice(*match["span"])] == "mended"
    assert [phase["name"] for phase in parts["phases"]["phases"]][:2] == ["preflight", "provision"]
    assert [grade["cause"] for grade in parts["grades"]["grades"]] == ["run"]
    assert parts["hosts"]["hosts"][0]["facts"]["name"] == "web-01"
    assert parts["hosts"]["answers"][0]["run"] == "mended?"
    assert "setup" in [phase["phase"] for phase in parts["hosts"]["steps"]]
    assert parts["record"]["format"] == "opsdrill.job/1"
    assert parts["scenario"]["scenario"]["key"] == "drill"
    whole = (await client.get(f"{RUNS}/{run}/grades/1")).json()
    assert whole["rules"] == rules
    assert (await client.get(f"{RUNS}/{run}/grades/2")).status_code == 404


async def test_evidence_is_paged_searched_and_cut(api: Api) -> None:
    client = api.client("run")
    [run] = await started(client, "bad")
    await over(client, [run])
    address = f"{RUNS}/{run}/evidence"
    items, cursor = [], None
    while True:
        params = {"limit": "2"} | ({"cursor": cursor} if cursor else {})
        told = (await client.get(address, params=params)).json()
        assert told["sealed"]
        items += told["items"]
        cursor = told["cursor"]
        if cursor is None:
            break
    assert [item["number"] for item in items] == list(range(len(items)))
    assert [item["kind"] for item in items] == ["task", "call", "resolution"]
    call = items[1]
    assert call["cut"] == {"output": 20_000}
    assert len(call["content"]["output"]) == 4000
    whole = (await client.get(f"{address}/1")).json()
    assert (len(whole["content"]["output"]), whole["cut"]) == (20_000, {})

    async def found(**wanted: str) -> list[str]:
        answer = await client.get(address, params=wanted)
        return [item["kind"] for item in answer.json()["items"]]

    assert await found(text="LOOK AT") == ["task"]
    assert await found(kind="call") == ["call"]
    assert await found(host="db-01") == []
    assert (await client.get(f"{address}/99")).status_code == 404
    assert (await client.get(address, params={"cursor": "x"})).status_code == 400


async def test_support_files_are_had_by_digest_of_the_same_run_alone(api: Api) -> None:
    client = api.client("run")
    [run] = await started(client)
    await over(client, [run])
    files = (await client.get(f"{RUNS}/{run}/files")).json()
    [support] = files["support"]
    assert (support["source"], support["size"]) == ("app.conf", 10)
    answer = await client.get(f"{RUNS}/{run}/files/{support['digest']}")
    assert answer.content == b"port = 80\n"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-type"] == "application/octet-stream"
    other = api.service.store.put_file(b"of another run")
    assert (await client.get(f"{RUNS}/{run}/files/{other}")).status_code == 404
    for trick in ("..%2f..%2fhome%2fstore.db", "app.conf", "%2fetc%2fpasswd", "0" * 63):
        refused = await client.get(f"{RUNS}/{run}/files/{trick}")
        assert refused.status_code in (404, 422), trick


async def test_the_record_of_a_run_that_ended_before_its_agent_says_why(api: Api) -> None:
    """Law 3: it names the same cause and the same fault as the verdict."""
    client = api.client("run")
    [run] = await started(client, lab="broken")
    await over(client, [run])
    told = (await client.get(f"{RUNS}/{run}")).json()
    record = (await client.get(f"{RUNS}/{run}/record")).json()
    assert record["job"] is None
    assert told["reason"] and record["no_job_reason"] == told["reason"]
    assert record["stop"] == {"reason": told["reason"], "fault": told["fault"]}
    assert record["coverage"]["default"]["state"] == "whole"


@pytest.mark.parametrize(
    "part",
    ["", "/results", "/grades", "/grades/1", "/evidence", "/evidence/0", "/differences",
     "/record", "/files",
     f"/files/{'0' * 64}", "/phases", "/hosts", "/scenario", "/events"],
)  # fmt: skip
async def test_a_run_that_is_not_there_is_told_as_such(api: Api, part: str) -> None:
    answer = await api.client("read").get(f"{RUNS}/nothing{part}")
    assert answer.status_code == 404
    assert answer.json()["detail"] == "there is no run 'nothing'"
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("what", ["cancel", "retry"])
async def test_what_is_not_there_is_neither_cancelled_nor_retried(api: Api, what: str) -> None:
    for noun in ("runs", "batches"):
        answer = await api.client("run").post(f"/api/v1/{noun}/nothing/{what}")
        assert answer.status_code == 404


async def test_a_running_run_is_cancelled_and_then_deleted(api: Api) -> None:
    client, editor = api.client("run"), api.client("edit")
    [run] = await started(client, "slow")
    await working(client, run)
    assert (await editor.delete(f"{RUNS}/{run}")).status_code == 409
    answer = await client.post(f"{RUNS}/{run}/cancel")
    assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")
    again = await client.post(f"{RUNS}/{run}/cancel")
    assert (again.status_code, again.json()["state"]) == (200, "cancelled")
    assert (await editor.delete(f"{RUNS}/{run}")).status_code == 204
    assert (await editor.delete(f"{RUNS}/{run}")).status_code == 404
    assert (await client.get(f"{RUNS}/{run}")).status_code == 404


async def test_only_what_errored_is_retried_and_only_once(api: Api) -> None:
    client = api.client("run")
    judged = await started(client, "good", "bad")
    [errored] = await started(client, lab="broken")
    found = await over(client, [*judged, errored])
    assert [run["verdict"] for run in found] == ["passed", "failed", "error"]
    for run, why in zip(judged, ("passed", "failed"), strict=True):
        refused = await client.post(f"{RUNS}/{run}/retry")
        assert refused.status_code == 409
        assert why in refused.json()["detail"]
    both = await asyncio.gather(*(client.post(f"{RUNS}/{errored}/retry") for _ in range(2)))
    answer, other = sorted(both, key=lambda one: one.status_code)
    assert (answer.status_code, other.status_code) == (202, 409)
    again = answer.json()["run"]
    assert (await over(client, [again]))[0]["labels"]["retry_of"] == errored
    twice = await client.post(f"{RUNS}/{errored}/retry")
    assert twice.status_code == 409
    assert again in twice.json()["detail"]


async def test_a_run_that_goes_on_is_not_retried(api: Api) -> None:
    client = api.client("run")
    [run] = await started(client, "slow")
    await working(client, run)
    refused = await client.post(f"{RUNS}/{run}/retry")
    assert refused.status_code == 409
    await client.post(f"{RUNS}/{run}/cancel")


async def test_a_batch_is_read_cancelled_and_its_errors_retried(api: Api) -> None:
    client = api.client("run")
    answer = await client.post(RUNS, json=order("good", lab="broken", repeat=2))
    batch = answer.json()["batch"]
    await over(client, [run["id"] for run in answer.json()["runs"]])
    told = (await client.get(f"/api/v1/batches/{batch}")).json()
    assert (told["runs"], told["states"], told["verdicts"]) == (2, {"done": 2}, {"error": 2})
    retried = await client.post(f"/api/v1/batches/{batch}/retry")
    assert retried.status_code == 202
    again = retried.json()["runs"]
    assert len(again) == 2
    await over(client, again)
    assert (await client.post(f"/api/v1/batches/{batch}/retry")).json()["runs"] != again

    slow = await client.post(RUNS, json=order("slow", repeat=3))
    await working(client, slow.json()["runs"][0]["id"])
    stopped = await client.post(f"/api/v1/batches/{slow.json()['batch']}/cancel")
    assert set(stopped.json()["cancelled"]) == {run["id"] for run in slow.json()["runs"]}
    nothing = await client.post(f"/api/v1/batches/{slow.json()['batch']}/retry")
    assert nothing.status_code == 409
    listed = (await client.get("/api/v1/batches")).json()["batches"]
    assert [one["id"] for one in listed] == [slow.json()["batch"], batch]


async def test_a_batch_works_no_more_runs_at_once_than_was_asked(api: Api) -> None:
    client = api.client("run")
    first = await started(client, "slow", repeat=2, parallel=1)
    await working(client, first[0])
    [other] = await started(client, "good")
    assert (await over(client, [other]))[0]["verdict"] == "passed"
    assert (await client.get(f"{RUNS}/{first[1]}")).json()["state"] == "planned"
    await asyncio.gather(*(client.post(f"{RUNS}/{run}/cancel") for run in first))


async def test_agents_and_labs_are_listed_without_what_they_stand_for(api: Api) -> None:
    client = api.client("read")
    agents = (await client.get("/api/v1/agents")).json()["agents"]
    assert {(agent["name"], agent["adapter"]) for agent in agents} == {
        ("noop", "noop"), ("reference", "reference"), ("good", "script"), ("bad", "script"),
        ("slow", "script"), ("shell", "command"),
    }  # fmt: skip
    assert "good.yaml" not in str(agents)
    labs = (await client.get("/api/v1/labs")).json()["labs"]
    assert [lab["name"] for lab in labs] == ["broken", "container", "practice", "sandbox"]
    assert [lab["name"] for lab in labs if lab["default"]] == ["sandbox"]
    assert str(api.service.place.home) not in str(labs)


async def test_the_health_of_a_lab_is_found_out_by_trying(api: Api) -> None:
    client = api.client("run")
    told = (await client.get("/api/v1/labs/practice/health")).json()
    assert (told["driver"], told["usable"], told["made"]) == ("fake", True, True)
    assert (await client.get("/api/v1/labs/nothing/health")).status_code == 404
    assert (await client.get("/api/v1/labs/local/health")).status_code == 404
    assert (await api.client("read").get("/api/v1/labs/practice/health")).status_code == 403
    assert (await client.get("/api/v1/leases")).json() == {"leases": []}


async def test_sets_of_runs_are_compared_regressions_first(api: Api) -> None:
    client = api.client("run")
    before = await started(client, "good", repeat=2, labels={"version": "1"})
    after = await started(client, "bad", repeat=2, labels={"version": "2"})
    await over(client, [*before, *after])
    sets = [
        {"name": "before", "labels": {"version": "1"}},
        {"name": "after", "labels": {"version": "2"}},
    ]
    asked = {"sets": sets, "by": ["scenario"]}
    told = (await client.post("/api/v1/comparisons", json=asked)).json()
    [line] = told["lines"]
    assert line["change"] == "worse"
    assert line["cells"]["before"]["pass_rate"] == 1.0
    assert line["cells"]["after"]["failed"] == 2
    flips = {flip["rule"].split("] ")[1]: flip for flip in line["flips"]}
    assert flips["mended (host_state)"]["before"] == "2 of 2 passed"
    assert flips["mended (host_state)"]["after"] == "0 of 2 passed"
    assert set(flips["mended (host_state)"]["runs"]) == set(after)
    turned = {**asked, "sets": sets[::-1]}
    assert (await client.post("/api/v1/comparisons", json=turned)).json()["lines"][0][
        "change"
    ] == "better"
    same = {"sets": [{"name": "a", "runs": before}, {"name": "b", "runs": before[:1]}]}
    assert (await client.post("/api/v1/comparisons", json=same)).json()["lines"][0][
        "change"
    ] == "same"


@pytest.mark.parametrize(
    ("sets", "paths"),
    [
        ([{"name": "a", "runs": ["nothing"]}, {"name": "b"}], ["sets[0].runs[0]"]),
        ([{"name": "a"}, {"name": "a"}], ["sets[1].name"]),
        ([{"name": "a"}], ["sets"]),
        ([{"name": "a"}, {"name": "b", "since": 0.5}], ["sets[1].since"]),
        ([{"name": "a"}, {"name": "b", "since": "0001-01-01T00:00:00Z"}], ["sets[1].since"]),
    ],
)
async def test_what_is_wrong_with_a_comparison_has_its_path(
    api: Api, sets: list[dict[str, object]], paths: list[str]
) -> None:
    """[A6.1]"""
    answer = await api.client("read").post("/api/v1/comparisons", json={"sets": sets})
    assert answer.status_code == 422
    assert [item["path"] for item in answer.json()["errors"]] == paths


async def test_a_trend_keeps_errors_apart(api: Api) -> None:
    client = api.client("run")
    runs = await started(client, "good", "bad")
    runs += await started(client, lab="broken")
    await over(client, runs)
    told = (await client.get("/api/v1/trends", params={"scenario": "drill", "by": "month"})).json()
    [point] = told["points"]
    assert (point["runs"], point["passed"], point["failed"], point["error"]) == (3, 1, 1, 1)
    assert (point["pass_rate"], point["error_rate"]) == (0.5, 0.3333)
    none = (await client.get("/api/v1/trends", params={"tag": "large"})).json()
    assert none["points"] == []


async def test_a_run_deleted_meanwhile_stops_no_retry_of_its_batch(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = api.client("admin")
    runs = await started(client, repeat=3, lab="broken")
    batch = (await over(client, runs))[0]["batch"]
    engine = api.service.engine
    retry = engine.retry

    async def retried(run: str) -> str:
        if run == runs[0]:
            assert (await client.delete(f"{RUNS}/{runs[1]}")).status_code == 204
        return await retry(run)

    monkeypatch.setattr(engine, "retry", retried)
    answer = await client.post(f"/api/v1/batches/{batch}/retry")
    assert answer.status_code == 202, answer.text
    again = await over(client, answer.json()["runs"])
    assert [run["labels"]["retry_of"] for run in again] == [runs[0], runs[2]]


async def test_a_run_deleted_before_it_began_is_over(api: Api) -> None:
    """It is not there to be cancelled, and nobody waits for it."""
    client = api.client("admin")
    slow = await started(client, "slow", repeat=4)
    await working(client, slow[0])
    assert (await client.delete(f"{RUNS}/{slow[3]}")).status_code == 204
    assert (await client.post(f"{RUNS}/{slow[3]}/cancel")).status_code == 404
    assert slow[3] not in dict(await api.service.engine.list())
    assert (await client.delete(f"{RUNS}/{slow[2]}")).status_code == 204
    for run in slow[:2]:
        assert (await client.post(f"{RUNS}/{run}/cancel")).json()["state"] == "cancelled"
    async with asyncio.timeout(20):
        while await api.service.engine.list():
            await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("address", "path", "words"),
    [
        ("/api/v1/runs?scenarios=drill", "query.scenarios", "no parameter"),
        ("/api/v1/runs?verdict=failed&verdict=passed", "query.verdict", "once"),
        ("/api/v1/runs?%00=1", 'query["\\u0000"]', "no parameter"),
        ("/api/v1/tokens?limit=5", "query.limit", "known: none"),
    ],
)
async def test_a_query_is_read_to_the_letter(api: Api, address: str, path: str, words: str) -> None:
    """[A6.1] A filter that is misspelt lets nothing through, rather than everything."""
    answer = await api.client("admin").get(address)
    assert answer.status_code == 422
    [item] = answer.json()["errors"]
    assert item["path"] == path
    assert words in item["message"]


async def test_what_may_stand_in_a_query_often_may(api: Api) -> None:
    answer = await api.client("read").get("/api/v1/runs?label=a:1&label=b:2&limit=5")
    assert (answer.status_code, answer.json()["count"]) == (200, 0)
