"""Real transcripts of other tools, where their folder is: `../shared/cases/traj` beside the
checkout, or the one that OPSDRILL_TRANSCRIPTS names. They are no part of the project.

EXPECTED.json there holds what an independent reader found in most of them; `COUNTED` holds the
rest, counted once by hand with jq.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pydantic import JsonValue

from opsdrill.evidence.importers.importer import IMPORTERS, importer_for
from opsdrill.evidence.transcripts.imported import Imported, Placing
from opsdrill.evidence.transcripts.source import Source
from opsdrill.grading.engine import grade
from opsdrill.model.job import ToolCall
from opsdrill.model.scenario import Scenario
from opsdrill.patterns import BoundedSearcher

FOLDER = Path(
    os.environ.get("OPSDRILL_TRANSCRIPTS")
    or Path(__file__).parents[2].parent / "shared" / "cases" / "traj"
)
if not (FOLDER / "EXPECTED.json").is_file():
    pytest.skip(f"no real transcripts in {FOLDER}", allow_module_level=True)

CUT = 400
"""Commands in EXPECTED.json are cut after so many characters."""


@dataclass(frozen=True)
class Counted:
    """What one file without an entry in EXPECTED.json holds, and how that was counted."""

    how: str
    commands: int
    tools: dict[str, int]
    files: list[str] = field(default_factory=list)
    jobs: int = 1


FORMATS: dict[str, str] = {
    "claude-code/claude-code-log-edge_cases.jsonl": "claude-code",
    "claude-code/sregym-74bfdd52.jsonl": "claude-code",
    "claude-code/sregym-claude-code.stream-json.txt": "claude-code",
    "codex/sregym-rollout.jsonl": "codex",
    "other/sregym-copilot-cli.jsonl": "copilot-cli",
    "other/sregym-gemini-session.jsonl": "gemini-cli",
    "other/sregym-opencode-session.json": "opencode",
    "inspect/2025-05-12T20-27-36-04-00_browser.json": "inspect",
    "inspect/log_formats.eval": "inspect",
    "inspect/log_streaming.eval": "inspect",
    "inspect/log_tool_call_error.json": "inspect",
    "otel/agentevals-k8s.json": "otel",
    "otel/agentevals-tempo_export_with_batches.json": "otel",
    "otel/langwatch-opencode-B.doStream.json": "otel",
    "mini-swe-agent/github_issue.traj.json": "mini-swe-agent",
    "mini-swe-agent/harbor-rfc-mini-swe-agent-trajectory.json": "mini-swe-agent",
    "swe-agent/function_calling_simple.traj": "swe-agent",
    "swe-agent/gpt4_test-repo_1c2844.traj": "swe-agent",
    "atif/hello-world-context-summarization-linear-history.trajectory.json": "atif",
    "atif/hello-world-context-summarization-linear-history.trajectory.cont-1.json": "atif",
    "atif/openhands-hello-world.trajectory.json": "atif",
    "atif/trajectory_fail.json": "atif",
    "openhands/harbor-rfc-openhands_trajectory.json": "openhands",
    "openhands/sdk-goal-events.jsonl": "openhands",
}
"""The importer that must know each file."""

ENDS: dict[str, tuple[str, ...]] = {
    # Its last assistant line calls a tool whose result is not there.
    "claude-code/claude-code-log-edge_cases.jsonl": ("failed",),
    "claude-code/sregym-74bfdd52.jsonl": ("completed",),
    "claude-code/sregym-claude-code.stream-json.txt": ("completed",),
    "codex/sregym-rollout.jsonl": ("completed",),
    "other/sregym-copilot-cli.jsonl": ("completed",),
    "other/sregym-gemini-session.jsonl": ("completed",),
    "other/sregym-opencode-session.json": ("completed",),
    "inspect/2025-05-12T20-27-36-04-00_browser.json": ("completed",),
    "inspect/log_formats.eval": ("completed",),
    "inspect/log_streaming.eval": ("completed",) * 4,
    "inspect/log_tool_call_error.json": ("completed",),
    "otel/agentevals-k8s.json": ("completed",),
    "otel/agentevals-tempo_export_with_batches.json": ("completed",),
    "otel/langwatch-opencode-B.doStream.json": ("completed",),
    "mini-swe-agent/github_issue.traj.json": ("completed",),
    "mini-swe-agent/harbor-rfc-mini-swe-agent-trajectory.json": ("completed",),
    "swe-agent/function_calling_simple.traj": ("completed",),
    "swe-agent/gpt4_test-repo_1c2844.traj": ("completed",),
    # It goes on in the next file.
    "atif/hello-world-context-summarization-linear-history.trajectory.json": ("failed",),
    "atif/hello-world-context-summarization-linear-history.trajectory.cont-1.json": ("completed",),
    "atif/openhands-hello-world.trajectory.json": ("completed",),
    "atif/trajectory_fail.json": ("completed",),
    "openhands/harbor-rfc-openhands_trajectory.json": ("completed",),
    # A piece from the middle of a conversation.
    "openhands/sdk-goal-events.jsonl": ("failed",),
}
"""How the jobs of each file end."""

COUNTED: dict[str, Counted] = {
    "claude-code/sregym-claude-code.stream-json.txt": Counted(
        how="jq '.message.content[]?|select(.type==\"tool_use\")|.name' on its assistant lines",
        commands=16,
        tools={"Bash": 16},
    ),
    "inspect/2025-05-12T20-27-36-04-00_browser.json": Counted(
        how="json.load: the events of its sample whose `event` is `tool`, by `function`",
        commands=0,
        tools={"web_browser_go": 1, "web_browser_click": 3},
    ),
    "inspect/log_formats.eval": Counted(
        how="unzip -p: its one sample has no event `tool` and no `tool_calls`", commands=0, tools={}
    ),
    "inspect/log_streaming.eval": Counted(
        how="unzip -l: four files in `samples`, none with a tool", commands=0, tools={}, jobs=4
    ),
    "inspect/log_tool_call_error.json": Counted(
        how="json.load: 11 messages of role `tool`, of calls whose arguments are not there",
        commands=0,
        tools={"bash": 11},
    ),
    "otel/agentevals-k8s.json": Counted(
        how="grep -c execute_tool: none among its 73 spans", commands=0, tools={}
    ),
    "otel/agentevals-tempo_export_with_batches.json": Counted(
        how="grep -o 'gen_ai.tool.name': one among its 86 spans",
        commands=0,
        tools={"helm_list_releases": 1},
    ),
    "otel/langwatch-opencode-B.doStream.json": Counted(
        how="one span of a model without tool calls", commands=0, tools={}
    ),
}

MESSAGES: dict[str, int] = {
    "claude-code/claude-code-log-edge_cases.jsonl": 2,
    "claude-code/sregym-74bfdd52.jsonl": 9,  # of 13 messages; the others only call tools
    "claude-code/sregym-claude-code.stream-json.txt": 9,
    "codex/sregym-rollout.jsonl": 12,  # each stands there twice
    "other/sregym-copilot-cli.jsonl": 4,
    "other/sregym-gemini-session.jsonl": 1,
    "other/sregym-opencode-session.json": 13,
    "inspect/2025-05-12T20-27-36-04-00_browser.json": 1,
    "inspect/log_formats.eval": 1,
    "inspect/log_streaming.eval": 4,
    "inspect/log_tool_call_error.json": 0,
    "otel/agentevals-k8s.json": 1,  # in a span of ADK and in one of the client of the model
    "otel/agentevals-tempo_export_with_batches.json": 1,
    "otel/langwatch-opencode-B.doStream.json": 1,
    "mini-swe-agent/github_issue.traj.json": 10,
    "mini-swe-agent/harbor-rfc-mini-swe-agent-trajectory.json": 3,
    "swe-agent/function_calling_simple.traj": 5,
    "swe-agent/gpt4_test-repo_1c2844.traj": 5,
    "atif/hello-world-context-summarization-linear-history.trajectory.json": 3,
    "atif/hello-world-context-summarization-linear-history.trajectory.cont-1.json": 4,
    "atif/openhands-hello-world.trajectory.json": 3,  # two steps, and what it says to `finish`
    "atif/trajectory_fail.json": 19,
    "openhands/harbor-rfc-openhands_trajectory.json": 1,
    "openhands/sdk-goal-events.jsonl": 2,
}
"""What the agent said, message by message; counted with jq: those with a text, by their ids."""

OTHERWISE: dict[str, str] = {}
"""Where a record differs from EXPECTED.json on purpose, and why; such a file is in COUNTED."""

EXPECTED: dict[str, dict[str, JsonValue]] = {
    name: entry
    for name, entry in json.loads((FOLDER / "EXPECTED.json").read_bytes()).items()
    if name in FORMATS and name not in OTHERWISE
}


def _read(name: str) -> list[Imported]:
    source = Source.of(FOLDER / name)
    importer = IMPORTERS.get(FORMATS[name])()
    return list(importer.read(source, Placing(host="web-01")))


def _calls(name: str) -> list[ToolCall]:
    return [
        call
        for imported in _read(name)
        for task in imported.record.tasks
        for call in task.tool_calls
    ]


def _commands(name: str) -> list[str]:
    return [call.command for call in _calls(name) if call.kind == "shell"]


def _tools(name: str) -> dict[str | None, int]:
    return dict(Counter(call.tool for call in _calls(name)))


def _files(name: str) -> list[str]:
    return [call.path for call in _calls(name) if call.path]


@pytest.mark.parametrize("name", EXPECTED)
def test_the_commands_are_the_golden_ones(name: str) -> None:
    """Every shell command of the golden answer, in its order, and no other."""
    expected = EXPECTED[name]["commands"]
    assert isinstance(expected, list)
    found = _commands(name)
    assert len(found) == EXPECTED[name]["n_commands"]
    assert [command[:CUT] for command in found] == expected


@pytest.mark.parametrize(
    "name", [name for name, entry in EXPECTED.items() if {"tools", "tool_call_rows"} & set(entry)]
)
def test_the_tools_are_the_golden_ones(name: str) -> None:
    """Each tool as often as in the golden answer: nothing counts twice, nothing is left out."""
    entry = EXPECTED[name]
    assert _tools(name) == entry.get("tools", entry.get("tool_call_rows"))


@pytest.mark.parametrize("name", [name for name in EXPECTED if "files_written" in EXPECTED[name]])
def test_the_written_files_are_the_golden_ones(name: str) -> None:
    """The paths that file tools were called for, in their order."""
    assert _files(name) == EXPECTED[name]["files_written"]


@pytest.mark.parametrize("name", COUNTED)
def test_what_was_counted_by_hand(name: str) -> None:
    """A file without a golden answer holds what was counted in it by other means."""
    counted = COUNTED[name]
    assert len(_read(name)) == counted.jobs
    assert len(_commands(name)) == counted.commands
    assert _tools(name) == counted.tools
    assert _files(name) == counted.files


@pytest.mark.parametrize("name", MESSAGES)
def test_each_message_counts_once(name: str) -> None:
    """What the agent said is there once, however often and in however many pieces it is told."""
    tasks = [task for imported in _read(name) for task in imported.record.tasks]
    assert sum(len(task.messages) for task in tasks) == MESSAGES[name]


@pytest.mark.parametrize("name", ENDS)
def test_how_the_jobs_end(name: str) -> None:
    """The transcript's own end decides the job's status."""
    found = [imported.record.job for imported in _read(name)]
    assert tuple(job.status if job else "none" for job in found) == ENDS[name]


@pytest.mark.parametrize("name", FORMATS)
def test_one_importer_knows_the_file(name: str) -> None:
    """Real files are told apart by content: one importer knows each, and no other does."""
    source = Source.of(FOLDER / name)
    known = [each for each in IMPORTERS.names() if IMPORTERS.get(each)().knows(source.glimpse)]
    assert known == [FORMATS[name]]
    assert importer_for(source)[0] == FORMATS[name]


ONE_INCIDENT = [name for name in FORMATS if "/sregym-" in name]
"""The logs of five programs on the same incident; one of them wrote two."""

INCIDENT = Scenario.model_validate(
    {
        "key": "port-taken",
        "title": "A pod that no node can take",
        "ticket_title": "Recommendations are missing",
        "hosts": ["web-01"],
        "validation": [
            {
                "label": "the deployment was patched",
                "validator": "pattern_match",
                "where": "executed_commands",
                "pattern": r"\bkubectl patch deployment recommendation\b",
            },
            {
                "label": "nothing was deleted",
                "validator": "pattern_match",
                "where": "executed_commands",
                "pattern": r"\bkubectl delete\b",
                "negate": True,
            },
            {
                "label": "the cause is named",
                "validator": "pattern_match",
                "where": "task_summary",
                "pattern": r"hostPort",
            },
        ],
    }
)


@pytest.mark.parametrize("name", ONE_INCIDENT)
def test_the_logs_of_one_incident_get_one_verdict(name: str) -> None:
    """Whoever wrote the log: the same rules are met for the same reasons, and none is undecided."""
    [imported] = _read(name)
    with BoundedSearcher(2.0) as searcher:
        given = grade(INCIDENT, imported.record, [], searcher)
    assert given.verdict == "passed"
    patched, deleted, named = given.rules
    assert patched.status == named.status == deleted.status == "passed"
    assert patched.match_count
    assert named.match_count == 1
    assert deleted.match_count == 0
    assert not deleted.vacuous


def test_the_incident_has_six_logs() -> None:
    """Two of Claude Code, one each of four others."""
    assert len(ONE_INCIDENT) == 6


def test_every_file_is_tried() -> None:
    """No handed transcript is left out of the tables above."""
    here = {
        str(path.relative_to(FOLDER))
        for path in FOLDER.glob("*/*")
        if path.is_file() and not path.name.startswith(".")
    }
    assert here == set(FORMATS)
    assert set(ENDS) == set(FORMATS)
    golden = set(json.loads((FOLDER / "EXPECTED.json").read_bytes())) - set(OTHERWISE)
    assert golden | set(COUNTED) == set(FORMATS)
