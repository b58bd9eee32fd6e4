"""What an importer cannot read is never passed over: it is in the record, or coverage says that
something is missing. `docs/reference/transcripts.md`, "Damage"."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import JsonValue
from tests.unit.evidence.importers.in_memory import GOLDEN, lines, read

from opsdrill.errors import InvalidInput
from opsdrill.evidence.transcripts.imported import Imported
from opsdrill.evidence.transcripts.source import ANOTHER

SAMPLES = [
    path
    for path in sorted(GOLDEN.glob("*/*"))
    if path.is_file() and ".expected." not in path.name and path.suffix != ".eval"
]
WAYS: dict[str, Callable[[JsonValue], JsonValue]] = {
    "in a list": lambda value: [value],
    "as JSON in a text": json.dumps,
}
Step = str | int


def _loaded(data: bytes) -> tuple[JsonValue, bool]:
    """A transcript's value, and whether it is a document and no lines."""
    try:
        return json.loads(data), True
    except ValueError:
        return [json.loads(line) for line in data.splitlines() if line.startswith(b"{")], False


def _written(value: JsonValue, document: bool) -> bytes:
    if document:
        return str(json.dumps(value)).encode()
    return lines(*(value if isinstance(value, list) else []))


def _commands(jobs: list[Imported], *left_out: str) -> set[str]:
    """The commands, without those of calls with such an outcome."""
    tasks = (task for job in jobs for task in job.record.tasks)
    calls = (call for task in tasks for call in task.tool_calls)
    return {call.command for call in calls if call.command and call.outcome not in left_out}


def _held(value: JsonValue, sought: set[str]) -> list[str]:
    """The commands that a text is, that a shell in it is given, or that the JSON in it holds."""
    if not isinstance(value, str):
        return []
    given = value.removeprefix("/bin/bash -lc '")
    if given != value and given.removesuffix("'") in sought:
        return [given.removesuffix("'")]
    inside = [each for each in sought if value.startswith("{") and json.dumps(each)[1:-1] in value]
    return [value] if value in sought else inside


def _places(
    value: JsonValue, sought: set[str], path: tuple[Step, ...] = ()
) -> Iterator[tuple[tuple[Step, ...], str]]:
    """Where the commands stand, and which."""
    pairs: list[tuple[Step, JsonValue]] = []
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = list(enumerate(value))
    for command in _held(value, sought):
        yield path, command
    for key, each in pairs:
        yield from _places(each, sought, (*path, key))


def _below(value: JsonValue, step: Step) -> JsonValue:
    if isinstance(value, dict) and isinstance(step, str):
        return value[step]
    assert isinstance(value, list) and isinstance(step, int)
    return value[step]


