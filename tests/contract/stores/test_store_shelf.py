"""The shelf: scenarios by key, versioned by content, in every store."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opsdrill.errors import Conflict, NotThere, StoreError, UsageError
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec, StoredFile
from opsdrill.model.scenario import HostSpec, Scenario
from opsdrill.store.shelf import KeptScenario, ScenarioRow
from opsdrill.store.store import Store

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def scenario(key: str = "disk-full", title: str = "A full disk", *tags: str) -> Scenario:
    hosts = (HostSpec(name="web-01"), HostSpec(name="db-01"))
    return Scenario(key=key, title=title, ticket_title="Help", tags=tags, hosts=hosts)


def keys(store: Store, **narrowed: str) -> list[str]:
    return [row.key for row in store.shelf().page(**narrowed).rows]  # type: ignore[arg-type]


def file_of(store: Store, content: bytes) -> StoredFile:
    return StoredFile(source="a.sh", digest=store.put_file(content), size=len(content))


def test_a_scenario_is_kept_and_read_back(
    make_store: Callable[[Callable[[], datetime]], Store],
) -> None:
    store = make_store(lambda: NOON)
    one = scenario("disk-full", "A full disk", "storage", "linux")
    kept = store.shelf().create(one, "v1", by="mona")
    assert kept == KeptScenario("disk-full", 1, "v1", one, (), NOON, NOON, "mona")
    assert store.shelf().get("disk-full") == kept
    assert store.shelf().get("disk-full", 1) == kept
    assert store.shelf().page().rows == (
        ScenarioRow(
            "disk-full", "A full disk", ("storage", "linux"), ("web-01", "db-01"), 0, 1, "v1",
            NOON, "mona",
        ),
    )  # fmt: skip


def test_a_key_is_taken_once(store: Store) -> None:
    store.shelf().create(scenario(), "v1")
    with pytest.raises(Conflict, match="'disk-full' is there already"):
        store.shelf().create(scenario(), "v2")
    assert store.shelf().get("disk-full").version == "v1"


def test_an_edit_makes_the_next_version_and_the_earlier_stay(
    make_store: Callable[[Callable[[], datetime]], Store],
) -> None:
    now = [NOON]
    store = make_store(lambda: now[0])
    shelf = store.shelf()
    shelf.create(scenario(), "v1", by="mona")
    now[0] += timedelta(hours=1)
    edited = scenario(title="A disk that is full")
    kept = shelf.replace("disk-full", edited, "v2", by="lisa", expected=1)
    assert (kept.number, kept.version, kept.by) == (2, "v2", "lisa")
    assert (kept.created_at, kept.changed_at) == (NOON, now[0])
    assert shelf.get("disk-full") == kept
    assert shelf.get("disk-full", 1).scenario == scenario()
    assert [(v.number, v.version, v.by, v.created_at) for v in shelf.versions("disk-full")] == [
        (2, "v2", "lisa", now[0]),
        (1, "v1", "mona", NOON),
    ]
    (row,) = shelf.page().rows
    assert (row.title, row.number, row.version, row.by) == (edited.title, 2, "v2", "lisa")


def test_the_same_content_makes_no_version(store: Store) -> None:
    first = store.shelf().create(scenario(), "v1", by="mona")
    assert store.shelf().replace("disk-full", scenario(), "v1", by="lisa") == first
    assert len(store.shelf().versions("disk-full")) == 1


def test_an_edit_of_a_version_that_was_seen_before_a_change_is_refused(store: Store) -> None:
    """Optimistic locking: who saw number 1 changes nothing of number 2."""
    shelf = store.shelf()
    shelf.create(scenario(), "v1")
    shelf.replace("disk-full", scenario(title="b"), "v2", expected=1)
    with pytest.raises(Conflict, match="number 2, not 1"):
        shelf.replace("disk-full", scenario(title="c"), "v3", expected=1)
    with pytest.raises(Conflict, match="number 2, not 1"):
        shelf.delete("disk-full", expected=1)
    assert shelf.get("disk-full").version == "v2"
    assert shelf.replace("disk-full", scenario(title="c"), "v3").number == 3


def test_of_many_editors_who_saw_the_same_one_succeeds(store: Store) -> None:
    store.shelf().create(scenario(), "v0")

    def edit(editor: int) -> bool:
        try:
            store.shelf().replace(
                "disk-full", scenario(title=f"{editor}"), f"v{editor}", expected=1
            )
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(edit, range(1, 9))) == [False] * 7 + [True]
    assert store.shelf().get("disk-full").number == 2


def test_of_many_who_create_one_key_one_succeeds(store: Store) -> None:
    def create(who: int) -> bool:
        try:
            store.shelf().create(scenario(title=f"{who}"), f"v{who}")
        except Conflict:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(create, range(8))) == [False] * 7 + [True]


def test_a_key_is_for_good(store: Store) -> None:
    store.shelf().create(scenario(), "v1")
    with pytest.raises(Conflict, match="cannot become 'other'"):
        store.shelf().replace("disk-full", scenario("other"), "v2")


@pytest.mark.parametrize("key", ["nothing", "", "a\0b", "\ud800", "' OR 1=1 --"], ids=ascii)
def test_what_is_not_there_is_said_to_be_not_there(store: Store, key: str) -> None:
    shelf = store.shelf()
    for call in (
        lambda: shelf.get(key),
        lambda: shelf.get(key, 1),
        lambda: shelf.versions(key),
        lambda: shelf.delete(key),
    ):
        with pytest.raises(NotThere):
            call()
    with pytest.raises(NotThere):
        shelf.replace("nothing", scenario("nothing"), "v")


@pytest.mark.parametrize("number", [0, 2, -1, 2**70])
def test_a_version_that_is_not_there(store: Store, number: int) -> None:
    store.shelf().create(scenario(), "v1")
    with pytest.raises(NotThere, match="version"):
        store.shelf().get("disk-full", number)


def test_deleted_is_gone_with_all_versions(store: Store) -> None:
    shelf = store.shelf()
    shelf.create(scenario("disk-full", "t", "storage"), "v1")
    shelf.replace("disk-full", scenario(title="b"), "v2")
    shelf.create(scenario("other"), "v1")
    shelf.delete("disk-full", expected=2)
    assert keys(store) == ["other"]
    with pytest.raises(NotThere):
        shelf.get("disk-full", 1)
    assert shelf.create(scenario(), "v9").number == 1
    assert len(shelf.versions("disk-full")) == 1


def test_listings_are_by_key_in_pages_and_narrowed(store: Store) -> None:
    for n in range(7):
        tags = ("even",) if n % 2 == 0 else ("odd", "Weiß%_")
        store.shelf().create(scenario(f"drill-{n}", f"Straße {n} \\ _", *tags), f"v{n}")
    page = store.shelf().page(limit=3)
    seen = [row.key for row in page.rows]
    while page.cursor is not None:
        page = store.shelf().page(limit=3, cursor=page.cursor)
        seen += [row.key for row in page.rows]
    assert seen == [f"drill-{n}" for n in range(7)]
    assert keys(store, tag="even") == [f"drill-{n}" for n in range(0, 7, 2)]
    assert keys(store, tag="eve") == []
    assert keys(store, search="STRASSE 3") == ["drill-3"]
    assert keys(store, search="DRILL-4") == ["drill-4"]
    assert keys(store, search="weiss%_") == ["drill-1", "drill-3", "drill-5"]
    assert keys(store, search="%") == ["drill-1", "drill-3", "drill-5"]
    assert len(keys(store, search="\\")) == 7
    assert keys(store, search="5", tag="odd") == ["drill-5"]
    assert keys(store, search="5", tag="even") == []
    assert len(keys(store, search="")) == 7
    assert [kept.key for kept in store.shelf().all()] == seen
    with pytest.raises(UsageError, match="1 to 1000"):
        store.shelf().page(limit=0)
    for cursor in ("", "x", "WzEsMl0=", "\ud800"):
        with pytest.raises(UsageError, match="cursor"):
            store.shelf().page(cursor=cursor)


def test_an_edit_changes_what_a_scenario_is_found_by(store: Store) -> None:
    store.shelf().create(scenario("disk-full", "A full disk", "storage"), "v1")
    store.shelf().replace("disk-full", scenario("disk-full", "A slow net", "network"), "v2")
    assert keys(store, tag="storage") == keys(store, search="full disk") == []
    assert keys(store, tag="network") == keys(store, search="slow") == ["disk-full"]


def test_all_goes_on_over_many(store: Store) -> None:
    wanted = [f"drill-{n:03}" for n in range(205)]
    for key in wanted:
        store.shelf().create(scenario(key), "v1")
    assert [kept.key for kept in store.shelf().all()] == wanted


@pytest.mark.parametrize("text", ["nul\0", "\ud83d", "\\u0000", "x" * 100_000], ids=range(4))
def test_any_text_reads_back_as_it_was(store: Store, text: str) -> None:
    one = scenario("disk-full", text, text, text)
    kept = store.shelf().create(one, text, by=text)
    assert store.shelf().get("disk-full") == kept
    (row,) = store.shelf().page(search=text[:1000], tag=text).rows
    assert (row.title, row.tags, row.version, row.by) == (text, (text, text), text, text)


@given(text=st.text(st.characters(codec=None), min_size=1), other=st.text())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_texts_are_told_apart(store: Store, text: str, other: str) -> None:
    """By property: what is found by a tag has that tag, whatever characters are in it."""
    if "drill" in keys(store):
        store.shelf().delete("drill")
    if text.strip():
        store.shelf().create(scenario("drill", "t", text), "v")
        assert keys(store, tag=text) == ["drill"]
        assert keys(store, tag=other) == (["drill"] if other == text else [])
        assert keys(store, search=text) == ["drill"]


def test_a_support_file_stays_while_any_version_or_run_uses_it(store: Store) -> None:
    one, two = file_of(store, b"one"), file_of(store, b"two")
    store.shelf().create(scenario(), "v1", [one])
    kept = store.shelf().replace("disk-full", scenario(), "v2", [two])
    assert kept.files == (two,)
    assert store.shelf().get("disk-full", 1).files == (one,)
    run = RunSpec(
        id="r1", scenario=scenario(), scenario_version="v2", files=(two,), created_at=NOON,
        agent=AgentChoice(adapter="noop"), lab=LabChoice(name="sandbox", driver="sandbox"),
    )  # fmt: skip
    store.plan(run)
    store.shelf().delete("disk-full")
    with pytest.raises(KeyError):
        store.file(one.digest)
    assert store.file(two.digest) == b"two"
    store.delete("r1")
    with pytest.raises(KeyError):
        store.file(two.digest)


def test_a_run_that_goes_leaves_the_files_of_the_shelf(store: Store) -> None:
    one = file_of(store, b"one")
    store.shelf().create(scenario(), "v1", [one])
    run = RunSpec(
        id="r1", scenario=scenario(), scenario_version="v1", files=(one,), created_at=NOON,
        agent=AgentChoice(adapter="noop"), lab=LabChoice(name="sandbox", driver="sandbox"),
    )  # fmt: skip
    store.plan(run)
    store.delete("r1")
    assert store.file(one.digest) == b"one"


@pytest.mark.parametrize("digest", ["0" * 64, "nul\0", "../../etc/passwd", "\ud800"], ids=ascii)
def test_a_support_file_that_was_never_put_is_named(store: Store, digest: str) -> None:
    lost = StoredFile(source="lost.sh", digest=digest, size=1)
    with pytest.raises(StoreError, match=r"scenario disk-full needs the support file lost\.sh"):
        store.shelf().create(scenario(), "v1", [lost])
    assert keys(store) == []
    store.shelf().create(scenario(), "v1")
    with pytest.raises(StoreError, match=r"lost\.sh"):
        store.shelf().replace("disk-full", scenario(), "v2", [lost])
    assert store.shelf().get("disk-full").number == 1
