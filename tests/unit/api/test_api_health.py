"""Whether the process lives, whether it can work, what it counts."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.api.conftest import Api
from tests.unit.api.test_api_entry import refused

from opsdrill.api.application import make_application
from opsdrill.errors import StoreError


async def test_a_process_that_lives_says_so(api: Api) -> None:
    """[A7.1] To anybody."""
    answer = await api.client().get("/health")
    assert (answer.status_code, answer.json()) == (200, {"status": "alive"})


async def test_a_process_whose_store_answers_is_ready(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[A7.1] Without it, it is alive still."""
    assert (await api.client().get("/ready")).json() == {"status": "ready"}

    def gone() -> None:
        raise StoreError("the database does not answer")

    monkeypatch.setattr(api.service.access, "tokens", gone)
    refused(await api.client().get("/ready"), 503, "the database does not answer")
    assert (await api.client().get("/health")).status_code == 200


async def test_a_watcher_may_ask_for_the_head_alone(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """[A7.1]"""
    for path in ("/health", "/ready"):
        assert (await api.client().head(path)).status_code == 200

    def gone() -> None:
        raise StoreError("the database does not answer")

    monkeypatch.setattr(api.service.access, "tokens", gone)
    assert (await api.client().head("/ready")).status_code == 503
    assert (await api.client().head("/metrics")).status_code == 405


async def test_measurements_take_a_token_unless_they_are_open(api: Api) -> None:
    """[A7.2]"""
    refused(await api.client().get("/metrics"), 401, "a token is needed")
    assert (await api.client("read").get("/metrics")).status_code == 200
    api.application = make_application(replace(api.service, open_metrics=True))
    assert (await api.client().get("/metrics")).status_code == 200


async def test_measurements_count_by_route_and_nothing_that_callers_make_up(api: Api) -> None:
    """[A7.2]"""
    client = api.client("admin")
    for path in ("tokens/one", "tokens/two", "nothing/one", "nothing/two"):
        await client.get(f"/api/v1/{path}")
    await client.request("BREW", "/api/v1/tokens")
    answer = await client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    lines = answer.text.splitlines()
    counted = 'opsdrill_http_requests_total{method="GET",route="%s",status="404"} 2.0'
    assert counted % "/api/v1/tokens/{token}" in lines
    assert counted % "other" in lines
    assert not [line for line in lines if "one" in line or "BREW" in line]
    assert 'opsdrill_runs{state="running"} 0.0' in lines


async def test_each_application_counts_for_itself(api: Api) -> None:
    """[A7.2]"""
    await api.client().get("/health")
    api.application = make_application(api.service)
    assert 'route="/health"' not in (await api.client("read").get("/metrics")).text
