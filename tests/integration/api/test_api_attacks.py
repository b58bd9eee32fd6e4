"""Attacks on a real server, each refused as documented, after which it works on."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.integration.api.server_program import HANGS, serving
from tests.unit.api.drills import RUNS, order, small_place

from opsdrill.client import Client
from opsdrill.wire.problems import ProblemDetails

SQL = ["' OR 1=1 --", "'; DROP TABLE runs; --", '" UNION SELECT * FROM tokens --', "%", "_"]
STRANGE = [
    "command:rm -rf /", "http:http://127.0.0.1:1/", "script:/etc/passwd", "llm:x", "shell:true",
    "../agents.yaml", "file:///etc/passwd", "",
]  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Client, str, str]]:
    """Its folder, an admin's client, its address, and a token with the role `run`."""
    folder = tmp_path_factory.mktemp("attacked")
    place = small_place(folder)
    (place.folder / "opsdrill.toml").write_text('agent-config = "agents.yaml"\n')
    with (
        serving(folder) as (_process, address, secret, _notes),
        Client(address, secret) as admin,
    ):
        yield folder, admin, address, admin.create_token("ci", "run").secret


@pytest.fixture
def runner(server: tuple[Path, Client, str, str]) -> Iterator[httpx.Client]:
    headers = {"authorization": f"Bearer {server[3]}"}
    with httpx.Client(base_url=server[2], headers=headers, timeout=HANGS) as client:
        yield client


@pytest.fixture
def admin(server: tuple[Path, Client, str, str]) -> Iterator[httpx.Client]:
    secret = server[1].create_token("editor", "edit").secret
    headers = {"authorization": f"Bearer {secret}"}
    with httpx.Client(base_url=server[2], headers=headers, timeout=HANGS) as client:
        yield client


def refused(answer: httpx.Response, *statuses: int) -> None:
    assert answer.status_code in statuses, answer.text[:500]
    assert ProblemDetails.model_validate(answer.json()).status == answer.status_code


@pytest.mark.parametrize("agent", STRANGE)
def test_a_run_token_names_no_program_url_or_path_as_an_agent(
    runner: httpx.Client, agent: str
) -> None:
    refused(runner.post(RUNS, json=order(agent)), 422)


@pytest.mark.parametrize("lab", ["local", "ssh", "/etc", "../labs/practice", "http://127.0.0.1/"])
def test_a_run_token_starts_in_no_lab_that_nobody_named(runner: httpx.Client, lab: str) -> None:
    refused(runner.post(RUNS, json={**order(), "lab": lab}), 422)


@pytest.mark.parametrize("scenario", ["/etc/passwd", "../drill", "scenarios/drill/scenario.yaml"])
def test_a_scenario_is_no_path(runner: httpx.Client, scenario: str) -> None:
    refused(runner.post(RUNS, json={**order(), "scenarios": [scenario]}), 422)


@pytest.mark.parametrize("more", [{"argument": "x"}, {"command": "id"}, {"options": {}}])
def test_a_start_takes_no_key_of_its_own(runner: httpx.Client, more: dict[str, object]) -> None:
    refused(runner.post(RUNS, json={**order(), **more}), 422)


@pytest.mark.parametrize("text", SQL)
def test_a_filter_is_no_query(
    server: tuple[Path, Client, str, str], runner: httpx.Client, text: str
) -> None:
    runner.post(RUNS, json=order("noop"))
    for name in ("scenario", "tag", "agent", "batch"):
        answer = runner.get(RUNS, params={name: text})
        assert (answer.status_code, answer.json()["runs"]) == (200, []), name
    assert runner.get(RUNS, params={"label": f"x:{text}"}).json()["runs"] == []
    refused(runner.get(RUNS, params={"sort": text}), 422)
    refused(runner.get(RUNS, params={"cursor": text}), 400, 422)
    assert runner.get("/api/v1/scenarios", params={"search": text}).status_code == 200
    assert server[1].list_runs().count >= 1


def test_a_body_that_is_too_large_or_too_deep_is_refused(runner: httpx.Client) -> None:
    """[A5.3, A5.4]"""
    refused(runner.post(RUNS, json=order("x" * 3_000_000)), 413)
    json = {"content-type": "application/json"}
    refused(runner.post(RUNS, content=b"[" * 500_000, headers=json), 422)
    refused(runner.post("/api/v1/grade", content=b'{"a":' * 100_000, headers=json), 422)


def archive(names: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in names.items():
            file.writestr(name, content)
    return packed.getvalue()


@pytest.mark.parametrize(
    "names",
    [
        {"../escaped": b"x"},
        {"/escaped": b"x"},
        {"a/../../escaped": b"x"},
        {"files/bomb": b"\0" * 300_000_000},
        {f"files/{number}": b"" for number in range(5000)},
    ],
    ids=["up", "absolute", "inside up", "bomb", "many"],
)
def test_an_archive_that_leads_out_or_swells_is_refused(
    server: tuple[Path, Client, str, str], admin: httpx.Client, names: dict[str, bytes]
) -> None:
    scenario = b"key: zipped\ntitle: Z\nticket_title: T\nhosts: [a]\n"
    content = archive({"scenario.yaml": scenario, **names})
    headers = {"content-type": "application/zip"}
    refused(admin.post("/api/v1/scenarios/import", content=content, headers=headers), 413, 422)
    assert not list(server[0].rglob("escaped"))


def test_nothing_of_a_request_becomes_a_header(runner: httpx.Client) -> None:
    for path in ("/api/v1/runs/x%0d%0aSet-Cookie:%20a=b", "/api/v1/labs/a%0d%0aX-A:%20b/health"):
        answer = runner.get(path)
        refused(answer, 404, 422)
        assert "set-cookie" not in answer.headers
        assert "x-a" not in answer.headers


def test_it_works_on_after_all_that(server: tuple[Path, Client, str, str]) -> None:
    [run] = server[1].start_runs(["drill"], ["good"], lab="practice").runs
    *_, result = server[1].follow_run(run.id)
    assert result.data["verdict"] == "passed"
