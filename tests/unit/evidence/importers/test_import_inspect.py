"""Logs of Inspect AI, fact by fact."""

from __future__ import annotations

import io
import json
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue
from tests.unit.evidence.importers.in_memory import (
    Row,
    calls_of,
    commands_of,
    golden,
    job_of,
    knows,
    read,
    state_of,
    status_of,
    task_of,
)

from opsdrill.errors import InvalidInput, OpsDrillError, UsageError
from opsdrill.evidence.importers.importer import IMPORTERS
from opsdrill.evidence.importers.inspect import parts as inspect_parts
from opsdrill.evidence.transcripts import zips
from opsdrill.evidence.transcripts.imported import Imported, Placing
from opsdrill.evidence.transcripts.source import Source

FORMAT = "inspect"
LOG = golden(FORMAT, "log.json")
HASH = "0123456789abcdef0123456789abcdef"
EVAL: Row = {"task": "t", "model": "m/x", "packages": {"inspect_ai": "0.3.1"}}


def tool(id: str = "c1", cmd: JsonValue = "uptime", **more: JsonValue) -> Row:
    row: Row = {
        "event": "tool",
        "timestamp": "2026-02-10T09:00:01+01:00",
        "completed": "2026-02-10T09:00:02+01:00",
        "id": id,
        "function": "bash",
        "arguments": {"cmd": cmd},
        "result": "fine",
    }
    return row | more


def model(said: JsonValue, id: str = "m1", calls: JsonValue = None, **more: JsonValue) -> Row:
    message: Row = {"id": id, "role": "assistant", "content": said, "tool_calls": calls}
    row: Row = {
        "event": "model",
        "timestamp": "2026-02-10T09:00:00+01:00",
        "model": "m/x",
        "output": {"choices": [{"message": message, "stop_reason": "stop"}]},
    }
    return row | more


def sample(*events: JsonValue, **more: JsonValue) -> Row:
    row: Row = {"id": 1, "epoch": 1, "input": "Mend it.", "messages": [], "events": list(events)}
    return row | more


def log(*samples: JsonValue, **more: JsonValue) -> bytes:
    row: Row = {"version": 2, "status": "success", "eval": EVAL, "samples": list(samples)}
    return json.dumps(row | more).encode()


def archive(files: Row) -> Source:
    """An archive of JSON files."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as made:
        for name, value in files.items():
            made.writestr(name, json.dumps(value))
    return in_memory(stream.getvalue(), frozenset(files))


def in_memory(data: bytes, members: frozenset[str]) -> Source:
    return Source("x.eval", lambda: io.BytesIO(data), members)


def unpacked(source: Source) -> list[Imported]:
    importer = IMPORTERS.get(FORMAT)()
    assert importer.knows(source.glimpse)
    return list(importer.read(source, Placing(host="web-01")))


START: Row = {"version": 2, "eval": EVAL}


def test_commands_are_tool_events_of_bash() -> None:
    """`event == "tool"`, `function == "bash"`, the command is `arguments.cmd`."""
    job = job_of(FORMAT, log(sample(tool(), model("Done."))))
    [call] = calls_of(job)
    assert (call.kind, call.command, call.outcome, call.output) == (
        "shell",
        "uptime",
        "ran",
        "fine",
    )
    assert (
        call.started_at is not None and call.started_at.isoformat() == "2026-02-10T08:00:01+00:00"
    )
    assert call.ended_at is not None and call.ended_at.isoformat() == "2026-02-10T08:00:02+00:00"
    assert state_of(job, "executed_commands") == "whole"


def test_python_code_is_a_command() -> None:
    """Of the python tool the command is `arguments.code`."""
    job = job_of(FORMAT, log(sample(tool(function="python", arguments={"code": "print(1)"}))))
    assert commands_of(job) == ["print(1)"]


def test_sandbox_events_are_the_harness() -> None:
    """`event == "sandbox"` is what the harness runs, never a command of the agent."""
    sandbox: Row = {"event": "sandbox", "action": "exec", "cmd": "rm -rf /", "result": 0}
    job = job_of(FORMAT, log(sample(tool(), sandbox, model("Done."))))
    assert commands_of(job) == ["uptime"]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ("parsing", "failed"),
        ("timeout", "timed_out"),
        ("unicode_decode", "ran"),
        ("permission", "failed"),
        ("file_not_found", "failed"),
        ("is_a_directory", "failed"),
        ("limit", "timed_out"),
        ("approval", "refused"),
        ("unknown", "failed"),
        ("output_limit", "ran"),
        ("something_new", "failed"),
    ],
)
def test_what_errors_mean(error: str, outcome: str) -> None:
    """Each type of a tool's error is an outcome; its message is the output where there is none."""
    event = tool(result="", error={"type": error, "message": "why"})
    [call] = calls_of(job_of(FORMAT, log(sample(event))))
    assert (call.outcome, call.output) == (outcome, "why")