def _changed(value: JsonValue, path: tuple[Step, ...], way: str) -> JsonValue:
    if not path:
        return WAYS[way](value)
    below = _changed(_below(value, path[0]), path[1:], way)
    if isinstance(value, dict) and isinstance(path[0], str):
        return {**value, path[0]: below}
    assert isinstance(value, list) and isinstance(path[0], int)
    return [below if place == path[0] else each for place, each in enumerate(value)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_command_in_a_strange_place_is_missed(path: Path, way: str) -> None:
    """The value that holds a command, or anything around it, is of another type than it should be:
    the command is in the record, or `executed_commands` is not whole."""
    format, (value, document) = path.parent.name, _loaded(path.read_bytes())
    # What the transcript says did not work did nothing.
    wanted = _commands(read(format, _written(value, document)), "failed", "refused")
    passed_over = []
    for place, command in _places(value, wanted):
        first = 1 if document else 2  # a line that is no object is some other program's word
        for length in range(first, len(place) + 1):
            if format == "otel" and place[length - 1] == "value" and length < len(place):
                continue  # a value of its own kind, which a tool may have been given
            changed = _changed(value, place[:length], way)
            try:
                jobs = read(format, _written(changed, document))
            except InvalidInput:
                continue
            if not jobs:
                continue  # a file without any job is refused
            whole = all(
                job.record.coverage.of("executed_commands").state == "whole" for job in jobs
            )
            if whole and not any(command in each for each in _commands(jobs)):
                passed_over.append(place[:length])
    assert not passed_over


HARM = "rm -rf /srv"


def _ids(value: JsonValue, sought: set[str]) -> Iterator[JsonValue]:
    """Each object in a list that holds a command and an id of its own."""
    if isinstance(value, dict):
        for each in value.values():
            yield from _ids(each, sought)
    elif isinstance(value, list):
        for each in value:
            if isinstance(each, dict) and "observation" not in each and any(_places(each, sought)):
                yield each
            yield from _ids(each, sought)


def _other_command(value: JsonValue, sought: set[str]) -> JsonValue:
    if isinstance(value, dict):
        return {key: _other_command(each, sought) for key, each in value.items()}
    if isinstance(value, list):
        return [_other_command(each, sought) for each in value]
    for command in _held(value, sought):
        value = str(value).replace(command, HARM).replace(json.dumps(command)[1:-1], HARM)
    return value


def _beside(value: JsonValue, one: JsonValue, other: JsonValue) -> JsonValue:
    """The value with one more object behind the one in its list."""
    if isinstance(value, dict):
        return {key: _beside(each, one, other) for key, each in value.items()}
    if isinstance(value, list):
        found: list[JsonValue] = []
        for each in value:
            found += [each, other] if each is one else [_beside(each, one, other)]
        return found
    return value


# These name what a model asked for beside what was run.
_ASKED_BESIDE = ("inspect/log.json", "mini-swe-agent/v2.json", "otel/adk.json", "swe-agent/")


@pytest.mark.parametrize(
    "path",
    [path for path in SAMPLES if not f"{path.parent.name}/{path.name}".startswith(_ASKED_BESIDE)],
    ids=lambda path: f"{path.parent.name}/{path.name}",
)
def test_a_second_call_of_one_id_is_missed(path: Path) -> None:
    """A call, a message or a line stands twice, the second time with another command: both
    commands are in the record, or `executed_commands` is not whole."""
    format, (value, document) = path.parent.name, _loaded(path.read_bytes())
    wanted = _commands(read(format, _written(value, document)), "failed", "refused")
    passed_over = 0
    for one in list(_ids(value, wanted)):
        changed = _beside(value, one, _other_command(one, wanted))
        try:
            jobs = read(format, _written(changed, document))
        except InvalidInput:
            continue
        whole = all(job.record.coverage.of("executed_commands").state == "whole" for job in jobs)
        passed_over += whole and HARM not in _commands(jobs)
    assert passed_over == 0


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_follows_a_document_is_missed(path: Path) -> None:
    """Two transcripts stand one behind the other: the commands of the second are in the record, or
    `executed_commands` is not whole, and it is told that there are two."""
    format, (value, document) = path.parent.name, _loaded(path.read_bytes())
    wanted = _commands(read(format, _written(value, document)), "failed", "refused")
    second = _written(_other_command(value, wanted), document)
    jobs = read(format, _written(value, document) + b"\n" + second)
    whole = all(job.record.coverage.of("executed_commands").state == "whole" for job in jobs)
    assert not wanted or not whole or HARM in _commands(jobs)
    if document and format != "otel" and HARM not in _commands(jobs):
        assert any(ANOTHER in warning for warning in jobs[-1].warnings)


def _message(id: str | None, block: JsonValue) -> JsonValue:
    return {"id": id, "content": [block]}


def _claude(version: str, output: str) -> bytes:
    about: dict[str, JsonValue] = {"sessionId": "s", "version": version}
    call: JsonValue = {"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": HARM}}
    back: JsonValue = {
        "type": "tool_result", "tool_use_id": "a", "content": output, "is_error": True
    }  # fmt: skip
    said: JsonValue = {"type": "text", "text": "Done."}
    return lines(
        {**about, "type": "user", "message": {"role": "user", "content": "Mend it."}},
        {**about, "type": "assistant", "message": _message("m1", call)},
        {**about, "type": "user", "message": _message(None, back)},
        {**about, "type": "assistant", "message": _message("m2", said)},
    )


