"""A start takes names alone: every way around it that could be thought of is refused.

A `run` token must not become a shell on this machine, nor make the server call any address.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.api.conftest import Api
from tests.unit.api.drills import RUNS, order, over, small_place, started

from opsdrill.app.live import LiveEngine
from opsdrill.app.live_order import LiveOrder
from opsdrill.app.runs import Order, planned
from opsdrill.app.wiring import Place
from opsdrill.errors import InvalidInput
from opsdrill.runner.owner import this_process


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return small_place(tmp_path)


@pytest.mark.parametrize(
    "agent",
    ["script", "script:/etc/passwd", "script:good.yaml", "command:sh", "command", "shell:sh",
     "command:sh -c id", "http", "http://127.0.0.1:1/", "http:http://169.254.169.254/latest",
     "llm", "llm:openai:gpt-4", "llm:test", "claude-code", "claude-code:--danger", "good:other",
     "noop:x", "noop ", " good", "GOOD", "../agents.yaml", "agents.yaml", "/etc/passwd", "good\n",
     "", "good\x00", "gооd"],
)  # fmt: skip
async def test_an_agent_is_a_configured_name_or_nothing(api: Api, agent: str) -> None:
    """Neither an adapter with an argument, nor a preset, nor a path, nor an address."""
    answer = await api.client("run").post(RUNS, json=order(agent))
    assert answer.status_code == 422, answer.text
    assert (await api.client("read").get(RUNS)).json()["count"] == 0


@pytest.mark.parametrize(
    "lab",
    ["local", "ssh", "fake", "./lab.yaml", "lab.yaml", "../labs/practice", "labs/practice",
     "practice/lab.yaml", "practice.yaml", "/etc/passwd", "~/lab.yaml", "PRACTICE", "practice ",
     "", "..", ".", "practice\x00"],
)  # fmt: skip
async def test_a_lab_is_a_kept_name_or_a_driver_that_makes_hosts(api: Api, lab: str) -> None:
    """`local` in particular is this very machine: only an admin's lab file may say so."""
    (api.service.place.folder / "lab.yaml").write_text("driver: local\n")
    answer = await api.client("run").post(RUNS, json=order(lab=lab))
    assert answer.status_code == 422, answer.text
    assert (await api.client("read").get(RUNS)).json()["count"] == 0


async def test_without_a_lab_the_working_folder_is_not_asked(api: Api) -> None:
    """`./lab.yaml` and a path in the settings are for the command line."""
    place = api.service.place
    (place.folder / "lab.yaml").write_text("driver: local\n")
    told = (await api.client("read").get("/api/v1/labs")).json()["labs"]
    assert [lab["name"] for lab in told if lab["default"]] == ["sandbox"]
    place.settings.__dict__["lab"] = "local"
    told = (await api.client("read").get("/api/v1/labs")).json()["labs"]
    assert [lab["name"] for lab in told if lab["default"]] == ["sandbox"]
    place.settings.__dict__["lab"] = "practice"
    told = (await api.client("read").get("/api/v1/labs")).json()["labs"]
    assert [lab["name"] for lab in told if lab["default"]] == ["practice"]


async def test_an_admins_lab_file_may_say_local(api: Api) -> None:
    (api.service.place.home / "labs" / "here.yaml").write_text("driver: local\n")
    labs = (await api.client("read").get("/api/v1/labs")).json()["labs"]
    assert ("here", "local") in [(lab["name"], lab["driver"]) for lab in labs]


async def test_a_lab_file_by_the_name_of_a_driver_is_asked_for_by_its_name(api: Api) -> None:
    (api.service.place.home / "labs" / "local.yaml").write_text("driver: fake\n")
    labs = (await api.client("read").get("/api/v1/labs")).json()["labs"]
    assert ("local", "fake") in [(lab["name"], lab["driver"]) for lab in labs]


@pytest.mark.parametrize(
    "scenario",
    ["scenarios/drill", "scenarios/drill/scenario.yaml", "./scenarios", ".", "..", "/", "drill/",
     "../work/scenarios/drill", "/etc", "/etc/passwd", "opsdrill.toml", "~", "tag:", "pack:",
     "tag:nothing", "pack:../basics", "path:drill", "file:///etc/passwd", "http://example.org/",
     "", "drill\x00", " drill"],
)  # fmt: skip
async def test_a_scenario_is_a_key_a_tag_or_a_pack(api: Api, scenario: str) -> None:
    answer = await api.client("run").post(RUNS, json={**order(), "scenarios": [scenario]})
    assert answer.status_code == 422, answer.text
    assert (await api.client("read").get(RUNS)).json()["count"] == 0


async def test_a_key_that_is_a_path_in_the_working_folder_is_still_a_key(api: Api) -> None:
    """A folder by a scenario's name does not get in its way."""
    place = api.service.place
    (place.folder / "drill").mkdir()
    (place.folder / "drill" / "scenario.yaml").write_text("key: other\n")
    client = api.client("run")
    [run] = await started(client)
    assert (await over(client, [run]))[0]["scenario"] == "drill"


