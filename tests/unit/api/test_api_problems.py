"""Every error is told in one shape, with nothing of this machine in it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import pytest
from fastapi import APIRouter
from pydantic import Field
from tests.unit.api.conftest import Api

from opsdrill import errors
from opsdrill.api import problems
from opsdrill.api.entry import needs
from opsdrill.app.own_folders import folder_names, own_folders, without_paths
from opsdrill.app.settings import Settings
from opsdrill.app.wiring import Place
from opsdrill.wire.body import Asked
from opsdrill.wire.problems import ProblemDetails

HOME = "/srv/opsdrill/data"
RAISED: dict[str, tuple[Exception, int]] = {
    "not there": (errors.NotThere("run", "r1"), 404),
    "conflict": (errors.Conflict("it runs"), 409),
    "unknown name": (errors.UnknownName("agent", "x", ["noop"]), 422),
    "usage": (errors.UsageError("the cursor is no page's"), 400),
    "input": (errors.InvalidInput("scenario", [errors.Problem("a[2].b", "is missing")]), 422),
    "pattern": (errors.InvalidPattern("unbalanced parenthesis", 4), 422),
    "driver": (errors.DriverUnavailable("no sandbox here"), 503),
    "agent": (errors.AgentUnavailable("no agent here"), 503),
    "store": (errors.StoreError("the disk is full"), 503),
    "host": (errors.HostError("web-01", "does not answer"), 500),
    "defect": (KeyError(HOME), 500),
    "nested": (ExceptionGroup("several", [ValueError(HOME)]), 500),
}


class Sent(Asked):
    """A body with parts."""

    rules: list[dict[str, int]] = Field(default_factory=list)


@pytest.fixture
def failing(api: Api) -> Api:
    """With routes that raise."""
    router = APIRouter()

    @router.put("/raise/{name}", **needs("read"))
    async def fail(name: str, number: int = 1) -> None:
        raise RAISED[name][0]

    @router.post("/rules", **needs("read"))
    async def rules(sent: Sent) -> None:
        return None

    api.application.include_router(router)
    return api


@pytest.mark.parametrize("name", RAISED)
async def test_each_exception_has_its_status(failing: Api, name: str) -> None:
    """[A6.1]"""
    error, status = RAISED[name]
    answer = await failing.client("read").put(f"/raise/{name}")
    assert answer.status_code == status
    assert answer.headers["content-type"] == problems.MEDIA
    told = ProblemDetails.model_validate(answer.json())
    assert told.status == status
    assert told.type.startswith("urn:opsdrill:problem:")
    assert told.instance.endswith(answer.headers["x-request-id"])
    if status != 500:
        assert told.detail == str(error)
        assert told.hint == getattr(error, "hint", None)


async def test_what_cannot_be_used_now_is_in_the_log_too(
    failing: Api, caplog: pytest.LogCaptureFixture
) -> None:
    """[A6.3] With the folders that the answer does not name."""
    caplog.set_level(logging.WARNING)
    answer = await failing.client("read").put("/raise/store")
    assert f"request {answer.headers['x-request-id']}: the disk is full" in caplog.text


async def test_a_conflict_of_an_editor_is_412(failing: Api) -> None:
    """[A6.1] Who said which version was seen is told that it changed."""
    answer = await failing.client("read", if_match='"1"').put("/raise/conflict")
    assert answer.status_code == 412


async def test_a_refused_document_names_the_places(failing: Api) -> None:
    """[A6.1]"""
    told = (await failing.client("read").put("/raise/input")).json()
    assert told["errors"] == [{"path": "a[2].b", "message": "is missing", "severity": "error"}]


@pytest.mark.parametrize("name", ["defect", "nested", "host"])
async def test_of_a_defect_only_the_log_tells(
    failing: Api, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """[A6.3] It tells under the request's id."""
    caplog.set_level(logging.ERROR)
    answer = await failing.client("read").put(f"/raise/{name}")
    told = answer.json()
    assert told["detail"] == "something went wrong here; the server's log says what"
    assert HOME not in answer.text
    assert f"request {answer.headers['x-request-id']} failed" in caplog.text
    assert type(RAISED[name][0]).__name__ in caplog.text


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"rules": [{"a": 1}, {"b": "x"}]}, "rules[1].b"),
        ({"rules": 1}, "rules"),
        ({"more": 1}, "more"),
        ([], ""),
    ],
)
async def test_a_body_that_breaks_its_shape_names_the_path(
    failing: Api, body: object, path: str
) -> None:
    """[A6.1]"""
    answer = await failing.client("read").post("/rules", json=body)
    assert answer.status_code == 422
    assert [item["path"] for item in answer.json()["errors"]] == [path]