@pytest.mark.parametrize("scheme", ["attachment", "tc"])
def test_long_texts_stand_in_attachments(scheme: str) -> None:
    """`attachment://HASH` (formerly `tc://`) is replaced, in commands, messages and results."""
    ref = f"{scheme}://{HASH}"
    events = (tool(cmd=ref, result=ref), model([{"type": "text", "text": ref}]))
    job = job_of(FORMAT, log(sample(*events, attachments={HASH: "long " * 30, "x": "y"})))
    assert commands_of(job) == ["long " * 30]
    assert calls_of(job)[0].output == "long " * 30
    assert task_of(job).messages[0].text == "long " * 30


def test_attachments_may_stand_before_what_needs_them() -> None:
    """The order of a sample's keys does not matter."""
    first: Row = {"attachments": {HASH: "id"}}
    content = first | sample(tool(cmd=f"attachment://{HASH}"))
    assert commands_of(job_of(FORMAT, log(content))) == ["id"]


def test_a_missing_attachment_is_a_gap() -> None:
    """A command whose text is not there is no command but a gap; a result is not evidence."""
    job = job_of(FORMAT, log(sample(tool(cmd=f"attachment://{HASH}"), model("x"))))
    assert [(call.kind, call.tool) for call in calls_of(job)] == [("other", "bash")]
    assert state_of(job, "executed_commands") == "partial"
    job = job_of(FORMAT, log(sample(tool(result=f"attachment://{HASH}"), model("x"))))
    assert state_of(job, "executed_commands") == "whole"


def test_each_epoch_of_each_sample_is_a_job() -> None:
    """Sample ids are whole numbers or texts, and epochs repeat them."""
    found = read(
        FORMAT,
        log(sample(tool(cmd="a")), sample(tool(cmd="b"), epoch=2), sample(tool(cmd="c"), id="x/y")),
    )
    assert [(job.name, commands_of(job)) for job in found] == [
        ("1_epoch_1", ["a"]),
        ("1_epoch_2", ["b"]),
        ("x/y_epoch_1", ["c"]),
    ]
    twice = read(FORMAT, log(sample(), sample(id="1"), sample()))
    assert [job.name for job in twice] == ["1_epoch_1", "1_epoch_1#2", "1_epoch_1#3"]
    assert job_of(FORMAT, log(sample())).name == ""


def test_an_archive_has_a_file_for_each_sample() -> None:
    """`.eval`: `header.json`, `samples/ID_epoch_N.json`, in the archive's order."""
    files: Row = {
        "header.json": START | {"status": "success"},
        "samples/b_epoch_1.json": sample(tool(cmd="b"), id="b"),
        "samples/a_epoch_1.json": sample(tool(cmd="a"), id="a"),
        "summaries.json": [{"id": "a", "epoch": 1}, {"id": "b", "epoch": 1}],
        "reductions.json": [],
    }
    found = unpacked(archive(files))
    assert [(job.name, commands_of(job)) for job in found] == [
        ("b_epoch_1", ["b"]),
        ("a_epoch_1", ["a"]),
    ]
    assert {job.agent for job in found} == {"inspect_ai 0.3.1, m/x"}


def test_a_killed_eval_has_only_its_journal() -> None:
    """Without a header the journal says who it was; samples that are there are whole."""
    source = archive({"_journal/start.json": START, "samples/1_epoch_1.json": sample(tool())})
    [job] = unpacked(source)
    assert job.agent == "inspect_ai 0.3.1, m/x"
    assert status_of(job) == "completed"


def test_a_sample_of_which_only_a_summary_is_kept() -> None:
    """A journal may know more samples than there are files: nobody saw what those did."""
    rows: JsonValue = [
        {"id": 1, "epoch": 1, "input": "A", "limit": "token"},
        {"id": 2, "epoch": 1, "input": "B", "error": "boom"},
        {"id": 2, "epoch": 1, "input": "B", "error": "boom"},
        {"id": 3, "epoch": 1, "input": "C"},
    ]
    found = unpacked(
        archive(
            {
                "_journal/start.json": START,
                "_journal/summaries/1.json": rows,
                "samples/3_epoch_1.json": sample(id=3),
            }
        )
    )
    assert [(job.name, status_of(job)) for job in found] == [
        ("3_epoch_1", "completed"),
        ("1_epoch_1", "timed_out"),
        ("2_epoch_1", "failed"),
    ]
    assert state_of(found[1], "executed_commands") == "partial"
    assert task_of(found[1]).description == "A"