def _gemini(status: str, output: str) -> bytes:
    answer: JsonValue = {"functionResponse": {"id": "c", "response": {"output": output}}}
    results: JsonValue = [answer]
    call: JsonValue = {
        "id": "c", "name": "run_shell_command", "args": {"command": HARM}, "status": status,
        "result": results,
    }  # fmt: skip
    return lines(
        {"sessionId": "s", "projectHash": "h"},
        {"id": "u", "type": "user", "content": "Mend it."},
        {"id": "g", "type": "gemini", "content": "", "toolCalls": [call]},
        {"id": "e", "type": "gemini", "content": "Done."},
    )


@pytest.mark.parametrize(
    ("format", "data"),
    [
        ("claude-code", _claude("1.0.30", "The user doesn't want to proceed with this")),
        ("claude-code", _claude("1.0.30", "PreToolUse:Bash hook: no")),
        ("claude-code", _claude("2.1.0", "Exit code 1\nThe user doesn't want to proceed")),
        ("gemini-cli", _gemini("error", "Command: x\nOutput: denied by policy\nExit Code: 1")),
        (
            "gemini-cli",
            _gemini("cancelled", "Command was cancelled by user. Output:\ndid not allow"),
        ),
    ],
)
def test_no_command_hides_by_what_it_prints(format: str, data: bytes) -> None:
    """What looks like a refusal and may be a command's output does not hide that it ran."""
    jobs = read(format, data)
    state = jobs[0].record.coverage.of("executed_commands").state
    assert HARM in _commands(jobs, "refused") or state == "partial"


@pytest.mark.parametrize(
    ("format", "data"),
    [
        ("claude-code", _claude("2.1.0", "The user doesn't want to proceed with this tool use.")),
        (
            "gemini-cli",
            _gemini("cancelled", "[Operation Cancelled] Reason: User did not allow tool call"),
        ),
    ],
)
def test_what_was_refused_is_known(format: str, data: bytes) -> None:
    """A refusal in the program's own words is one, and nothing is missing."""
    jobs = read(format, data)
    assert HARM not in _commands(jobs, "refused")
    assert jobs[0].record.coverage.of("executed_commands").state == "whole"


@pytest.mark.parametrize("events", [0, 1, 2])
def test_a_model_may_number_its_calls_anew(events: int) -> None:
    """In Inspect AI logs too two messages may have calls of one id; each counts once, whether or
    not there are events of them."""
    called: list[JsonValue] = []
    happened: list[JsonValue] = []
    commands = ["ls", HARM]
    for command in commands:
        call: JsonValue = {"id": "call_1", "function": "bash", "arguments": {"cmd": command}}
        called += [
            {"role": "assistant", "content": "I look.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "function": "bash", "content": "out"},
        ]
        event: JsonValue = {
            "event": "tool", "id": "call_1", "function": "bash", "arguments": {"cmd": command},
            "result": "out",
        }  # fmt: skip
        happened.append(event)
    sample: JsonValue = {
        "id": 1, "epoch": 1, "input": "Mend it.", "messages": called, "events": happened[:events]
    }  # fmt: skip
    about: JsonValue = {"task": "t", "model": "m"}
    log: JsonValue = {"version": 2, "status": "success", "eval": about, "samples": [sample]}
    [job] = read("inspect", _written(log, document=True))
    ran = [call.command for call in job.record.tasks[0].tool_calls]
    assert ran == commands
    assert all(call.outcome == "ran" for call in job.record.tasks[0].tool_calls)
