"""The engine of a process that stays: several labs, their secrets, and what a run is retried by."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.api.drills import OVER, small_place

from opsdrill.app.live import LiveEngine
from opsdrill.app.live_order import LiveOrder
from opsdrill.app.stores import opened_store
from opsdrill.app.wiring import Place
from opsdrill.errors import Conflict, StoreError
from opsdrill.hosts.drivers.fake import FakeDriver
from opsdrill.model.result import Result
from opsdrill.runner.engine import RunEvent
from opsdrill.store.store import Store

SECRET = "correct-horse-battery"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A place whose lab `guarded` has a secret, which the scenario's file and setup hold."""
    made = small_place(tmp_path)
    drill = made.folder / "scenarios" / "drill"
    (drill / "app.conf").write_text(f"password = {SECRET}\n")
    text = (drill / "scenario.yaml").read_text()
    (drill / "scenario.yaml").write_text(text.replace("run: break}", f"run: 'set {SECRET}'}}"))
    guarded = made.home / "labs" / "guarded"
    guarded.mkdir()
    (guarded / "answers.json").write_text(
        (made.home / "labs" / "practice" / "answers.json").read_text()
    )
    (guarded / "secret").write_text(SECRET)
    (guarded / "secret").chmod(0o600)
    (guarded / "lab.yaml").write_text(
        "driver: fake\noptions: {answers: answers.json}\nsecrets: {DB: {file: secret}}\n"
    )
    return made


@pytest.fixture
def store(place: Place) -> Iterator[Store]:
    with opened_store(place) as opened:
        yield opened


@pytest.fixture
async def live(place: Place, store: Store) -> AsyncIterator[LiveEngine]:
    async with LiveEngine.started(place, store, notify=lambda _line: None) as engine:
        yield engine


async def result(store: Store, run: str) -> Result:
    """The result of a run, once it is over."""
    async with asyncio.timeout(30):
        while store.get(run).state not in OVER:
            await asyncio.sleep(0.02)
    found = store.get(run).result
    assert found is not None
    return found