def test_samples_in_chunks() -> None:
    """Version 3 of the log: a sample is a folder, its lists are files named by first places."""
    folder = "samples/big_epoch_1"
    head: Row = {"id": "big", "epoch": 1, "input": "Mend it.", "message_refs": [[1, 2]]}
    heard: JsonValue = [
        {"role": "assistant", "id": "old", "content": "no"},
        {"role": "assistant", "id": "new", "content": "attachment://1"},
    ]
    [job] = unpacked(
        archive(
            {
                "header.json": START,
                f"{folder}/sample.json": head,
                f"{folder}/messages/0.json": heard,
                f"{folder}/events/1000.json": [tool("c2", cmd="second")],
                f"{folder}/events/0.json": [tool("c1", cmd="attachment://2")],
                f"{folder}/events/stats.json": [{"event": "tool"}],
                f"{folder}/attachments/0.json": ["x", "Done."],
                f"{folder}/attachments/2.json": ["first"],
            }
        )
    )
    assert commands_of(job) == ["first", "second"]
    assert [message.text for message in task_of(job).messages] == ["Done."]


def test_a_call_whose_arguments_are_not_there() -> None:
    """A conversation may hold results only: that the tool was called is known, with what is not."""
    message: Row = {
        "role": "tool",
        "tool_call_id": "bash_1",
        "function": "bash",
        "content": "x",
        "error": {"type": "timeout", "message": "late"},
    }
    job = job_of(FORMAT, log({"id": 1, "epoch": 4, "input": "Mend it.", "messages": [message]}))
    [call] = calls_of(job)
    assert (call.kind, call.tool, call.outcome, call.output) == ("other", "bash", "timed_out", "x")
    assert state_of(job, "executed_commands") == "partial"
    assert state_of(job, "tool_calls") == "partial"


def test_calls_that_stand_in_messages_only() -> None:
    """`messages[].tool_calls[]` counts where no event tells of the call, and counts once."""
    call: Row = {"id": "c1", "function": "bash", "arguments": {"cmd": "id"}}
    answer: Row = {"role": "tool", "tool_call_id": "c1", "function": "bash", "content": "root"}
    said: Row = {"role": "assistant", "content": "I look.", "tool_calls": [call]}
    by_messages: Row = {"id": 1, "epoch": 1, "input": "Mend it.", "messages": [said, answer]}
    job = job_of(FORMAT, log(by_messages))
    assert [(each.command, each.output) for each in calls_of(job)] == [("id", "root")]
    assert [message.text for message in task_of(job).messages] == ["I look."]
    both = sample(
        model("I look.", calls=[call]), tool(cmd="id", result="root"), messages=[said, answer]
    )
    job = job_of(FORMAT, log(both))
    assert [(each.command, each.output) for each in calls_of(job)] == [("id", "root")]
    assert [message.text for message in task_of(job).messages] == ["I look."]


def test_scorers_are_not_the_agent() -> None:
    """What runs in the span or step of a scorer, or a model in that role, judges the agent."""
    grade = model("GRADE: C", id="g", role="grader")
    begin: Row = {"event": "step", "action": "begin", "type": "scorer", "name": "s"}
    end = begin | {"action": "end"}
    inside = sample(
        model("Done."), begin, tool("x", cmd="pytest"), model("bad", id="h"), end, tool(cmd="id")
    )
    job = job_of(FORMAT, log(inside))
    assert commands_of(job) == ["id"]
    assert [message.text for message in task_of(job).messages] == ["Done."]
    job = job_of(FORMAT, log(sample(model("Done."), grade)))
    assert [message.text for message in task_of(job).messages] == ["Done."]


def test_events_inside_of_calls_belong_to_the_called_agent() -> None:
    """Old logs hold the events of a called agent in the event of the call."""
    outer = tool("c1", function="ask", arguments={"q": "?"}, events=[tool("d1", cmd="id")])
    job = job_of(FORMAT, log(sample(outer, model("Done."))))
    assert [call.command for call in task_of(job, "agent-c1").tool_calls] == ["id"]
    assert [call.tool for call in task_of(job).tool_calls] == ["ask"]


