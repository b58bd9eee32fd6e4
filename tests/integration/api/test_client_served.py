"""The client against a real server: the example of the pages, events cut off, uploads, edits."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.integration.api.server_program import HANGS, serving
from tests.unit.api.drills import small_place

from opsdrill.client import (
    ANY,
    AsyncClient,
    Client,
    Conflict,
    Event,
    NotAllowed,
    NotThere,
    Refused,
    Unreachable,
)
from opsdrill.errors import UsageError
from opsdrill.wire.grading import JOB
from opsdrill.wire.scenarios import EXAMPLE

EXAMPLE_PROGRAM = Path(__file__).parents[3] / "docs" / "examples" / "api_run.py"


class Breaking:
    """A relay to a server, whose connections can be broken.

    Attributes:
        after: bytes of an answer's stream after which a connection is broken; 0: never.
        broken: how many were.
    """

    def __init__(self, port: int) -> None:
        self._to = port
        self._relays = set[asyncio.Task[None]]()
        self.after = 0
        self.broken = 0
        self.heads: list[bytes] = []

    async def __aenter__(self) -> Breaking:
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for relay in self._relays:
            relay.cancel()
        await asyncio.gather(*self._relays, return_exceptions=True)

    def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._relays.add(asyncio.create_task(self._relayed(reader, writer)))

    async def _relayed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            self.heads.append(head)
            back.write(head)
            passed = 0
            while piece := await there.read(1024):
                passed += len(piece)
                writer.write(piece)
                if self.after and passed > self.after:
                    self.broken += 1
                    break
        finally:
            for one in (writer, back):
                one.close()
            for one in (writer, back):
                with suppress(OSError):
                    await one.wait_closed()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The address of `opsdrill serve`, and the admin's token."""
    place = small_place(tmp_path)
    (place.folder / "opsdrill.toml").write_text('agent-config = "agents.yaml"\n')
    with serving(tmp_path) as (_process, address, secret, _notes):
        yield address, secret


@pytest.fixture
def drills(server: tuple[str, str]) -> Iterator[Client]:
    with Client(*server) as client:
        yield client


@pytest.fixture
async def later(server: tuple[str, str]) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(*server) as client:
        yield client