async def test_each_lab_has_its_own_secrets(
    live: LiveEngine, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept of a lab's runs has none; hosts get files and commands as they are."""
    given: list[bytes] = []
    made = FakeDriver.provision

    async def provision(self: FakeDriver, run: str, hosts: object) -> object:
        fleet = await made(self, run, hosts)  # type: ignore[arg-type]
        put = fleet.hosts["web-01"].put

        async def noted(path: str, content: bytes, **more: object) -> None:
            given.append(content)
            await put(path, content, **more)  # type: ignore[arg-type]

        fleet.hosts["web-01"].put = noted  # type: ignore[method-assign]
        return fleet

    monkeypatch.setattr(FakeDriver, "provision", provision)
    guarded = await live.submit(LiveOrder(["drill"], ["good"], "guarded"))
    open_one = await live.submit(LiveOrder(["drill"], ["good"], "practice"))
    for started in (guarded, open_one):
        assert (await result(store, started.runs[0].id)).verdict == "passed"
    assert given == [f"password = {SECRET}\n".encode()] * 2
    kept = store.get(guarded.runs[0].id).spec
    assert SECRET not in kept.model_dump_json()
    assert kept.masked == ("DB",)
    assert b"[masked:DB]" in store.file(kept.files[0].digest)
    assert SECRET in store.get(open_one.runs[0].id).spec.model_dump_json()


async def test_a_secret_that_was_changed_is_masked_under_both_values(
    live: LiveEngine, store: Store, place: Place
) -> None:
    """A server that stays learns the new one, and the old one is still nobody's business."""
    await result(store, (await live.submit(LiveOrder(["drill"], ["good"], "guarded"))).runs[0].id)
    (place.home / "labs" / "guarded" / "secret").write_text("another-long-secret")
    for agent, text in (("good", "another-long-secret"), ("bad", SECRET)):
        script = place.folder / f"{agent}.yaml"
        script.write_text(script.read_text().replace("resolve:", f"post: it is {text}\nresolve:"))
        started = await live.submit(LiveOrder(["drill"], [agent], "guarded"))
        await result(store, started.runs[0].id)
        record = store.record(started.runs[0].id)
        assert record is not None
        assert record.ticket.messages[-1].body == "it is [masked:DB]"


async def test_a_run_with_a_secret_in_it_is_not_planned_again_from_what_was_kept(
    live: LiveEngine, store: Store, place: Place
) -> None:
    answers = place.home / "labs" / "guarded" / "answers.json"
    answers.write_text(answers.read_text().replace("{", '{"silent": ["web-01"], ', 1))
    started = await live.submit(LiveOrder(["drill"], ["good"], "guarded"))
    assert (await result(store, started.runs[0].id)).verdict == "error"
    with pytest.raises(Conflict, match="secrets in it are masked"):
        await live.retry(started.runs[0].id)


async def test_one_lab_has_one_driver_however_often_it_is_used(
    live: LiveEngine, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made when it is first needed, and closed in the end."""
    made: list[FakeDriver] = []
    first = FakeDriver.__init__

    def counted(self: FakeDriver, *given: object, **more: object) -> None:
        made.append(self)
        first(self, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(FakeDriver, "__init__", counted)
    for _ in range(3):
        orders = [LiveOrder(["drill"], ["good"], lab) for lab in ("practice", "guarded")]
        for started in await asyncio.gather(*map(live.submit, orders)):
            await result(store, started.runs[0].id)
    assert len(made) == 2


async def test_files_with_secrets_are_forgotten_with_their_runs(
    live: LiveEngine, store: Store
) -> None:
    """A process that stays does not fill up."""
    started = await live.submit(LiveOrder(["drill"], ["good"], "guarded", repeat=2))
    assert len(live._room.files) == 1
    for run in started.runs:
        await result(store, run.id)
    async with asyncio.timeout(30):
        while await live.list():  # what is kept is told a moment later
            await asyncio.sleep(0.02)
    assert live._room.files == {}


async def test_who_listens_hears_of_all_runs_until_they_stop(
    live: LiveEngine, store: Store
) -> None:
    heard: list[RunEvent] = []
    stop = live.listen(heard.append)
    first = (await live.submit(LiveOrder(["drill"], ["good"], "practice"))).runs[0]
    await result(store, first.id)
    await asyncio.sleep(0.05)
    assert heard[-1].result is not None
    stop()
    count = len(heard)
    second = (await live.submit(LiveOrder(["drill"], ["good"], "practice"))).runs[0]
    await result(store, second.id)
    assert len(heard) == count


async def test_the_store_is_looked_after_while_others_die(
    place: Place, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process beside this one that dies leaves nothing that says `running` for ever."""
    from opsdrill.app import live as module
    from opsdrill.runner.owner import this_process

    monkeypatch.setattr(module, "LOOK_SECONDS", 0.05)
    notes: list[str] = []
    async with LiveEngine.started(place, store, notify=notes.append) as engine:
        started = await engine.submit(LiveOrder(["drill"], ["good"], "practice"))
        done = store.get((started.runs[0]).id).spec
        lost = done.model_copy(update={"id": "lost", "batch": "other"})
        here = this_process()
        gone = here.__class__(here.machine, "another boot", here.pid, here.started)
        store.plan(lost, gone)
        store.begin("lost", gone)
        found = await result(store, "lost")
        assert found.state == "interrupted"
        async with asyncio.timeout(30):
            while not any("lost" in line for line in notes):
                await asyncio.sleep(0.02)


async def test_a_run_whose_end_could_not_be_kept_is_interrupted_once_it_can(
    place: Place, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk was full when it ended: it does not say `running` until the process ends."""
    from opsdrill.app import live as module

    monkeypatch.setattr(module, "LOOK_SECONDS", 0.05)
    notes: list[str] = []
    full = True
    finish, interrupt = store.finish, store.interrupt

    def kept(call: Callable[..., None]) -> Callable[..., None]:
        def called(*given: object) -> None:
            if full:
                raise StoreError("the disk is full")
            call(*given)

        return called

    monkeypatch.setattr(store, "finish", kept(finish))
    monkeypatch.setattr(store, "interrupt", kept(interrupt))
    async with LiveEngine.started(place, store, notify=notes.append) as engine:
        run = (await engine.submit(LiveOrder(["drill"], ["good"], "practice"))).runs[0].id
        async with asyncio.timeout(30):
            while not any("disk is full" in line for line in notes):
                await asyncio.sleep(0.02)
        assert store.get(run).state == "running"
        full = False
        assert (await result(store, run)).state == "interrupted"
