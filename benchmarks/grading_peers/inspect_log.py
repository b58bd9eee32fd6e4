"""Writes the recorded jobs as a log of Inspect AI: `inspect_log.py RECORDS RUNS LOG`."""

from __future__ import annotations

import json
import sys
from itertools import islice
from pathlib import Path
from typing import Any

from inspect_ai.log import (  # type: ignore[import-not-found]
    EvalConfig,
    EvalDataset,
    EvalLog,
    EvalResults,
    EvalSample,
    EvalSpec,
    write_eval_log,
)
from inspect_ai.model import (  # type: ignore[import-not-found]
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
    ModelOutput,
)
from inspect_ai.tool import ToolCall  # type: ignore[import-not-found]


def sample(number: int, record: dict[str, Any]) -> EvalSample:
    """A task's commands as tool calls with their results; its messages between them."""
    messages: list[ChatMessage] = [ChatMessageUser(content="the shop is slow")]
    for task in record["tasks"]:
        for call in task["tool_calls"]:
            name = f"{task['id']}-{call['id']}"
            made = ToolCall(
                id=name, function="bash", arguments={"cmd": call["arguments"]["command"]}
            )
            messages.append(ChatMessageAssistant(content="", tool_calls=[made]))
            messages.append(
                ChatMessageTool(content=call["output"], tool_call_id=name, function="bash")
            )
        messages += [ChatMessageAssistant(content=said["text"]) for said in task["messages"]]
    return EvalSample(
        id=number,
        epoch=1,
        input="the shop is slow",
        target="",
        messages=messages,
        output=ModelOutput.from_content("none", "done"),
    )


def main() -> None:
    count = int(sys.argv[2])
    with Path(sys.argv[1]).open("rb") as lines:
        samples = [sample(at, json.loads(line)) for at, line in enumerate(islice(lines, count))]
    log = EvalLog(
        status="success",
        eval=EvalSpec(
            created="2026-01-31T12:00:00+00:00",
            task="slow_shop",
            dataset=EvalDataset(name="slow-shop", samples=count),
            model="none/none",
            config=EvalConfig(),
        ),
        results=EvalResults(total_samples=count, completed_samples=count),
        samples=samples,
    )
    write_eval_log(log, sys.argv[3])


if __name__ == "__main__":
    main()
