"""The plain pages: what they show, and that whatever others named stays text on each of them."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import httpx
import pytest
from tests.unit.api.drills import order, over, started
from tests.unit.web.conftest import Pages, Read

from opsdrill.evidence.recorder import assemble
from opsdrill.model.job import JobRecord
from opsdrill.model.result import Completion, Grade, Result
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.model.ticket import Ticket
from opsdrill.store.access import Token
from opsdrill.store.cursor import encode
from opsdrill.web.pages.batches import counts
from opsdrill.web.pages.runs import Filters
from opsdrill.web.render import shown

HOSTILE = (
    "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>${{ 7*7 }}"
    "\x1b[31mred\x1b[0m\x07\u202eevil\u2066\u200b"
)
NUL = "a\0b"
DANGER = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202e\u2066]")


def checked(page: str) -> Read:
    """A page on which nothing of others acts."""
    read = Read(page)
    assert read.wrong == []
    assert DANGER.search(page) is None
    assert "$49" not in page
    return read


def hostile_scenario() -> Scenario:
    data = {
        "key": "hostile",
        "title": HOSTILE,
        "description": HOSTILE,
        "tags": [HOSTILE],
        "ticket_title": HOSTILE,
        "ticket_body": HOSTILE,
        "hosts": ["web-01"],
        "operational_rules": [HOSTILE],
        "setup": [{"run": "echo '<b>'\u202e"}],
        "ready": [{"run": "test '<b>'\u202e"}],
        "restore": [{"run": "echo '<b>'\u202e"}],
        "reference": [{"run": "echo '<b>'\u202e"}],
        "replies": [{"when": "<b>", "body": HOSTILE}],
        "files": [{"from": "<b>\u202e", "to": "/etc/<b>\u202e"}],
        "validation": [
            {"label": HOSTILE, "validator": "host_state", "run": "echo '<b>'\u202e"},
            {"label": HOSTILE, "validator": "pattern_match", "where": "gateway_summary",
             "pattern": "<b>"},
            {"label": HOSTILE, "validator": "turns", "turns": [{"hosts": ["web-01"]},
                                                               {"at_least": 1}]},
            {"label": HOSTILE, "validator": "task_count", "min": 1, "required": False},
        ],
    }  # fmt: skip
    return Scenario.model_validate(data)


def hostile_run(number: int = 0) -> tuple[RunSpec, JobRecord, Result, Grade]:
    now = datetime.now(UTC)
    scenario = hostile_scenario().model_copy(update={"title": HOSTILE + NUL, "files": ()})
    spec = RunSpec(
        id=f"20261130-000000-{number:08x}",
        batch="hostile-batch",
        scenario=scenario,
        scenario_version="0" * 64,
        agent=AgentChoice(adapter=HOSTILE, argument=NUL),
        lab=LabChoice(name=HOSTILE, driver="fake"),
        labels={HOSTILE: HOSTILE},
        created_at=now - timedelta(minutes=number),
    )
    grade = Grade(
        verdict="error",
        reason=HOSTILE + NUL,
        fault="author",
        completion=Completion(status="failed", reason=HOSTILE),
    )
    result = Result(
        run=spec.id,
        scenario=scenario.key,
        agent=str(spec.agent),
        scenario_version=spec.scenario_version,
        state="done",
    ).under(grade)
    record = assemble(Ticket(title=HOSTILE, body=HOSTILE), [])
    return spec, record, result, grade


async def hostile_place(pages: Pages) -> None:
    """Everything that others can name, named as badly as it can be."""
    store = pages.service.store
    store.shelf().create(hostile_scenario(), "0" * 64, [], by=HOSTILE)
    spec, record, result, grade = hostile_run()
    store.add(spec, record, [], result, grade)
    now = datetime.now(UTC)
    store.access().add_token(Token("abc", HOSTILE + NUL, "read", now, by=HOSTILE), "f" * 64)
    labs = pages.service.place.home / "labs"
    (labs / "<b>\u202e.yaml").write_text("driver: fake\noptions: {answers: nowhere.json}\n")
    (labs / "broken<i>.yaml").write_text(f"hosts: {json.dumps({HOSTILE: 1})}\n")


@pytest.mark.parametrize(
    "path",
    ["/runs", "/scenarios", "/scenarios/hostile", "/start", "/batches", "/batches/hostile-batch",
     "/hosts", "/settings", "/hosts/leases", "/runs/rows?run=20261130-000000-00000000",
     "/start?scenario=hostile&agent=x"],
)  # fmt: skip
async def test_what_others_named_is_text_on_every_page(pages: Pages, path: str) -> None:
    await hostile_place(pages)
    async with pages.logged_in() as (browser, _):
        answer = await browser.get(path)
        assert answer.status_code == 200
        read = checked(answer.text)
        if path not in ("/hosts/leases",):
            assert "<b>" in read.text or shown(HOSTILE)[:20] in read.text


@pytest.mark.parametrize(
    "path",
    ["/runs?{}", "/runs?scenario={}", "/runs?agent={}", "/runs?batch={}", "/runs?label={}",
     "/runs?since={}", "/runs?state={}", "/runs?cursor={}", "/scenarios?search={}",
     "/scenarios?tag={}", "/scenarios?cursor={}", "/scenarios/{}", "/start?scenario={}",
     "/start?agent={}", "/start?repeat={}", "/start?labels={}", "/batches/{}", "/batches?cursor={}",
     "/log-in?next={}", "/hosts/{}/check", "/{}"],
)  # fmt: skip
async def test_what_an_address_says_is_text_on_every_page(pages: Pages, path: str) -> None:
    async with pages.logged_in() as (browser, _):
        for text in (HOSTILE, NUL, "%00", "\ud800", "x" * 5000):
            coded = str(httpx.QueryParams({"x": text.encode("utf-8", "surrogatepass")}))
            answer = await browser.get(path.format(coded[2:]))
            assert answer.status_code in (200, 303, 400, 404, 422), answer.text
            if answer.status_code != 303:
                checked(answer.text)


async def test_forms_that_cannot_be_say_so_and_keep_what_was_written(pages: Pages) -> None:
    async with pages.logged_in() as (browser, csrf):
        for form, words in (
            ({}, "scenarios"),
            ({"scenario": "drill"}, "agents"),
            ({"scenario": "drill", "agent": "nobody"}, "there is no agent named 'nobody'"),
            ({"more": "nothing", "agent": "good"}, "there is no scenario named 'nothing'"),
            ({"more": "../etc", "agent": "good"}, "there is no scenario named '../etc'"),
            ({"more": "drill", "agent": "good", "lab": "local"}, "there is no lab named 'local'"),
            ({"more": "drill", "agent": "good", "labels": "x"}, "'x' is not NAME:VALUE"),
            ({"more": "drill", "agent": "good", "labels": "a b: c"}, "labels"),
            ({"more": "drill", "agent": "good", "repeat": "-1"}, "repeat"),
            ({"more": "drill", "agent": "good", "repeat": "99999"}, "repeat"),
            ({"more": HOSTILE, "agent": HOSTILE, "lab": HOSTILE, "labels": HOSTILE}, "red"),
        ):
            answer = await browser.post("/start", data={**form, "csrf": csrf})
            assert answer.status_code == 422
            read = checked(answer.text)
            assert words.casefold() in read.text.casefold()
            assert form.get("more", "")[:9] in read.text


async def test_a_form_sent_twice_starts_its_runs_once(pages: Pages) -> None:
    async with pages.logged_in("run") as (browser, csrf):
        page = (await browser.get("/start")).text
        [key] = re.findall(r'name="key" value="([^"]+)"', page)
        form = {"scenario": "drill", "agent": "good", "lab": "practice", "repeat": "2",
                "labels": "team:web\nkind: nightly", "key": key, "csrf": csrf}  # fmt: skip
        first, second = [await browser.post("/start", data=form) for _ in range(2)]
        assert first.status_code == second.status_code == 303
        assert first.headers["location"] == second.headers["location"]
        batch = first.headers["location"].removeprefix("/batches/")
        assert pages.service.store.batch(batch).runs == 2
        rows = await _over(browser, batch)
        assert {row["verdict"] for row in rows} == {"passed"}
        found = (await browser.get("/runs?label=kind:nightly&verdict=passed")).text
        assert found.count('name="run"') == 2
        assert (await browser.get("/runs?label=kind:weekly")).text.count('name="run"') == 0


async def _over(browser: httpx.AsyncClient, batch: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    async with asyncio.timeout(60):
        while not rows or any(row["state"] in ("planned", "running") for row in rows):
            rows = (await browser.get(f"/api/v1/runs?batch={batch}")).json()["runs"]
            await asyncio.sleep(0.05)
    return rows


async def test_home_shows_the_first_steps_until_something_was_run(pages: Pages) -> None:
    async with pages.logged_in() as (browser, _):
        assert "Three steps to the first verdict" in (await browser.get("/")).text
        await over(browser, await _started(pages, browser))
        answer = await browser.get("/")
        assert (answer.status_code, answer.headers["location"]) == (303, "/runs")


async def _started(pages: Pages, browser: httpx.AsyncClient) -> list[str]:
    browser.headers["authorization"] = f"Bearer {pages.secrets['run']}"
    try:
        return await started(browser)
    finally:
        del browser.headers["authorization"]


async def test_pages_of_runs_follow_each_other(pages: Pages) -> None:
    """By cursor; filters and order stay in the address."""
    store = pages.service.store
    for number in range(53):
        spec, record, result, grade = hostile_run(number)
        store.add(spec, record, [], result, grade)
    async with pages.logged_in() as (browser, _):
        seen: list[str] = []
        path = "/runs?verdict=error&sort=created_at"
        while path:
            page = (await browser.get(path)).text
            seen += re.findall(r'name="run" value="([^"]+)"', page)
            ways = re.findall(r'rel="next" href="([^"]+)"', page)
            path = ways[0].replace("&amp;", "&") if ways else ""
            assert not path or ("verdict=error" in path and "sort=created_at" in path)
        assert seen == [f"20261130-000000-{number:08x}" for number in reversed(range(53))]


async def test_rows_that_go_on_are_told_anew_until_they_are_over(pages: Pages) -> None:
    async with pages.logged_in() as (browser, _):
        [run] = await _started(pages, browser)
        await over(browser, [run])
        part = (await browser.get(f"/runs/rows?run={run}&run=deleted")).text
        assert f'<tr id="row-{run}" hx-swap-oob="true">' in part
        assert 'id="fresh"' in part
        assert "hx-get" not in part


async def test_newer_runs_are_counted_from_the_top_of_the_table(pages: Pages) -> None:
    store = pages.service.store
    specs = [hostile_run(number) for number in range(4)]
    ids = [spec.id for spec, *_ in specs]
    for spec, record, result, grade in specs:  # later numbers are older
        store.add(spec, record, [], result, grade)
    async with pages.logged_in() as (browser, _):
        first = (await browser.get("/runs")).text
        assert f"newest={ids[0]}" in first and 'id="news"' not in first

        async def told(query: str) -> str | None:
            part = (await browser.get(f"/runs/rows?{query}")).text
            found = re.search(r'id="news"[^>]*>([^<]+)</a>', part)
            return found[1] if found else None

        assert await told(f"newest={ids[0]}") is None
        assert await told(f"newest={ids[1]}") == "One newer run: show it"
        assert await told(f"newest={ids[3]}&verdict=error") == "3 newer runs: show them"
        assert await told("newest=") == "4 newer runs: show them"
        assert await told("newest=&verdict=passed") is None
        assert await told("newest=deleted") == "The table has changed: show it as it is now"
        for no_top in ("/runs?sort=created_at", "/runs?cursor=" + quote(encode(0, 0))):
            assert "newest=" not in (await browser.get(no_top)).text


async def test_what_cannot_be_taken_back_is_asked_first(pages: Pages) -> None:
    async with pages.logged_in() as (browser, csrf):
        pages.service.store.shelf().create(hostile_scenario(), "0" * 64, [])
        for path in ("/scenarios/hostile/delete", "/settings/tokens/{}/revoke"):
            token = pages.service.access.create("x", "read", days=None, by=None).token
            place = path.format(token.id)
            asked = await browser.post(place, data={"csrf": csrf})
            assert asked.status_code == 200
            assert 'name="sure" value="yes"' in asked.text
            done = await browser.post(place, data={"csrf": csrf, "sure": "yes"})
            assert done.status_code == 303
            assert (await browser.post(place, data={"csrf": csrf})).status_code in (200, 404)
        assert (await browser.get("/scenarios/hostile")).status_code == 404
        states = {token.name: pages.service.access.state(token)
                  for token in pages.service.access.tokens()}  # fmt: skip
        assert states["x"] == "revoked"


async def test_a_batch_is_stopped_and_only_what_errored_is_retried(pages: Pages) -> None:
    async with pages.logged_in() as (browser, csrf):
        browser.headers["authorization"] = f"Bearer {pages.secrets['run']}"
        batch = (await browser.post("/api/v1/runs", json=order("slow"))).json()["batch"]
        del browser.headers["authorization"]
        form = {"csrf": csrf, "sure": "yes"}
        assert (
            "Stop the 1 runs"
            in (await browser.post(f"/batches/{batch}/cancel", data={"csrf": csrf})).text
        )
        assert (await browser.post(f"/batches/{batch}/cancel", data=form)).status_code == 303
        assert counts(pages.service.store.batch(batch)) == [("cancelled", 1)]
        answer = await browser.post(f"/batches/{batch}/retry", data=form)
        assert answer.status_code == 409
        assert "errored" in answer.text
        assert (await browser.post("/batches/nothing/cancel", data=form)).status_code == 404


async def test_every_scenario_that_comes_along_can_be_read(pages: Pages) -> None:
    async with pages.logged_in("read") as (browser, _):
        listing = (await browser.get("/scenarios")).text
        keys = set(re.findall(r'href="/scenarios/([a-z0-9-]+)"', listing))
        assert {"drill", "full-disk"} <= keys
        for key in keys:
            answer = await browser.get(f"/scenarios/{key}")
            assert answer.status_code == 200
            checked(answer.text)
            assert ">Run it<" not in answer.text


async def test_the_words_that_the_start_form_suggests_name_a_scenario(pages: Pages) -> None:
    async with pages.logged_in() as (browser, _):
        page = (await browser.get("/start")).text
        found = re.search(r'placeholder="(\S+) tag:', page)
        assert found
        assert f'name="scenario" value="{found[1]}"' in page


async def test_a_scenario_with_edited_rules_says_how_its_runs_are_graded_again(
    pages: Pages,
) -> None:
    async with pages.logged_in() as (browser, csrf):
        browser.headers["x-csrf-token"] = csrf
        body = (await browser.get("/api/v1/scenarios/drill")).json()["scenario"]
        body = {**body, "key": "edited", "files": []}
        made = await browser.post("/api/v1/scenarios", json=body)
        assert made.status_code == 201, made.text
        order = {"scenarios": ["edited"], "agents": ["bad"]}
        answer = await browser.post("/api/v1/runs", json=order)
        assert answer.status_code < 300, answer.text
        assert "A run keeps its grade" not in (await browser.get("/scenarios/edited")).text
        changed = await browser.put(
            "/api/v1/scenarios/edited",
            json={**body, "title": "Edited"},
            headers={"If-Match": made.headers["etag"]},
        )
        assert changed.status_code == 200, changed.text
        assert "A run keeps its grade" in (await browser.get("/scenarios/edited")).text


async def test_earlier_versions_of_a_scenario_can_be_read(pages: Pages) -> None:
    shelf = pages.service.store.shelf()
    first = hostile_scenario().model_copy(update={"title": "The first", "files": ()})
    shelf.create(first, "1" * 64, [])
    shelf.replace("hostile", first.model_copy(update={"title": "The second"}), "2" * 64, [])
    async with pages.logged_in() as (browser, _):
        assert "The second" in (await browser.get("/scenarios/hostile")).text
        page = (await browser.get("/scenarios/hostile?version=1")).text
        assert "The first" in page
        assert "This is version 1" in page
        assert (await browser.get("/scenarios/hostile?version=9")).status_code == 404


async def test_a_broken_scenario_says_what_is_wrong_and_names_no_folder(pages: Pages) -> None:
    folder = pages.service.place.folder / "scenarios" / "bad"
    folder.mkdir()
    (folder / "scenario.yaml").write_text("key: bad\ntitle: Bad\nhosts: [a b]\n")
    async with pages.logged_in() as (browser, _):
        listing = (await browser.get("/scenarios")).text
        assert "broken" in listing
        answer = await browser.get("/scenarios/bad")
        assert answer.status_code == 422
        for page in (listing, answer.text):
            assert str(pages.service.place.folder) not in page
        assert "ticket_title" in answer.text


async def test_a_new_token_is_shown_once(pages: Pages) -> None:
    async with pages.logged_in() as (browser, csrf):
        form = {"csrf": csrf, "name": "n<b>", "role": "run", "days": "3"}
        page = (await browser.post("/settings/tokens", data=form)).text
        [secret] = re.findall(r'value="(od_[^"]+)"', page)
        assert secret not in (await browser.get("/settings")).text
        assert pages.service.access.by_token(secret)
        for wrong in ({"name": ""}, {"role": "god"}, {"days": "0"}, {"days": "x"},
                      {"name": "a\0b"}):  # fmt: skip
            answer = await browser.post("/settings/tokens", data={**form, **wrong})
            assert answer.status_code == 422
            checked(answer.text)


async def test_tokens_are_shown_to_admins_alone(pages: Pages) -> None:
    async with pages.logged_in("edit") as (browser, _):
        page = (await browser.get("/settings")).text
        assert "admin's affair" in Read(page).text
        assert "od_" not in page


def test_filters_stay_in_the_address() -> None:
    filters = Filters(scenario="a&b", label="x:y", sort="created_at")
    assert filters.query() == "scenario=a%26b&label=x%3Ay&sort=created_at"
    assert filters.query(cursor="c") == f"{filters.query()}&cursor=c"
    assert Filters().query() == ""
    assert (Filters().any, filters.any) == (False, True)


async def test_a_reason_names_no_folder_of_the_server(pages: Pages) -> None:
    spec, record, result, grade = hostile_run()
    folder = str(pages.service.place.folder)
    named = {"reason": f"{folder}/scenarios/x cannot be read"}
    told = grade.model_copy(update=named)
    pages.service.store.add(spec, record, [], result.model_copy(update=named), told)
    async with pages.logged_in() as (browser, _):
        for path in ("/runs", f"/runs/rows?run={spec.id}", "/batches/hostile-batch"):
            page = (await browser.get(path)).text
            assert "x cannot be read" in page
            assert folder not in page
