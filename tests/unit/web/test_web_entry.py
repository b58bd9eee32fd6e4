"""Who sees which page: log-in, roles, CSRF tokens, and errors as pages."""

from __future__ import annotations

import pytest
from fastapi.routing import APIRoute
from tests.unit.web.conftest import Pages, Read

from opsdrill.api.entry import ROLE_KEY
from opsdrill.web.assets import address, digest, files
from opsdrill.web.entry import inside
from opsdrill.web.pages import PAGES

OPEN = {("GET", "/log-in"), ("POST", "/log-in")}
"""The pages that take no role."""


def test_every_page_takes_a_role() -> None:
    for router in PAGES:
        for route in router.routes:
            assert isinstance(route, APIRoute)
            method = "".join(route.methods or ())
            role = (route.openapi_extra or {}).get(ROLE_KEY)
            assert role or (method, route.path) in OPEN, route.path
            assert not route.include_in_schema


async def test_who_is_not_logged_in_is_led_to_the_log_in_page_and_back(pages: Pages) -> None:
    async with pages.browser() as browser:
        answer = await browser.get("/runs?scenario=a&verdict=failed")
        assert answer.status_code == 303
        way = answer.headers["location"]
        assert way == "/log-in?next=/runs%3Fscenario%3Da%26verdict%3Dfailed"
        page = (await browser.get(way)).text
        assert 'value="/runs?scenario=a&amp;verdict=failed"' in page
        form = {"token": pages.secrets["read"], "next": "/runs?scenario=a&verdict=failed"}
        answer = await browser.post("/log-in", data=form)
        assert (answer.status_code, answer.headers["location"]) == (303, form["next"])
        assert (await browser.get(form["next"])).status_code == 200


@pytest.mark.parametrize(
    "wanted",
    ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "runs",
     "", "/runs\r\nX: y", "/\u202eruns", "/" + "x" * 3000],
)  # fmt: skip
def test_after_the_log_in_nobody_leaves_the_site(wanted: str) -> None:
    assert inside(wanted) == "/"


async def test_a_wrong_token_is_told_and_counted(pages: Pages) -> None:
    async with pages.browser() as browser:
        for _ in range(10):
            answer = await browser.post("/log-in", data={"token": "od_no", "next": "/runs"})
            assert answer.status_code == 401
            assert "There is no such token" in answer.text
        answer = await browser.post("/log-in", data={"token": "od_no"})
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) > 0
        assert (await browser.post("/log-in", data={})).status_code == 422


async def test_a_link_of_another_site_asks_again_instead_of_a_log_in(pages: Pages) -> None:
    """The cookie comes along with what this site's own pages ask for, and with nothing else."""
    async with pages.browser() as browser:
        answer = await browser.get("/runs?a=1", headers={"sec-fetch-site": "cross-site"})
        assert answer.status_code == 200
        assert 'http-equiv="refresh" content="0"' in answer.text
        again = await browser.get("/runs?a=1", headers={"sec-fetch-site": "same-origin"})
        assert again.status_code == 303


async def test_a_form_needs_the_csrf_token_of_its_own_session(pages: Pages) -> None:
    async with pages.logged_in() as (browser, csrf), pages.logged_in() as (_, foreign):
        form = {"name": "x", "role": "read", "days": ""}
        for sent in ({}, {"csrf": ""}, {"csrf": "x"}, {"csrf": foreign}):
            answer = await browser.post("/settings/tokens", data={**form, **sent})
            assert answer.status_code == 403
            assert "CSRF" in answer.text
        for header in (foreign, "x"):
            answer = await browser.post(
                "/settings/tokens", data=form, headers={"x-csrf-token": header}
            )
            assert answer.status_code == 403
        assert len(pages.service.access.tokens()) == 4
        answer = await browser.post("/settings/tokens", data={**form, "csrf": csrf})
        assert answer.status_code == 200
        answer = await browser.post("/settings/tokens", data=form, headers={"x-csrf-token": csrf})
        assert answer.status_code == 200
        assert len(pages.service.access.tokens()) == 6