def test_what_an_approver_changed_is_what_ran() -> None:
    """A call that an approver modified ran as modified."""
    changed: Row = {
        "event": "approval",
        "decision": "modify",
        "call": {"id": "c1"},
        "modified": {"id": "c1", "function": "bash", "arguments": {"cmd": "ls"}},
    }
    assert commands_of(job_of(FORMAT, log(sample(tool(cmd="rm x"), changed)))) == ["ls"]


def test_ids_that_come_twice() -> None:
    """A second event under one id is a call of its own: no command is lost."""
    job = job_of(FORMAT, log(sample(tool(cmd="a"), tool(cmd="b"))))
    assert [(call.id, call.command) for call in calls_of(job)] == [("c1", "a"), ("c1#2", "b")]


def test_a_call_that_is_still_pending() -> None:
    """A call without an end may not have run: its target is partial."""
    job = job_of(FORMAT, log(sample(tool(pending=True, result=None, completed=None))))
    assert commands_of(job) == ["uptime"]
    assert state_of(job, "executed_commands") == "partial"


@pytest.mark.parametrize(
    ("more", "status", "fault"),
    [
        ({}, "completed", None),
        ({"limit": {"type": "time", "limit": 60}}, "timed_out", "agent"),
        ({"limit": {"type": "operator", "limit": 1}}, "cancelled", "operator"),
        ({"error": {"message": "APIError('503')"}}, "failed", "infrastructure"),
        ({"error": {"message": "CancelledError()"}}, "cancelled", "operator"),
        ({"error": {}}, "completed", None),
        ({"output": {"choices": [{"stop_reason": "max_tokens"}]}}, "timed_out", "agent"),
        ({"output": {"choices": [{"stop_reason": "content_filter"}]}}, "failed", "infrastructure"),
    ],
)
def test_how_a_sample_ends(more: Row, status: str, fault: str | None) -> None:
    """A sample in the log came to its end unless it has an error or a limit."""
    job = job_of(FORMAT, log(sample(tool(), **more)))
    stop = job.record.stop
    assert (status_of(job), stop.fault if stop else None) == (status, fault)


def test_a_limit_of_old_logs_is_an_event() -> None:
    """Before samples had a limit there was an event of it."""
    event: Row = {"event": "sample_limit", "type": "token", "message": "x"}
    assert status_of(job_of(FORMAT, log(sample(tool(), event)))) == "timed_out"


def test_numbers_that_are_none_end_nothing() -> None:
    """Scores may be NaN, which is no JSON; what stands behind them is read."""
    text = log(sample(tool(), model("x"))).replace(b'"messages"', b'"scores": NaN, "messages"')
    assert commands_of(job_of(FORMAT, text)) == ["uptime"]


def test_what_is_no_log() -> None:
    """A log without samples says so; other files are not known."""
    with pytest.raises(InvalidInput, match="without any sample"):
        read(FORMAT, json.dumps({"version": 2, "eval": EVAL}).encode())
    assert not knows(FORMAT, b'{"eval": 1}')
    assert not knows(FORMAT, b"")
    assert not IMPORTERS.get(FORMAT)().knows(archive({"word/document.xml": 1}).glimpse)


def test_a_break_behind_a_sample_is_told_by_the_last_one() -> None:
    """Samples before the break are whole; the one at it may have had others behind."""
    data = log(sample(tool()), sample(tool(), id=2))
    found = read(FORMAT, data[: data.rindex(b"]")])
    assert [state_of(job, "executed_commands") for job in found] == ["whole", "partial"]