@pytest.mark.parametrize(
    "body",
    [
        {**order(), "agent_config": "/etc/passwd"}, {**order(), "agent_env": ["PATH"]},
        {**order(), "settings": {"lab": "local"}}, {**order(), "home": "/tmp"},
        {**order(), "agents": [{"adapter": "command", "argument": "sh"}]},
        {**order(), "agents": "good"}, {**order(), "agents": []}, {**order(), "scenarios": []},
        {**order(), "lab": {"driver": "local"}}, {**order(), "lab": 1},
        {**order(), "scenarios": [{"key": "x", "setup": [{"run": "id"}]}]},
        {**order(), "repeat": 0}, {**order(), "repeat": 10**9}, {**order(), "repeat": "2"},
        {**order(), "repeat": True}, {**order(), "parallel": 0},
        {**order(), "labels": {"a b": "c"}}, {**order(), "labels": {"a": 1}},
        {**order(), "labels": {f"l{n}": "" for n in range(21)}}, {**order(), "files": ["x"]},
        [], None, "drill",
    ],
)  # fmt: skip
async def test_a_body_holds_names_and_nothing_else(api: Api, body: object) -> None:
    answer = await api.client("run").post(RUNS, json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"]


async def test_every_name_that_is_not_known_is_told_with_its_place(api: Api) -> None:
    asked = {"scenarios": ["drill", "tag:x", "y"], "agents": ["good", "z"], "lab": "local"}
    answer = await api.client("run").post(RUNS, json=asked)
    assert answer.status_code == 422
    assert [error["path"] for error in answer.json()["errors"]] == [
        "scenarios[1]", "scenarios[2]", "agents[1]", "lab",
    ]  # fmt: skip


async def test_more_runs_than_may_be_are_refused_before_any_is_planned(api: Api) -> None:
    asked = order("good", "bad", "slow", "noop", "reference", "shell", repeat=1000)
    asked["scenarios"] = ["drill", "pack:basics"]
    answer = await api.client("run").post(RUNS, json=asked)
    assert answer.status_code == 422
    assert [item["path"] for item in answer.json()["errors"]] == ["repeat"]
    assert "10000" in answer.json()["detail"]
    assert (await api.client("read").get(RUNS)).json()["count"] == 0


async def test_who_may_only_read_starts_and_stops_nothing(api: Api) -> None:
    client = api.client("read")
    assert (await client.post(RUNS, json=order())).status_code == 403
    for what in ("runs/x/cancel", "runs/x/retry", "batches/x/cancel", "batches/x/retry"):
        assert (await client.post(f"/api/v1/{what}")).status_code == 403
    assert (await api.client("run").delete(f"{RUNS}/x")).status_code == 403


async def test_a_label_of_the_callers_does_not_pass_for_ours(api: Api) -> None:
    """Who started a run and which run it repeats are not said by the caller."""
    client = api.client("run")
    answer = await client.post(RUNS, json=order(labels={"by": "admin"}))
    assert answer.status_code == 422
    answer = await client.post(RUNS, json=order(labels={"retry_of": "x"}))
    assert answer.status_code == 422


async def test_what_the_command_line_ran_is_retried_by_configured_names_alone(
    api: Api, place: Place
) -> None:
    """An operator's own program or this very machine is not had by way of a retry."""
    (place.folder / "here.yaml").write_text("driver: local\n")
    orders = {
        "its agent": Order(["drill"], ["command:true"], lab="practice"),
        "its lab": Order(["drill"], ["noop"], lab="here.yaml"),
    }
    for what, asked in orders.items():
        with planned(place, asked) as batch:
            [spec] = batch.specs
        store = api.service.store
        store.plan(spec)
        store.begin(spec.id, this_process())
        store.interrupt(spec.id, "killed")
        answer = await api.client("run").post(f"{RUNS}/{spec.id}/retry")
        assert answer.status_code == 409
        assert what in answer.json()["detail"]


async def test_no_answer_names_a_folder_of_this_machine(api: Api) -> None:
    place = api.service.place
    (place.home / "labs" / "torn.yaml").write_text("driver: [\n")
    client = api.client("run")
    answers = [
        await client.post(RUNS, json=order(lab="torn")),
        await client.get("/api/v1/labs"),
        await client.get("/api/v1/agents"),
        await client.get("/api/v1/labs/torn/health"),
    ]
    (place.folder / "good.yaml").write_text("format: [\n")
    answers.append(await client.post(RUNS, json=order()))
    (place.folder / "agents.yaml").write_text("agents: 3\n")
    answers.append(await client.post(RUNS, json=order()))
    answers.append(await client.get("/api/v1/agents"))
    for answer in answers:
        assert str(place.home) not in answer.text
        assert str(place.folder) not in answer.text
        assert str(place.home.parent) not in answer.text
        assert answer.status_code in (200, 422), answer.text


async def test_the_engine_itself_takes_names_alone(place: Place, api: Api) -> None:
    """Also where somebody calls it without the API."""
    live: LiveEngine = api.service.engine
    for asked in (
        LiveOrder(["drill"], ["command:sh"], "practice"),
        LiveOrder(["drill"], ["good"], "local"),
        LiveOrder([str(place.folder / "scenarios")], ["good"], "practice"),
    ):
        with pytest.raises(InvalidInput):
            await live.submit(asked)