def test_the_example_of_the_pages_does_what_it_says(
    server: tuple[str, str], drills: Client
) -> None:
    """Started, followed, cancelled, retried, graded again with an edited rule, as role `run`."""
    token = drills.create_token("ci", "run").secret
    done = subprocess.run(
        [sys.executable, str(EXAMPLE_PROGRAM), "drill", "bad", "slow", "practice", "broken"],
        env={**os.environ, "OPSDRILL_URL": server[0], "OPSDRILL_TOKEN": token},
        capture_output=True, text=True, timeout=HANGS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "preflight running"
    assert "verdict: failed" in lines
    assert any(line.startswith("  mended: failed. ") for line in lines)
    assert "state: cancelled" in lines
    assert any(line.startswith("retried as ") for line in lines)
    first = next(iter(drills.every_run(labels={"from": "ci"}))).id
    assert any(line.startswith(f"{first}, [0] mended: failed -> error") for line in lines)
    code = EXAMPLE_PROGRAM.read_text().split('"""', 2)[2]
    assert len(code.strip().splitlines()) <= 40


async def test_one_of_two_followers_is_cut_off_and_misses_nothing(
    server: tuple[str, str], later: AsyncClient
) -> None:
    """Both hear the same, each event once, though the one's connections break all the time."""
    address, secret = server
    async with Breaking(int(address.rpartition(":")[2])) as relay:
        relay.after = 3000
        async with AsyncClient(f"http://127.0.0.1:{relay.port}", secret) as cut:
            [run] = (await later.start_runs(["drill"], ["good"], lab="practice")).runs
            whole, pieced = await asyncio.gather(_heard(later, run.id), _heard(cut, run.id))
    assert relay.broken >= 1
    assert any(b"last-event-id: " in head for head in relay.heads)
    kept = [event for event in whole if event.id is not None]
    assert [event for event in pieced if event.id is not None] == kept
    assert pieced[-1].kind == "result"
    assert pieced[-1].data["verdict"] == "passed"


async def _heard(client: AsyncClient, run: str) -> list[Event]:
    async with asyncio.timeout(HANGS):
        return [event async for event in client.follow_run(run)]


def test_nothing_is_told_behind_the_result(drills: Client) -> None:
    [run] = drills.start_runs(["drill"], ["good"], lab="practice").runs
    *_, result = drills.follow_run(run.id)
    assert list(drills.follow_run(run.id, last=result.id)) == []


def test_a_batch_is_followed(drills: Client) -> None:
    started = drills.start_runs(["drill"], ["good"], lab="practice", repeat=2)
    done = set[str]()
    for event in drills.follow_runs(batch=started.batch):
        if event.kind == "run" and event.data["state"] == "done":
            done.add(event.data["id"])
        if len(done) == 2:
            break
    assert drills.read_batch(started.batch).verdicts == {"passed": 2}


def test_the_same_key_starts_once_and_every_start_has_its_own(drills: Client) -> None:
    twice = [
        drills.start_runs(["drill"], ["noop"], lab="practice", idempotency_key="k")
        for _ in range(2)
    ]
    assert twice[0] == twice[1]
    assert drills.start_runs(["drill"], ["noop"], lab="practice").batch != twice[0].batch
    with pytest.raises(Conflict):
        drills.start_runs(["drill"], ["good"], lab="practice", idempotency_key="k")


def test_a_scenario_is_edited_by_what_was_seen(drills: Client) -> None:
    made = drills.create_scenario({**EXAMPLE, "key": "mine"})
    patched = drills.patch_scenario("mine", {"title": "Another"}, etag=made.etag)
    assert (patched.scenario.title, patched.number) == ("Another", 2)
    with pytest.raises(Conflict) as lost:
        drills.replace_scenario("mine", made.scenario, etag=made.etag)
    assert lost.value.status == 412
    ruled = drills.add_rule("mine", patched.scenario.validation[0], etag=patched.etag, at=0)
    assert len(ruled.scenario.validation) == 3
    with_file = drills.put_scenario_file("mine", "files/a b", b"content", etag=ANY)
    assert [file.path for file in with_file.files] == ["files/a b"]
    assert drills.read_scenario_file("mine", "files/a b") == b"content"
    packed = drills.export_scenario("mine", format="zip")
    assert drills.import_scenario(packed, etag=with_file.etag).version == with_file.version
    assert drills.list_scenario_versions("mine").versions[0].number >= 4
    drills.delete_scenario("mine", etag=ANY)
    with pytest.raises(NotThere):
        drills.read_scenario("mine")


def test_what_is_wrong_is_told_with_its_place(drills: Client) -> None:
    with pytest.raises(Refused) as refused:
        drills.create_scenario("key: x\ntitle: X\nticket_title: T\nhosts: [a]\nvalidation: [{}]\n")
    assert refused.value.status == 422
    assert refused.value.problem.errors[0].path.startswith("validation[0]")
    with pytest.raises(UsageError, match="repeat"):
        drills.start_runs(["drill"], ["good"], repeat=0)


def test_records_are_streamed_from_a_file_and_graded(drills: Client, tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    file.write_text(json.dumps(JOB))
    drills.create_scenario({**EXAMPLE, "key": "mine"})
    graded = drills.grade_record("mine", file)
    assert graded.results[0].commands == 1
    with_answers = drills.grade_record(
        "mine", JOB,
        answers=[{"on": "web-01", "run": "test ! -e /srv/full/core", "exit_code": 0}],
    )  # fmt: skip
    assert with_answers.results[0].result.verdict == "passed"
    kept = drills.keep_records(file, scenario="mine", name="night")
    assert [each.run for each in kept.runs] == [
        each.run for each in drills.keep_records(file, scenario="mine", name="night").known
    ]
    preview = drills.regrade_runs(runs=[kept.runs[0].run], preview=True)
    assert drills.read_regrade(preview.id, wait=30).state == "done"
    with pytest.raises(UsageError, match="cannot be read"):
        drills.keep_records(tmp_path / "nothing")


def test_new_grades_are_kept_for_an_editor_alone(server: tuple[str, str], drills: Client) -> None:
    [run] = drills.start_runs(["drill"], ["bad"], lab="practice").runs
    list(drills.follow_run(run.id))
    rules = drills.read_run_scenario(run.id).scenario
    rules["validation"] = rules["validation"][1:]
    rules["validation"][0]["negate"] = True
    low = Client(server[0], drills.create_token("ci", "run").secret)
    with low, pytest.raises(NotAllowed):
        low.regrade_runs(runs=[run.id], rules=rules, preview=False)
    begun = drills.regrade_runs(runs=[run.id], rules=rules, preview=False)
    done = drills.read_regrade(begun.id, wait=30)
    assert (done.state, done.changed) == ("done", 1)
    assert [grade.cause for grade in drills.list_grades(run.id).grades] == ["run", "regrade"]


async def test_listings_go_through_all_pages(later: AsyncClient, drills: Client) -> None:
    started = await later.start_runs(["drill"], ["noop"], lab="practice", repeat=7)
    wanted = {run.id for run in started.runs}
    found = [run.id async for run in later.every_run(batch=started.batch, limit=2)]
    assert (set(found), len(found)) == (wanted, 7)
    assert await asyncio.to_thread(
        lambda: {run.id for run in drills.every_run(batch=started.batch, limit=3)}
    ) == wanted  # fmt: skip


def test_who_calls_and_who_may_not(server: tuple[str, str], drills: Client) -> None:
    assert drills.read_session().role == "admin"
    assert (drills.health().status, drills.ready().status) == ("alive", "ready")
    assert "# HELP" in drills.metrics()
    with Client(server[0], "od_wrong") as stranger, pytest.raises(NotAllowed) as refused:
        stranger.list_runs()
    assert refused.value.status == 401
    with pytest.raises(UsageError):
        drills.read_run("..")


def test_no_server_is_told_in_one_sentence() -> None:
    with Client("http://127.0.0.1:9", "t") as nobody, pytest.raises(Unreachable) as lost:
        nobody.health()
    assert lost.value.status == 0