def test_a_damaged_file_hides_no_other(tmp_path: Path) -> None:
    """A sample that cannot be unpacked is a job of which nothing is known."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as made:
        made.writestr("header.json", json.dumps(START))
        made.writestr("samples/1_epoch_1.json", json.dumps(sample(tool(cmd="first-command"))))
        made.writestr("samples/2_epoch_1.json", json.dumps(sample(tool(cmd="other"), id=2)))
    data = stream.getvalue().replace(b"first-command", b"evil--command")
    path = tmp_path / "log"
    path.write_bytes(data)
    found = unpacked(Source.of(path))
    assert {job.name: status_of(job) for job in found} == {
        "1_epoch_1": "failed",
        "2_epoch_1": "completed",
    }
    damaged = next(job for job in found if job.name == "1_epoch_1")
    assert state_of(damaged, "executed_commands") == "partial"


def test_an_archive_that_breaks_off(tmp_path: Path) -> None:
    """Without its directory, the files up to the break are found by their own headers."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("_journal/start.json", json.dumps(START))
        for number in (1, 2):
            made.writestr(
                f"samples/{number}_epoch_1.json",
                json.dumps(sample(tool(cmd=f"echo {number}"), model("x"), id=number)),
            )
    data = stream.getvalue()
    path = tmp_path / "log"
    first = data.index(b"PK\x03\x04", 4)
    last = data.index(b"PK\x03\x04", first + 4)
    for end in range(last, data.index(b"PK\x01\x02"), 7):
        path.write_bytes(data[:end])
        found = unpacked(Source.of(path))
        assert commands_of(found[0]) == ["echo 1"]
        assert state_of(found[-1], "executed_commands") == "partial"
        assert all(state_of(job, "executed_commands") == "whole" for job in found[:-1])
    path.write_bytes(data[: data.rindex(b"PK\x05\x06")])
    assert [commands_of(job) for job in unpacked(Source.of(path))] == [["echo 1"], ["echo 2"]]
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(UsageError, match="cannot be read"):
        Source.of(path)


@pytest.mark.parametrize(
    ("at", "value", "words"),
    [(6, 1, "encrypted"), (8, 93, "cannot be read"), (8, 77, "compression")],
)
def test_a_file_that_cannot_be_unpacked_says_why(at: int, value: int, words: str) -> None:
    """Encrypted or packed in a way that is not known: one sentence, no traceback."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as made:
        made.writestr("header.json", json.dumps(START))
        made.writestr("samples/1_epoch_1.json", json.dumps(sample(tool())))
    data = bytearray(stream.getvalue())
    for mark, shift in ((b"PK\x03\x04", 0), (b"PK\x01\x02", 2)):
        place = data.rindex(mark)
        data[place + at + shift] = value
    names = frozenset({"header.json", "samples/1_epoch_1.json"})
    with pytest.raises(InvalidInput, match=words):
        unpacked(in_memory(bytes(data), names))


def test_an_archive_packed_with_zstandard_is_read() -> None:
    """Inspect packs with Zstandard today; Python's own reader knows it from 3.14 on."""
    stream = io.BytesIO()
    with zips.zipfile.ZipFile(stream, "w", zips.zipfile.ZIP_ZSTANDARD) as made:
        made.writestr("header.json", json.dumps(START))
        made.writestr("samples/1_epoch_1.json", json.dumps(sample(tool())))
    names = frozenset({"header.json", "samples/1_epoch_1.json"})
    [job] = unpacked(in_memory(stream.getvalue(), names))
    assert len(commands_of(job)) == 1


def test_a_bomb_is_refused() -> None:
    """An archive that states to unpack to thousands of times its size is not unpacked."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("header.json", json.dumps(START))
    data = bytearray(stream.getvalue())
    place = data.rindex(b"PK\x01\x02")
    data[place + 24 : place + 28] = (2**31).to_bytes(4, "little")
    with pytest.raises(InvalidInput, match="times its size"):
        unpacked(in_memory(bytes(data), frozenset({"header.json"})))


@pytest.mark.parametrize("name", ["samples/../../etc/passwd.json", "samples//x.json", "/samples/a"])
def test_names_in_an_archive_are_only_names(name: str) -> None:
    """Whatever files are called, nothing is written anywhere."""
    found = unpacked(archive({"header.json": START, name: sample(tool(), id="")}))
    assert len(found) == name.startswith("samples/")


@given(data=st.binary(max_size=400))
@settings(max_examples=60, deadline=None)
def test_any_damage_of_an_archive_is_told(data: bytes) -> None:
    """Bytes overwritten anywhere give jobs or one of our errors, never another one."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("header.json", json.dumps(START))
        made.writestr("samples/1_epoch_1.json", json.dumps(sample(tool(), model("x"))))
    whole = bytearray(stream.getvalue())
    for place, value in zip(data[::2], data[1::2], strict=False):
        whole[place * len(whole) // 256] = value
    with suppress(OpsDrillError):
        unpacked(in_memory(bytes(whole), frozenset({"header.json", "samples/1_epoch_1.json"})))


def test_too_many_attachments_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept of attachments is bounded; a command behind the bound is a gap."""
    monkeypatch.setattr(inspect_parts, "KEPT", 10)
    job = job_of(
        FORMAT, log(sample(tool(cmd=f"attachment://{HASH}"), attachments={HASH: "x" * 99}))
    )
    assert state_of(job, "executed_commands") == "partial"
