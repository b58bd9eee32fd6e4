"""Events from a real server: live, to many, cut off and gone on with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from tests.integration.api.followed import Event, all_of, client_of, following
from tests.integration.served import Served, served
from tests.unit.api.drills import RUNS, order, over, small_place, started, working

from opsdrill.api import connection, events, guard
from opsdrill.app.access import Access
from opsdrill.app.events import followers
from opsdrill.app.live import LiveEngine
from opsdrill.app.live_order import LiveOrder
from opsdrill.app.settings import Settings
from opsdrill.app.wiring import Place
from opsdrill.hosts.drivers.fake import FakeDriver

STEADY = """
format: opsdrill.script/1
turns:
  - tasks:
      - host: web-01
        description: work
        do: [{run: step one}, {sleep: 0.3}, {run: step two}, {sleep: 0.3}, {run: step three}]
resolve: {resolution: success, reasoning: done}
"""
BUSY = """
format: opsdrill.script/1
turns:
  - tasks:
      - {host: web-01, description: work, do: [%s]}
resolve: {resolution: success, reasoning: done}
""" % ", ".join("{say: 'word %d'}" % number for number in range(1500))  # noqa: UP031


def busy_place(folder: Path) -> Place:
    made = small_place(folder)
    agents = made.folder / "agents.yaml"
    for name, script in (("steady", STEADY), ("busy", BUSY)):
        (made.folder / f"{name}.yaml").write_text(script)
        with agents.open("a") as file:
            file.write(f"  {name}: {{adapter: script, argument: {name}.yaml}}\n")
    return made


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    async with served(tmp_path, placed=busy_place) as running:
        yield running


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """That of the server, for a process beside it."""
    return Place(
        tmp_path / "home",
        tmp_path / "work",
        Settings.model_validate({"agent-config": "agents.yaml"}),
    )


def told(events: list[Event]) -> list[tuple[str, str | None]]:
    return [(event.kind, event.id) for event in events if event.id is not None]


async def test_two_follow_a_run_and_one_is_cut_off_again_and_again(server: Served) -> None:
    """One who comes again with the last id loses nothing and gets nothing twice."""
    async with client_of(server) as client:
        [run] = await started(client, "steady")
        path = f"{RUNS}/{run}/events"
        whole = asyncio.create_task(all_of(client, path))
        pieces: list[Event] = []
        last: str | None = None
        while not pieces or pieces[-1].kind != "result":
            async with following(client, path, last) as stream:
                count = 0
                async for event in stream:
                    pieces.append(event)
                    last = event.id or last
                    count += 1
                    if count == 2:
                        break  # the connection is gone
        everything = await whole
        assert told(pieces) == told(everything)
        kinds = [event.kind for event in everything]
        assert kinds[-1] == "result"
        assert everything[-1].data["verdict"] == "failed"
        commands = [
            event.data["event"]["arguments"]["command"]
            for event in everything
            if event.kind == "job" and event.data["event"]["event"] == "tool_called"
        ]
        assert commands == ["step one", "step two", "step three"]
        seqs = [event.data["seq"] for event in everything if event.kind == "job"]
        assert seqs == list(range(len(seqs)))
        phases = [
            (event.data["phase"]["name"], event.data["phase"]["status"])
            for event in everything
            if event.kind == "phase"
        ]
        assert phases[0] == ("preflight", "running")
        assert len(phases) == len(set(phases))
        # What is told late is what was told live, and behind the end there is nothing.
        assert told(await all_of(client, path)) == told(everything)
        done = await client.get(path, headers={"last-event-id": "end"})
        assert done.status_code == 204


async def test_events_come_while_the_run_works(server: Served) -> None:
    async with client_of(server) as client:
        [run] = await started(client, "slow")
        async with following(client, f"{RUNS}/{run}/events") as stream:
            async for event in stream:
                if event.kind == "job" and event.data["event"]["event"] == "tool_returned":
                    # far from its end: its agent sleeps for half a minute
                    assert len(event.data["event"]["output"]) == 16 * 1024
                    assert event.data["output_characters"] == 20_000
                    await client.post(f"{RUNS}/{run}/cancel")
                if event.kind == "result":
                    assert event.data["state"] == "cancelled"


@pytest.mark.parametrize("last", ["9.9.9", "1.2.999999", "1.999.0", "0.0.0"])
async def test_a_place_where_the_run_never_was_is_its_beginning(server: Served, last: str) -> None:
    """Nobody spoils the events of others by such a place."""
    async with client_of(server) as client:
        [run] = await started(client, "steady")
        path = f"{RUNS}/{run}/events"
        forged, fair = await asyncio.gather(all_of(client, path, last), all_of(client, path))
        assert told(forged) == told(fair)


@pytest.mark.parametrize("last", ["x", "1.2", "1.2.3.4", "-1.0.0", "1" * 9000, "%0a"])
async def test_a_place_that_cannot_be_is_refused(server: Served, last: str) -> None:
    async with client_of(server) as client:
        [run] = await started(client, "good")
        for path in (f"{RUNS}/{run}/events", "/api/v1/events"):
            answer = await client.get(path, headers={"last-event-id": last})
            assert answer.status_code in (400, 422, 431), (path, answer.status_code)


async def test_a_batch_is_followed_and_gone_on_with(server: Served) -> None:
    """What became of each run while one was away is told when it comes again, once."""
    async with client_of(server) as client:
        answer = await client.post(RUNS, json=order("good", "bad", "steady", repeat=2))
        runs = [run["id"] for run in answer.json()["runs"]]
        path = f"/api/v1/events?batch={answer.json()['batch']}"
        seen: list[Event] = []
        last: str | None = None
        while sum(event.data.get("state") == "done" for event in seen) < len(runs):
            async with following(client, path, last) as stream:
                async for event in stream:
                    seen.append(event)
                    last = event.id or last
                    if event.id is not None and len(seen) % 3 == 0:
                        break
                    if sum(one.data.get("state") == "done" for one in seen) == len(runs):
                        break
        states = [(event.data["id"], event.data["state"]) for event in seen if event.kind == "run"]
        assert len(states) == len(set(states))
        assert "reset" not in [event.kind for event in seen]
        assert {run for run, state in states if state == "done"} == set(runs)
        verdicts = {
            event.data["id"]: event.data["verdict"] for event in seen if event.kind == "run"
        }
        assert [verdicts[run] for run in runs] == ["passed"] * 2 + ["failed"] * 4
        # Everything was seen: nothing comes.
        async with following(client, path, last) as stream:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.5):
                    async for event in stream:
                        raise AssertionError(event)
        assert (await client.get("/api/v1/events?batch=nothing")).status_code == 404


async def test_all_runs_are_followed_from_now_on(server: Served) -> None:
    async with client_of(server) as client:
        [old] = await started(client, "good")
        await over(client, [old])
        [going] = await started(client, "slow")
        await working(client, going)
        seen: list[Event] = []
        last = None
        async with following(client, "/api/v1/events") as stream:
            async for event in stream:
                seen.append(event)
                if event.kind == "run":
                    last = event.id
                    break
        assert (seen[-1].data["id"], seen[-1].data["state"]) == (going, "running")
        missed = await started(client, "good", "bad")
        await over(client, missed)
        await client.post(f"{RUNS}/{going}/cancel")
        again: dict[str, str] = {}
        async with following(client, "/api/v1/events", last) as stream:
            async for event in stream:
                assert event.kind != "reset"
                if event.kind == "run":
                    assert event.data["id"] not in again
                    again[event.data["id"]] = event.data["state"]
                if len(again) == 3:
                    break
        assert again == {going: "cancelled", missed[0]: "done", missed[1]: "done"}


async def test_a_run_of_another_process_is_followed_by_the_store(
    server: Served, place: Place
) -> None:
    """As when `opsdrill run` works beside `opsdrill serve`."""
    async with (
        LiveEngine.started(place, server.store, notify=lambda _line: None) as other,
        client_of(server) as client,
    ):
        started = await other.submit(LiveOrder(["drill"], ["steady"], "practice"))
        [spec] = started.runs
        events, batch = await asyncio.gather(
            all_of(client, f"{RUNS}/{spec.id}/events"),
            _until_done(client_path(started.batch), server),
        )
        assert events[-1].data["verdict"] == "failed"
        assert batch[-1].data["state"] == "done"
        refused = await client.post(f"{RUNS}/{spec.id}/cancel")
        assert refused.status_code == 200  # it is over


def client_path(batch: str) -> str:
    return f"/api/v1/events?batch={batch}"


async def _until_done(path: str, server: Served) -> list[Event]:
    found = []
    async with client_of(server) as client, following(client, path) as stream:
        async for event in stream:
            found.append(event)
            if event.data.get("state") == "done":
                break
    return found


async def test_a_run_of_another_process_is_not_cancelled_here(server: Served, place: Place) -> None:
    async with (
        LiveEngine.started(place, server.store, notify=lambda _line: None) as other,
        client_of(server) as client,
    ):
        [spec] = (await other.submit(LiveOrder(["drill"], ["slow"], "practice"))).runs
        refused = await client.post(f"{RUNS}/{spec.id}/cancel")
        assert refused.status_code == 409
        assert "this process does not work on it" in refused.json()["detail"]


async def test_followers_are_bounded_and_get_their_places_back(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followers, "OF_ONE", 3)
    monkeypatch.setattr(followers, "IN_ALL", 5)
    async with client_of(server) as admin, client_of(server, "read") as reader:
        [run] = await started(admin, "slow")
        path = f"{RUNS}/{run}/events"
        held = [following(admin, path) for _ in range(3)]
        for one in held:
            await one.__aenter__()
        refused = await admin.get(path)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "10")
        others = [following(reader, "/api/v1/events") for _ in range(2)]
        for one in others:
            await one.__aenter__()
        full = await reader.get(path)
        assert (full.status_code, full.headers["retry-after"]) == (503, "10")
        monkeypatch.setattr(guard, "AT_ONCE", 1)
        assert (await reader.get("/health")).status_code == 200  # followers are in nobody's way
        for one in (*held, *others):
            await one.__aexit__(None, None, None)
        async with asyncio.timeout(20):
            while not await _let_in(admin, path):
                await asyncio.sleep(0.05)


async def test_followers_leave_connections_for_others(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "CONNECTIONS", 20)
    async with client_of(server) as admin, client_of(server, "read") as reader:
        held = [following(admin, "/api/v1/events") for _ in range(10)]
        for one in held:
            await one.__aenter__()
        full = await reader.get("/api/v1/events")
        assert (full.status_code, full.headers["retry-after"]) == (503, "10")
        assert "10 others follow" in full.json()["detail"]
        for one in held:
            await one.__aexit__(None, None, None)


async def _let_in(client: httpx.AsyncClient, path: str) -> bool:
    async with client.stream("GET", path) as answer:
        return answer.status_code == 200


async def test_two_hundred_follow_at_once(server: Served) -> None:
    """Each gets everything, the last to come as the first."""
    async with client_of(server) as client:
        [run] = await started(client, "busy")
        head = client.build_request("GET", f"{RUNS}/{run}/events").headers["authorization"]
        asked = (
            f"GET {RUNS}/{run}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: {head}\r\n"
            "Connection: close\r\n\r\n"
        )
        found = await asyncio.gather(*(_counted(server, asked.encode()) for _ in range(200)))
        assert len(set(found)) == 1
        assert found[0] > 1500


async def _counted(server: Served, asked: bytes) -> int:
    """How many events with a place come, read as cheaply as can be."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(asked)
    count, rest = 0, b""
    while piece := await reader.read(65536):
        rest += piece
        count += rest.count(b"\nid: ")
        rest = rest[-4:]
    writer.close()
    return count