async def test_a_parameter_that_cannot_be_names_itself(failing: Api) -> None:
    """[A6.1]"""
    answer = await failing.client("read").put("/raise/usage?number=x")
    assert answer.status_code == 422
    assert [item["path"] for item in answer.json()["errors"]] == ["query.number"]


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("/api/v1/runs?limit=many", "query.limit must be a whole number, not 'many'"),
        ("/api/v1/runs?limit=0", "query.limit must be at least 1, not '0'"),
        ("/api/v1/runs/x/evidence/0x1", "path.number must be a whole number, not '0x1'"),
        ("/api/v1/regrades/x?wait=long", "query.wait must be a number, not 'long'"),
        ("/api/v1/runs?since=2026-01-01", "query.since is not a time like 2026-01-31T12:00:00Z"),
        ("/api/v1/runs?state=dead", "query.state must be one of planned, running,"),
    ],
)
async def test_a_parameter_that_cannot_be_is_told_in_our_words(
    api: Api, address: str, words: str
) -> None:
    """[A6.1]"""
    answer = await api.client("read").get(address)
    assert answer.status_code == 422
    assert answer.json()["detail"].startswith(f"the request is refused: {words}")


async def test_so_many_mistakes_are_listed_and_no_more(failing: Api) -> None:
    """[A6.1] An answer is no larger for a body that is wrong everywhere."""
    answer = await failing.client("read").post("/rules", json={"rules": ["x"] * 5000})
    assert len(answer.json()["errors"]) == 100


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"{HOME}/labs/web.yaml: is broken", "labs/web.yaml: is broken"),
        (f"the store {HOME} is full", "the store a folder of the server is full"),
        (f"{HOME}/a and '{HOME}/b'", "a and 'b'"),
        (f"{HOME}base/x", f"{HOME}base/x"),
        (f"the host has /mnt{HOME}/x", f"the host has /mnt{HOME}/x"),
        ("/etc/nginx/nginx.conf", "/etc/nginx/nginx.conf"),
        ("/work/x.yaml", "x.yaml"),
        (f"({HOME})", "(a folder of the server)"),
    ],
)
def test_no_folder_of_the_server_is_named(text: str, told: str) -> None:
    """[A6.3] What a host has by a like name stays."""
    names = folder_names([Path("/"), Path("/work"), Path(HOME)])
    assert without_paths(text, names) == told


def test_a_folder_is_known_by_every_way_that_leads_there(tmp_path: Path) -> None:
    """[A6.3]"""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    names: Sequence[str] = folder_names([tmp_path / "link"])
    for way in ("link", "real"):
        assert without_paths(f"{tmp_path / way}/x", names) == "x"


async def test_a_message_about_the_data_folder_does_not_name_it(failing: Api) -> None:
    """[A6.3]"""
    home = failing.service.place.home
    RAISED["folder"] = (errors.StoreError(f"{home}/opsdrill.db: locked", hint=f"see {home}"), 503)
    try:
        answer = await failing.client("read").put("/raise/folder")
    finally:
        del RAISED["folder"]
    assert answer.json()["detail"] == "opsdrill.db: locked"
    assert str(home) not in answer.text


def test_where_the_database_listens_is_a_folder_of_the_server(tmp_path: Path) -> None:
    """[A6.3]"""
    url = "postgresql://mona:secret@/drills?host=%2Frun%2Fpg"
    place = Place(tmp_path, tmp_path, Settings.model_validate({"database-url": url}))
    said = "the store drills on /run/pg cannot be used: no server answers there"
    assert "/run/pg" not in without_paths(said, own_folders(place))
