"""Transcripts far larger than the memory that reading them takes.

Each is written here, read in a process of its own, and must take less memory than the file is
large: reading it whole would take more, even before a single value is made of it.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SIZE = 300 * 1024 * 1024
"""Bytes of a transcript; of those that are read like another one here, a third."""
STEP = 200_000
"""Bytes of each command's output in it."""
CALLS = SIZE // STEP
PEAK = 96 * 1024 * 1024
"""Bytes of memory that reading takes at most: the program, and what a job record holds."""
ROOM = 4 * 1024**3
"""Bytes of address space, so that a failure takes no other process with it."""

OUTPUT = ('web-01 kernel: [UFW BLOCK] IN=eth0 "x" \\ é ' * (STEP // 40))[:STEP]
ESCAPED = json.dumps(OUTPUT)

CHILD = """
import json, resource, sys
from pathlib import Path
from opsdrill.evidence.importers.importer import importer_for
from opsdrill.evidence.transcripts.imported import Placing
from opsdrill.evidence.transcripts.source import Source
source = Source.of(Path(sys.argv[1]))
name, importer = importer_for(source)
jobs = list(importer.read(source, Placing(host="web-01")))
calls = [call for job in jobs for task in job.record.tasks for call in task.tool_calls]
used = resource.getrusage(resource.RUSAGE_SELF)
# Of this program alone: what getrusage says holds what its parent had when it was started.
[peak] = [int(line.split()[1]) for line in Path("/proc/self/status").open() if "VmHWM" in line]
print(json.dumps({
    "format": name,
    "commands": sum(call.kind == "shell" for call in calls),
    "outputs": sum(len(call.output or "") for call in calls),
    "states": sorted({job.record.coverage.of("executed_commands").state for job in jobs}),
    "peak": peak * 1024,
    "seconds": used.ru_utime + used.ru_stime,
}))
"""


def _claude_code(calls: int) -> Iterator[str]:
    head = '{"sessionId": "s", "timestamp": "2026-01-01T00:00:00Z", '
    yield head + '"type": "user", "message": {"role": "user", "content": "Mend it."}}\n'
    for number in range(calls):
        call = {"type": "tool_use", "id": f"c{number}", "name": "Bash", "input": {"command": "id"}}
        message = {"id": f"m{number}", "role": "assistant", "content": [call]}
        yield f'{head}"type": "assistant", "message": {json.dumps(message)}}}\n'
        yield f'{head}"type": "user", "message": {{"role": "user", "content": ['
        yield f'{{"type": "tool_result", "tool_use_id": "c{number}", "content": {ESCAPED}}}]}}}}\n'
    done = {"id": "z", "role": "assistant", "content": [{"type": "text", "text": "Done."}]}
    done["stop_reason"] = "end_turn"
    yield f'{head}"type": "assistant", "message": {json.dumps(done)}}}\n'


def _inspect_sample(calls: int) -> Iterator[str]:
    """Outputs stand in attachments, each of its own name."""
    yield '{"id": 1, "epoch": 1, "input": "Mend it.", "messages": [], "scores": {"x": NaN}, '
    yield '"events": ['
    for number in range(calls):
        event = {
            "event": "tool",
            "id": f"c{number}",
            "function": "bash",
            "arguments": {"cmd": "id"},
            "result": f"attachment://{number:032x}",
            "timestamp": "2026-01-01T00:00:00Z",
            "completed": "2026-01-01T00:00:01Z",
        }
        yield ("," if number else "") + json.dumps(event)
    yield '], "attachments": {'
    for number in range(calls):
        yield ("," if number else "") + f'"{number:032x}": {ESCAPED}'
    yield "}}"


def _inspect(calls: int) -> Iterator[str]:
    yield '{"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}, "samples": ['
    yield from _inspect_sample(calls)
    yield "]}"


def _otel(calls: int) -> Iterator[str]:
    yield '{"resourceSpans": [{"scopeSpans": [{"spans": ['
    yield '{"traceId": "t1", "spanId": "a", "name": "invoke_agent ops", "startTimeUnixNano": "1", '
    yield '"endTimeUnixNano": "1767225700000000000", "attributes": []}'
    for number in range(calls):
        span = {
            "traceId": "t1",
            "spanId": f"{number:016x}",
            "name": "execute_tool bash",
            "startTimeUnixNano": str(1_767_225_600_000_000_000 + number),
            "endTimeUnixNano": str(1_767_225_600_000_000_001 + number),
        }
        values = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "bash",
            "gen_ai.tool.call.arguments": '{"command": "id"}',
        }
        given = [{"key": key, "value": {"stringValue": each}} for key, each in values.items()]
        yield "," + json.dumps(span)[:-1] + ', "attributes": '
        yield json.dumps(given)[:-1] + ', {"key": "gen_ai.tool.call.result", "value": '
        yield f'{{"stringValue": {ESCAPED}}}}}]}}'
    yield "]}]}]}"


def _mini_swe_agent(calls: int) -> Iterator[str]:
    yield '{"info": {"exit_status": "Submitted"}, "trajectory_format": "mini-swe-agent-1", '
    yield '"messages": [{"role": "user", "content": "Mend it."}'
    output = json.dumps(f"<returncode>0</returncode>\n<output>\n{OUTPUT}\n</output>")
    for _ in range(calls):
        yield ', {"role": "assistant", "content": "I look.\\n```bash\\nid\\n```"}'
        yield f', {{"role": "user", "content": {output}}}'
    yield "]}"


def _swe_agent(calls: int) -> Iterator[str]:
    yield '{"environment": "x", "trajectory": [{"action": "id", "observation": "", "state": {}}'
    for _ in range(calls - 1):
        yield f', {{"action": "id", "observation": {ESCAPED}, "response": "", "state": {{}}}}'
    yield '], "history": [], "info": {"exit_status": "submitted"}}'


def _atif(calls: int) -> Iterator[str]:
    yield '{"schema_version": "ATIF-v1.6", "session_id": "s", "agent": {"name": "x"}, "steps": ['
    yield '{"step_id": 1, "source": "user", "message": "Mend it."}'
    for number in range(calls):
        call = {
            "tool_call_id": f"c{number}",
            "function_name": "Bash",
            "arguments": {"command": "id"},
        }
        step = {"step_id": number + 2, "source": "agent", "message": "", "tool_calls": [call]}
        yield ", " + json.dumps(step)[:-1] + ', "observation": {"results": [{"source_call_id": '
        yield f'"c{number}", "content": {ESCAPED}}}]}}}}'
    yield f', {{"step_id": {calls + 2}, "source": "agent", "message": "Done."}}]}}'


def _openhands(calls: int) -> Iterator[str]:
    at = '"timestamp": "2026-01-01T00:00:00.000001"'
    yield f'[{{"id": 0, {at}, "source": "user", "action": "message", '
    yield '"args": {"content": "Mend it."}}'
    for number in range(1, 2 * calls, 2):
        yield f', {{"id": {number}, {at}, "source": "agent", "action": "run", '
        yield f'"args": {{"command": "id"}}}}, {{"id": {number + 1}, {at}, "source": "agent", '
        yield f'"observation": "run", "cause": {number}, "content": {ESCAPED}, '
        yield '"extras": {"metadata": {"exit_code": 0}}}'
    yield f', {{"id": {2 * calls + 1}, {at}, "source": "agent", "action": "finish", "args": {{}}}}]'


def _opencode(calls: int) -> Iterator[str]:
    yield '{"info": {"id": "s", "directory": "/", "time": {}}, "messages": ['
    yield '{"info": {"id": "u", "role": "user"}, "parts": [{"type": "text", "text": "Mend it."}]}'
    for number in range(calls):
        yield f', {{"info": {{"id": "m{number}", "role": "assistant", "finish": "tool-calls"}}, '
        yield f'"parts": [{{"type": "tool", "tool": "bash", "callID": "c{number}", "state": '
        yield '{"status": "completed", "input": {"command": "id"}, "metadata": {"exit": 0}, '
        yield f'"output": {ESCAPED}}}}}]}}'
    yield ', {"info": {"id": "z", "role": "assistant", "finish": "stop"}, '
    yield '"parts": [{"type": "text", "text": "Done."}]}]}'


def _text(pieces: Iterator[str], path: Path) -> None:
    with path.open("w") as stream:
        stream.writelines(pieces)


def _packed(pieces: Iterator[str], path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("header.json", '{"eval": {"task": "t", "model": "m"}}')
        with archive.open("samples/1_epoch_1.json", "w") as stream:
            for piece in pieces:
                stream.write(piece.encode())


def _bounded() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))


