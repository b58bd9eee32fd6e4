"""A run's page, its report, comparisons and trends: what they say, and to whom."""

from __future__ import annotations

import base64
import hashlib
import re
from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.api.drills import over, started, working
from tests.unit.web.conftest import Pages

from opsdrill.app.lines import Lines
from opsdrill.errors import StoreDamaged
from opsdrill.model.job import Coverage, JobRecord, Seen, Task
from opsdrill.web.lanes import lanes
from opsdrill.web.verdicts import excerpt

BEGAN = datetime(2026, 11, 30, tzinfo=UTC)


def record(*tasks: Task) -> Lines:
    coverage = Coverage(default=Seen(state="whole"))
    return Lines(JobRecord(format="opsdrill.job/1", job=None, tasks=tasks, coverage=coverage))


def task(id: str, host: str, turn: int | None, *times: int) -> Task:
    start, end = (BEGAN + timedelta(seconds=at) for at in times) if times else (None, None)
    return Task(
        id=id, host=host, turn=turn, status="completed", started_at=start, ended_at=end
    )  # fmt: skip


def test_lanes_stand_in_time() -> None:
    drawn = lanes(record(task("a", "h1", 1, 0, 10), task("b", "h2", 2, 10, 20)), BEGAN)
    first, second = drawn.bars
    assert drawn.timed
    assert drawn.length == 20
    assert first.x + first.width == pytest.approx(second.x)
    assert [row.whole for row in drawn.rows] == ["h1", "h2"]
    assert [band.number for band in drawn.bands] == [1, 2]


def test_lanes_without_times_stand_in_order_and_say_so() -> None:
    """A time that is not known is none: tasks of a turn share a column."""
    drawn = lanes(record(task("a", "h1", 1), task("b", "h2", 1), task("c", "h1", 2)), BEGAN)
    assert not drawn.timed
    assert drawn.length is None
    assert drawn.bars[0].x == drawn.bars[1].x < drawn.bars[2].x


def test_an_excerpt_marks_what_matched_and_escapes_what_stands_around() -> None:
    value = "<" * 500 + "needle" + ">" * 500
    shown = str(excerpt(value, (500, 506)))
    assert "<mark>needle</mark>" in shown
    assert shown.startswith("…&lt;")
    assert shown.endswith("&gt;…")
    assert len(shown) < 4 * 2 * 160 + 40


async def test_a_run_that_goes_on_claims_no_end(pages: Pages) -> None:
    async with pages.logged_in() as (browser, csrf):
        browser.headers["x-csrf-token"] = csrf
        [run] = await started(browser, "slow")
        await working(browser, run)
        page = (await browser.get(f"/runs/{run}")).text
        assert "no resolution" not in page
        assert "never became a job" not in page
        assert "data-live" in page
        await browser.post(f"/api/v1/runs/{run}/cancel")


