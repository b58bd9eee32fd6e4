"""What all importers say in the same words: calls told anew, agents called, damaged lines."""

from __future__ import annotations

import pytest
from tests.unit.evidence.importers.in_memory import source_of, state_of, task_of

from opsdrill.evidence.transcripts.imported import Placing
from opsdrill.evidence.transcripts.ledger import Ledger
from opsdrill.evidence.transcripts.reading import items_of, rows_of
from opsdrill.evidence.transcripts.rows import DEPTH, too_deep
from opsdrill.evidence.transcripts.transcript import TOLD, Transcript


def transcript() -> Transcript:
    told = Transcript("x", "X", Placing(host="web-01"))
    told.ask("Mend it.")
    return told


def test_a_call_that_is_told_anew_keeps_its_place_and_result() -> None:
    """A revised call is the same call; a revised result replaces what was told before."""
    told = transcript()
    told.main.call("a", "shell", "sh", {"command": "old"})
    told.main.call("b", "shell", "sh", {"command": "b"})
    told.main.returned("a", output="x", exit_code=1)
    told.main.call("a", "other", "ignored", {})
    told.main.call("a", "shell", "sh", {"command": "new"}, revised=True)
    told.main.returned("a", output="y", exit_code=2)
    told.main.returned("b", output="x")
    told.main.returned("b", output="y", revised=True)
    first, second = task_of(told.imported()).tool_calls
    assert (first.command, first.output, first.exit_code) == ("new", "xy", 2)
    assert second.output == "y"


def test_a_call_that_changes_several_files() -> None:
    """One call of a tool becomes a call for each file; one file alone keeps the name."""
    told = transcript()
    main = told.main
    one, two = ("write_file", {"path": "/a"}), ("update_file", {"path": "/b"})
    assert main.call_files("p", "patch", [one, two]) == "p"  # type: ignore[list-item]
    assert main.call_files("q", "patch", [one]) == "q"  # type: ignore[list-item]
    assert main.waits_for("p")
    main.returned("p", outcome="failed", output="no")
    assert not main.waits_for("p")
    calls = task_of(told.imported()).tool_calls
    assert [(call.id, call.outcome, call.output) for call in calls] == [
        ("p/1", "failed", "no"),
        ("p/2", "failed", "no"),
        ("q", "failed", None),
    ]


def test_an_agent_that_was_called_and_is_not_there() -> None:
    """What another agent did is missing, unless its work is told."""
    for steps, state in ((True, "whole"), (False, "partial")):
        told = transcript()
        told.delegate("a1")
        if steps:
            told.work("a1").say("Done.")
            told.work("a1").description = "Go."
        told.end()
        assert state_of(told.imported(), "executed_commands") == state


def test_what_nobody_was_asked_is_unknown() -> None:
    """Without a request the description is unavailable; with some of them it is partial."""
    told = Transcript("x", "X", Placing(host="web-01"))
    told.main.say("Hm.")
    told.end()
    assert state_of(told.imported(), "task_description") == "unavailable"
    told.work("other").description = "Go."
    assert state_of(told.imported(), "task_description") == "partial"


def test_tasks_have_names_of_their_own() -> None:
    """Whatever agents are called, no two tasks have the same id."""
    told = Transcript("x", "X", Placing(host="web-01"))
    told.main.call("1", "shell", "sh", {"command": "id"}, host="web-02")
    told.main.call("2", "shell", "sh", {"command": "id"})
    told.work("main@web-02").say("Hm.")
    told.work("").say("Hm.")
    ids = [task.id for task in told.imported().record.tasks]
    assert ids == ["main", "main@web-02", "main@web-02#2", "agent"]


def test_nesting() -> None:
    """Arguments nested too deep are left out, wherever the depth is."""
    deep: object = 1
    for _ in range(DEPTH - 1):
        deep = {"a": [1, 2], "b": deep}
    assert not too_deep(deep)
    assert too_deep([1, deep])
    for _ in range(5000):
        deep = [deep]
    ledger = Ledger(TOLD)
    assert too_deep(deep)
    assert ledger.room(deep)


@pytest.mark.parametrize(
    ("data", "kept", "lost", "warned"),
    [
        (b'{"a":1}\n{"a":2}', 2, False, False),
        (b'{"a":1}\nnull\n7\n"x"\n[1]\n{"a":2}\n', 2, False, True),
        (b'{"a":1}\nno JSON\n{"a":2}\n', 2, True, True),
        (b'{"a":1}\nno JSON\n', 1, False, True),
        (b'{"a":1}\n{"a":', 1, True, True),
        (b'{"a":1}\n["', 1, True, True),
        (b"", 0, False, False),
    ],
)
def test_lines(data: bytes, kept: int, lost: bool, warned: bool) -> None:
    """A line that is no JSON is missed; a foreign last one, and other JSON, is only told of."""
    ledger = Ledger(TOLD)
    assert len(list(rows_of(source_of(data), ledger))) == kept
    assert bool(ledger.lost) == lost
    assert bool(list(ledger.warnings())) == warned


def test_items() -> None:
    """Of a document that breaks off the whole items are read, and the rest is missed."""
    ledger = Ledger(TOLD)
    assert list(items_of(source_of(b'{"m":[{"a":1},2,{"a":'), "m.item", ledger)) == [{"a": 1}]
    assert set(ledger.lost) == TOLD
    assert "something in m is no object (item 2 of m)" in list(ledger.warnings())


@pytest.mark.parametrize(
    ("data", "shape"),
    [
        (b"", "an empty file"),
        (b"no JSON", "no JSON"),
        (b"<html>", "no JSON"),
        (b"[]", "a JSON list of no objects"),
        (b'[{"role": 1}, {"id": 2}]', "a JSON list of objects; one has the keys role, id"),
        (b"{}", "JSON without any key"),
        (b'"text"', "JSON without any key"),
        (b'{"a": {"b": 1}}', "a JSON document with the keys a"),
        (b'{"a": 1}\n{"b": 1}\n', "JSON lines; the first has the keys a"),
    ],
)
def test_what_a_file_looks_like(data: bytes, shape: str) -> None:
    """Of a file that no importer knows it is said what it looks like."""
    assert source_of(data).glimpse.shape == shape