@pytest.mark.parametrize(
    ("format", "pieces", "write", "calls"),
    [
        pytest.param("claude-code", _claude_code, _text, CALLS, id="claude-code"),
        pytest.param("inspect", _inspect, _text, CALLS, id="inspect"),
        pytest.param("inspect", _inspect_sample, _packed, CALLS, id="inspect-eval"),
        pytest.param("otel", _otel, _text, CALLS, id="otel"),
        pytest.param("mini-swe-agent", _mini_swe_agent, _text, CALLS // 3, id="mini-swe-agent"),
        pytest.param("swe-agent", _swe_agent, _text, CALLS // 3, id="swe-agent"),
        pytest.param("atif", _atif, _text, CALLS // 3, id="atif"),
        pytest.param("openhands", _openhands, _text, CALLS // 3, id="openhands"),
        pytest.param("opencode", _opencode, _text, CALLS // 3, id="opencode"),
    ],
)
def test_memory_does_not_grow_with_the_transcript(
    format: str,
    pieces: Callable[[int], Iterator[str]],
    write: Callable[[Iterator[str], Path], None],
    calls: int,
    tmp_path: Path,
) -> None:
    """All commands of a transcript are read in less memory than its bytes would take."""
    path = tmp_path / "transcript"
    write(pieces(calls), path)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        preexec_fn=_bounded,
    )
    path.unlink()
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    print(found)
    assert (found["format"], found["commands"]) == (format, calls)
    assert found["states"] == ["whole"]
    assert found["outputs"] > calls * 1000
    assert found["peak"] < PEAK < calls * STEP