async def test_a_page_comes_before_its_record_is_read(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Verdict, rules and reasons need no record; where reading one takes long it comes after."""
    async with pages.logged_in() as (browser, csrf):
        browser.headers["x-csrf-token"] = csrf
        [run] = await started(browser, "bad")
        await over(browser, [run])
        monkeypatch.setattr("opsdrill.app.lines.READ_AT_ONCE", 0)
        read = pages.service.store.record
        asked: list[str] = []

        def record(run: str) -> JobRecord | None:
            asked.append(run)
            return read(run)

        monkeypatch.setattr(pages.service.store, "record", record)
        first = (await browser.get(f"/runs/{run}")).text
        assert asked == []
        later = (await browser.get(f"/runs/{run}?wait=yes")).text
        assert asked == [run]
        again = (await browser.get(f"/runs/{run}")).text
        assert asked == [run]
    said = ["Completion check", "exit status 1 on web-01, expected 0", "the agent", "mended?"]
    assert all(text in first and text in later for text in said)
    recorded = ["run-lanes", "run-ticket", "transcript", "run-hosts"]
    for page, there in ((first, False), (later, True), (again, True)):
        assert ('id="run-unread"' in page) is not there
        assert all((f'id="{part}"' in page) is there for part in recorded)
    assert f'url=/runs/{run}?wait=yes&amp;from=0"' in first
    assert "http-equiv" not in later


async def test_what_only_the_record_tells_is_not_told_before_it_is_read(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not seen is not false: no figure is a dash, no rule is said to have nothing more to tell."""
    async with pages.logged_in() as (browser, csrf):
        browser.headers["x-csrf-token"] = csrf
        [run] = await started(browser, "good")
        await over(browser, [run])
        monkeypatch.setattr("opsdrill.app.lines.READ_AT_ONCE", 0)
        first = (await browser.get(f"/runs/{run}")).text
        later = (await browser.get(f"/runs/{run}?wait=yes")).text
    for figure in ("Cost", "Tokens"):
        assert f"<dt>{figure}</dt><dd>…</dd>" in first
        assert f"<dt>{figure}</dt><dd>…</dd>" not in later
    assert "No more is known" not in first
    assert "#line-" not in first
    assert first.count("The record is not read yet.") == first.count('class="rule" id=') > 0
    assert "being read" not in later and "not read yet" not in later


@pytest.mark.parametrize("at_once", [0, 2_000_000])
async def test_a_damaged_record_is_told_and_hides_no_verdict(
    pages: Pages, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    async with pages.logged_in() as (browser, csrf):
        browser.headers["x-csrf-token"] = csrf
        [run] = await started(browser, "bad")
        await over(browser, [run])
        monkeypatch.setattr("opsdrill.app.lines.READ_AT_ONCE", at_once)

        def record(run: str) -> JobRecord | None:
            raise StoreDamaged(f"the job record of run {run} cannot be read back")

        monkeypatch.setattr(pages.service.store, "record", record)
        assert "expected 0" in (await browser.get(f"/runs/{run}")).text
        script = {"accept": "application/json"}
        answer = await browser.get(f"/runs/{run}?wait=yes", headers=script)
        assert answer.status_code == 503
        assert f"the job record of run {run} cannot be read back" in answer.json()["detail"]


async def test_a_reader_sees_a_run_and_changes_nothing(pages: Pages) -> None:
    async with pages.logged_in() as (browser, csrf):
        browser.headers["x-csrf-token"] = csrf
        [run] = await started(browser, "bad")
        await over(browser, [run])
    async with pages.logged_in("read") as (browser, csrf):
        page = (await browser.get(f"/runs/{run}")).text
        assert f"/runs/{run}/delete" not in page
        assert "Keep this grade" not in (await browser.get(f"/runs/{run}/regrade")).text
        for what in ("delete", "cancel", "retry", "regrade"):
            answer = await browser.post(f"/runs/{run}/{what}", data={"csrf": csrf, "sure": "yes"})
            assert answer.status_code == 403, what
        for path in ("", "/lines", "/find?text=look", "/whole/line/0", "/report"):
            assert (await browser.get(f"/runs/{run}{path}")).status_code == 200, path
        for path in ("/whole/line/999", "/whole/rules/999", "/whole/nothing/0"):
            assert (await browser.get(f"/runs/{run}{path}")).status_code == 404, path
        assert (await browser.get("/runs/none")).status_code == 404


async def test_rules_have_the_numbers_by_which_verdicts_name_them(pages: Pages) -> None:
    """`rule 0` of a verdict is `[0]` on the run's page, in its report, on the scenario's page."""
    async with pages.logged_in() as (browser, csrf):
        browser.headers["x-csrf-token"] = csrf
        [run] = await started(browser, "bad")
        await over(browser, [run])
        told = (await browser.get(f"/api/v1/runs/{run}")).json()
        assert told["reason"].startswith("rule 0 "), told
        for path in (f"/runs/{run}", f"/runs/{run}/report", f"/scenarios/{told['scenario']}"):
            page = (await browser.get(path)).text
            assert '<span class="quiet">[0]</span>' in page, path


async def test_a_report_may_do_only_what_its_hashes_allow(pages: Pages) -> None:
    async with pages.logged_in() as (browser, csrf):
        browser.headers["x-csrf-token"] = csrf
        [run] = await started(browser, "good")
        await over(browser, [run])
        answer = await browser.get(f"/runs/{run}/report")
    assert answer.headers["content-disposition"].startswith("attachment")
    page = answer.text
    found = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert found is not None
    policy = found[1].replace("&#39;", "'")
    assert policy.startswith("default-src 'none'")
    for name in ("style", "script"):
        [text] = re.findall(f"<{name}>(.*?)</{name}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert not re.search(r'(?:src|href|action)="(?!#)', page)


async def test_agents_stand_beside_each_other_by_scenario(pages: Pages) -> None:
    """A line for each agent would have one of them alone, and nothing could be told."""
    async with pages.logged_in() as (browser, csrf):
        browser.headers["x-csrf-token"] = csrf
        await over(browser, await started(browser, "good", "bad"))
        page = (await browser.get("/compare?set=agent%3Dgood&set=agent%3Dbad&by=")).text
        assert '<option value="">scenario</option>' in page
        assert ">worse<" in page
        assert "cannot tell" not in page
        page = (await browser.get("/compare?set=batch%3Da&set=batch%3Db")).text
        assert '<option value="">scenario and agent</option>' in page


async def test_a_comparison_of_more_sets_than_fit_is_refused(pages: Pages) -> None:
    async with pages.logged_in("read") as (browser, _):
        query = "&".join(f"set=agent%3D{number}" for number in range(11))
        assert (await browser.get(f"/compare?{query}")).status_code == 422
        assert (await browser.get("/trends?since=nonsense")).status_code == 422
