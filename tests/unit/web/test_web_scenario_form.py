"""The scenario form without scripts: what it shows, keeps, refuses; hostile text stays text."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.web.conftest import Pages, Read
from tests.unit.web.test_web_pages import HOSTILE, checked

from opsdrill.app.safe_text import UNSAFE_IN_BLOCK
from opsdrill.web.pages.scenario_form import written_out

BODY: dict[str, Any] = {
    "key": "written",
    "title": "Written",
    "ticket_title": "It is broken",
    "hosts": ["web-01"],
    "validation": [{"label": "mended", "validator": "host_state", "run": "mended?"}],
}


def area(page: str) -> str:
    """The text that a browser has in the field."""
    found = re.search(r"<textarea[^>]*>\n?(.*?)</textarea>", page, re.S)
    assert found is not None
    return html.unescape(found[1])


def hidden(page: str, name: str) -> str:
    found = re.search(f'name="{name}" value="([^"]*)"', page)
    assert found is not None
    return html.unescape(found[1])


@given(st.text(), st.text())
def test_a_text_in_the_field_is_the_same_data_with_nothing_unseen(key: str, value: str) -> None:
    text = json.dumps({key: value}, ensure_ascii=False, indent=2)
    sent = str(written_out(text))
    assert "<" not in sent and UNSAFE_IN_BLOCK.search(sent) is None
    assert json.loads(html.unescape(sent)) == {key: value}


async def test_a_scenario_is_kept_changed_and_its_versions_compared(pages: Pages) -> None:
    async with pages.logged_in("edit") as (browser, csrf):
        first = await browser.get("/scenarios/new")
        assert json.loads(area(first.text))["hosts"] == ["web-01"]
        form = {"csrf": csrf, "text": json.dumps(BODY)}
        answer = await browser.post("/scenarios/new", data=form)
        assert (answer.status_code, answer.headers["location"]) == (303, "/scenarios/written")
        page = (await browser.get("/scenarios/written/edit")).text
        assert json.loads(area(page))["title"] == "Written"
        text = area(page).replace("mended?", "mended!")
        form = {"csrf": csrf, "text": text, "etag": hidden(page, "etag"), "number": "1"}
        answer = await browser.post("/scenarios/written/edit", data=form)
        assert answer.status_code == 303, answer.text
        changes = checked((await browser.get("/scenarios/written/changes")).text).text
        assert "rule 0: mended" in changes and "mended!" in changes
        answer = await browser.post("/scenarios/written/edit", data=form)
        assert answer.status_code == 412
        assert area(answer.text).strip() == text.strip()
        assert "saved version 2 of it meanwhile" in checked(answer.text).text


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("{", 422, "JSON"),
        (json.dumps({**BODY, "title": ""}), 422, "must not be blank"),
        (json.dumps({**BODY, "key": "drill"}), 409, "is there already"),
        (json.dumps({**BODY, "key": "new"}), 422, "a name of the API and the pages"),
        (json.dumps({**BODY, "key": "schema"}), 422, "a name of the API and the pages"),
        (json.dumps({**BODY, "title": HOSTILE, "x": HOSTILE}), 422, "is not a known key"),
        ("", 422, ""),
    ],
)
async def test_what_is_refused_stays_in_the_field(
    pages: Pages, text: str, status: int, said: str
) -> None:
    async with pages.logged_in("edit") as (browser, csrf):
        answer = await browser.post("/scenarios/new", data={"csrf": csrf, "text": text})
        assert answer.status_code == status, answer.text
        assert said in checked(answer.text).text
        assert area(answer.text) == text


async def test_a_copy_has_the_files_of_what_it_copies(pages: Pages) -> None:
    async with pages.logged_in("edit") as (browser, csrf):
        page = (await browser.get("/scenarios/new?from=drill")).text
        assert json.loads(area(page))["key"] == "drill-copy"
        form = {"csrf": csrf, "text": area(page), "source": hidden(page, "source")}
        answer = await browser.post("/scenarios/new", data=form)
        assert answer.headers["location"] == "/scenarios/drill-copy"
        told = (await browser.get("/api/v1/scenarios/drill-copy")).json()
        assert [one["path"] for one in told["files"]] == ["app.conf"]


async def test_hostile_scenarios_stay_text_in_form_and_changes(pages: Pages) -> None:
    rules = [{"label": HOSTILE, "validator": "host_state", "run": HOSTILE}]
    hostile = {**BODY, "title": HOSTILE, "tags": [HOSTILE], "validation": rules}
    async with pages.logged_in("edit") as (browser, csrf):
        form = {"csrf": csrf, "text": json.dumps(hostile)}
        assert (await browser.post("/scenarios/new", data=form)).status_code == 303
        page = (await browser.get("/scenarios/written/edit")).text
        assert json.loads(area(page))["title"] == HOSTILE
        read = checked(page)
        assert "alert(1)" in read.text
        form = {"csrf": csrf, "text": json.dumps(BODY), "etag": hidden(page, "etag")}
        assert (await browser.post("/scenarios/written/edit", data=form)).status_code == 303
        assert "alert(1)" in checked((await browser.get("/scenarios/written/changes")).text).text
        part = await browser.post(
            "/scenarios/written/meanwhile",
            data={"csrf": csrf, "text": json.dumps(hostile), "base": "1"},
        )
        assert "alert(1)" in checked(part.text).text


async def test_a_scenario_in_a_file_is_not_edited(pages: Pages) -> None:
    async with pages.logged_in("edit") as (browser, csrf):
        for answer in (
            await browser.get("/scenarios/drill/edit"),
            await browser.post("/scenarios/drill/edit", data={"csrf": csrf, "text": "{}"}),
        ):
            assert answer.status_code == 409
            assert "only read here" in Read(answer.text).text


@pytest.mark.parametrize("path", ["/scenarios/new", "/scenarios/drill/edit"])
async def test_the_form_takes_the_role_edit_and_a_token_against_forgery(
    pages: Pages, path: str
) -> None:
    async with pages.logged_in("run") as (browser, csrf):
        assert (await browser.get(path)).status_code == 403
        assert (await browser.post(path, data={"csrf": csrf, "text": "{}"})).status_code == 403
    async with pages.logged_in("edit") as (browser, _csrf):
        assert (await browser.post(path, data={"text": "{}"})).status_code == 403


@pytest.mark.parametrize(
    "path",
    [
        "/scenarios/gone/edit",
        "/scenarios/gone/changes",
        "/scenarios/drill/changes?from=7",
        "/scenarios/new?from=gone",
    ],
)
async def test_what_is_not_there_is_a_page_that_says_so(pages: Pages, path: str) -> None:
    async with pages.logged_in("edit") as (browser, _csrf):
        answer = await browser.get(path)
        assert answer.status_code == 404
        checked(answer.text)