async def test_a_form_of_another_site_is_refused(pages: Pages) -> None:
    async with pages.logged_in() as (browser, csrf):
        for header in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
            answer = await browser.post("/log-out", data={"csrf": csrf}, headers=header)
            assert answer.status_code == 403
        answer = await browser.post(
            "/log-out", content=b"{}", headers={"content-type": "application/json"}
        )
        assert answer.status_code == 415


async def test_logging_out_ends_the_session(pages: Pages) -> None:
    async with pages.logged_in() as (browser, csrf):
        held = browser.cookies["opsdrill"]
        answer = await browser.post("/log-out", data={"csrf": csrf})
        assert (answer.status_code, answer.headers["location"]) == (303, "/log-in")
        browser.cookies.set("opsdrill", held)
        assert (await browser.get("/runs")).status_code == 303


@pytest.mark.parametrize("path", ["/start", "/settings/tokens"])
async def test_a_page_beyond_ones_role_says_which_it_takes(pages: Pages, path: str) -> None:
    async with pages.logged_in("read") as (browser, csrf):
        method = "GET" if path == "/start" else "POST"
        answer = await browser.request(method, path, data={"csrf": csrf})
        assert answer.status_code == 403
        assert "This takes the role" in Read(answer.text).text


async def test_errors_are_pages_for_people_and_problems_for_programs(pages: Pages) -> None:
    async with pages.logged_in() as (browser, _):
        answer = await browser.get("/no/<b>such</b>")
        assert answer.status_code == 404
        assert "text/html" in answer.headers["content-type"]
        read = Read(answer.text)
        assert read.wrong == []
        assert "There is no /no/<b>such</b>" in read.text
        for headers in ({"accept": "*/*"}, {"hx-request": "true"}):
            answer = await browser.get("/no/such", headers=headers)
            assert answer.headers["content-type"] == "application/problem+json"
        answer = await browser.get("/api/v1/runs/nothing")
        assert answer.headers["content-type"] == "application/problem+json"


async def test_a_script_whose_session_is_over_is_sent_to_the_log_in_page(pages: Pages) -> None:
    async with pages.browser() as browser:
        for looked_at, way in (
            ("http://localhost/batches/b?x=1", "/log-in?next=/batches/b%3Fx%3D1"),
            ("", "/log-in"),
            ("http://[", "/log-in"),
            ("javascript:alert(1)", "/log-in"),
        ):
            headers = {"hx-request": "true", "hx-current-url": looked_at}
            answer = await browser.get("/runs/rows?run=x", headers=headers)
            assert (answer.status_code, answer.headers["hx-redirect"]) == (401, way)


async def test_our_own_fault_is_a_page_without_any_detail(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(pages.service.access, "tokens", broken)
    async with pages.logged_in() as (browser, _):
        answer = await browser.get("/settings")
        assert answer.status_code == 500
        assert "text/html" in answer.headers["content-type"]
        assert "secret detail" not in answer.text


async def test_every_page_forbids_what_it_does_not_do(pages: Pages) -> None:
    async with pages.logged_in() as (browser, _):
        for path in ("/", "/runs", "/scenarios", "/log-in", "/nothing"):
            headers = (await browser.get(path)).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cache-control"] == "no-store"


async def test_static_files_are_kept_for_good_under_their_digest(pages: Pages) -> None:
    async with pages.browser() as browser:
        for name, content in files().items():
            answer = await browser.get(address(name))
            assert (answer.status_code, answer.content) == (200, content)
            assert "immutable" in answer.headers["cache-control"]
        old = await browser.get(address("page.js").replace(digest(), "0" * 16))
        assert (old.status_code, old.headers["cache-control"]) == (200, "no-cache")


@pytest.mark.parametrize(
    "name",
    ["../render.py", "%2e%2e/render.py", "..%2frender.py", "/etc/passwd", "nothing.js", "",
     "vendor/", "vendor", "page.js/", "page.js%00.css"],
)  # fmt: skip
async def test_there_is_nothing_but_the_static_files(pages: Pages, name: str) -> None:
    async with pages.browser() as browser:
        answer = await browser.get(f"/static/{digest()}/{name}")
        assert answer.status_code == 404