async def test_one_who_hears_nothing_is_told_that_it_still_follows(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(followers, "QUIET_SECONDS", 0.1)
    async with client_of(server) as client:
        [run] = await started(client, "slow")
        await working(client, run)
        async with following(client, f"{RUNS}/{run}/events") as stream:
            events = stream.__aiter__()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(3):
                    while True:
                        await events.__anext__()
            assert stream.pings


async def test_who_follows_comes_to_the_end_when_the_server_ends(tmp_path: Path) -> None:
    """And what was running is cancelled, its hosts given back first, which is still told."""
    async with served(tmp_path, placed=busy_place) as server, client_of(server) as client:
        [run] = await started(client, "slow")
        await working(client, run)
        following_run = asyncio.create_task(all_of(client, f"{RUNS}/{run}/events"))
        following_all = asyncio.create_task(all_of(client, "/api/v1/events"))
        await asyncio.sleep(0.3)
        server.brake.pull()
        events = await following_run
        await following_all
    assert events[-1].data["state"] == "cancelled"


async def test_what_a_run_waits_for_is_told_live_and_in_listings(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lasting host is one run's at a time; the other says who has it."""
    monkeypatch.setattr(FakeDriver, "throw_away", False)
    async with client_of(server) as client:
        [first] = await started(client, "slow")
        await working(client, first)
        [second] = await started(client, "good")
        async with following(client, f"{RUNS}/{second}/events") as stream:
            async for event in stream:
                if event.kind == "step":
                    assert event.data["line"].startswith(f"waiting for web-01, held by run {first}")
                    assert event.id is None
                    break
        told = (await client.get(f"{RUNS}/{second}")).json()
        assert told["waits_for"].startswith("waiting for web-01, held by run")
        listed = (await client.get(RUNS)).json()["runs"][0]
        assert (listed["id"], listed["reason"]) == (second, told["waits_for"])
        leases = (await client.get("/api/v1/leases")).json()["leases"]
        assert [(one["run"], one["state"], one["hosts"]) for one in leases] == [
            (first, "held", ["web-01"]),
            (second, "waiting", ["web-01"]),
        ]
        assert leases[1]["waits_for"] == told["waits_for"]
        await client.post(f"{RUNS}/{first}/cancel")
        assert (await over(client, [second]))[0]["verdict"] == "passed"
        assert (await client.get("/api/v1/leases")).json() == {"leases": []}


async def test_one_whose_place_is_lost_is_told_so(server: Served) -> None:
    """It lists the runs again, and misses nothing from there."""
    async with client_of(server) as client:
        answer = await client.post(RUNS, json=order("good", repeat=3))
        runs = [run["id"] for run in answer.json()["runs"]]
        await over(client, runs)
        path = f"/api/v1/events?batch={answer.json()['batch']}"
        last = None
        async with following(client, path) as stream:
            async for event in stream:
                last = event.id
                if event.data["id"] == runs[-1]:
                    break
        editor = client_of(server, "edit")
        assert (await editor.delete(f"{RUNS}/{runs[0]}")).status_code == 204
        await editor.aclose()
        async with following(client, path, last) as stream:
            seen = []
            async for event in stream:
                seen.append((event.kind, event.data.get("id")))
                if len(seen) == 3:
                    break
        assert seen == [("reset", None), ("run", runs[1]), ("run", runs[2])]


async def test_a_run_that_is_deleted_while_it_is_followed_is_no_defect(server: Served) -> None:
    async with client_of(server) as client, client_of(server, "edit") as editor:
        [run] = await started(client, "slow")
        await working(client, run)
        reading = asyncio.create_task(all_of(client, f"{RUNS}/{run}/events"))
        await asyncio.sleep(0.3)
        await client.post(f"{RUNS}/{run}/cancel")
        await editor.delete(f"{RUNS}/{run}")
        async with asyncio.timeout(20):
            await reading


@pytest.mark.parametrize("with_cookie", [False, True], ids=["token", "session"])
async def test_who_holds_a_token_that_is_over_is_told_nothing_more(
    server: Served, monkeypatch: pytest.MonkeyPatch, with_cookie: bool
) -> None:
    """[A2.4] Whoever follows with a good one goes on."""
    monkeypatch.setattr(events, "KNOWN_SECONDS", 0.0)
    access = Access(server.store.access())
    leaked = access.create("leaked", "read", days=None, by=None)
    headers = {"authorization": f"Bearer {leaked.secret}"}
    async with client_of(server) as client, httpx.AsyncClient(base_url=server.address) as other:
        if with_cookie:
            login = await other.post("/api/v1/session", json={"token": leaked.secret})
            assert login.status_code == 201
        else:
            other.headers.update(headers)
        async with following(other, "/api/v1/events") as stream:
            [first] = await started(client, "good")
            await over(client, [first])
            access.revoke(leaked.token.id)
            [second] = await started(client, "good")
            async with asyncio.timeout(20):
                told_to_it = {event.data.get("id") async for event in stream}
        assert first in told_to_it
        assert second not in told_to_it
        assert (await other.get("/api/v1/events")).status_code == 401
        await over(client, [second])
