"""What is kept of the output of a tool call."""

from __future__ import annotations

from opsdrill.agents.task import OUTPUT_KEPT, TaskWork
from opsdrill.hosts.drivers.fake import FakeHost
from opsdrill.hosts.drivers.fake_script import FakeScript, Scripted
from opsdrill.model.event import JobEvent, ToolReturned


class Told:
    def __init__(self) -> None:
        self.events: list[JobEvent] = []

    def record(self, event: JobEvent) -> None:
        self.events.append(event)


async def output(scripted: Scripted) -> str | None:
    told = Told()
    work = TaskWork(told, "t1", "web-01", FakeHost("web-01", FakeScript(otherwise=scripted)), 5.0)
    await work.run("a")
    returned = told.events[-1]
    assert isinstance(returned, ToolReturned)
    return returned.output


async def test_a_long_output_keeps_its_start_and_its_end() -> None:
    """[P14]"""
    text = "a" * OUTPUT_KEPT + "b" * OUTPUT_KEPT
    got = await output(Scripted(exit_code=0, stdout=text))
    half = OUTPUT_KEPT // 2
    left = 2 * OUTPUT_KEPT - 2 * half
    assert got == f"{'a' * half}\n[{left} characters left out]\n{'b' * half}"


async def test_an_output_that_fits_is_whole() -> None:
    text = "é" * OUTPUT_KEPT
    assert await output(Scripted(exit_code=0, stdout=text)) == text


async def test_what_kept_a_command_from_its_exit_status_is_told() -> None:
    got = await output(Scripted(timed_out=True, stdout="so far\n"))
    assert got == "so far\nno exit status within 5 s"
