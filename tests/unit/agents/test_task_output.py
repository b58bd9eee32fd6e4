"""What is kept of the output of a tool call."""

from __future__ import annotations

from opsdrill.agents.task import TaskWork
from opsdrill.evidence.cut import CALL_KEPT
from opsdrill.evidence.recorder import Recorder
from opsdrill.hosts.drivers.fake import FakeHost
from opsdrill.hosts.drivers.fake_script import FakeScript, Scripted
from opsdrill.model.event import JobCreated, JobEvent, ToolReturned
from opsdrill.model.host import OUTPUT_LIMIT
from opsdrill.model.ticket import Ticket


class Told:
    def __init__(self) -> None:
        self.events: list[JobEvent] = []

    def append(self, seq: int, event: JobEvent) -> None:
        self.events.append(event)


async def output(scripted: Scripted) -> str | None:
    told = Told()
    host = FakeHost("web-01", FakeScript(otherwise=scripted))
    recorder = Recorder(told, Ticket())
    recorder.record(JobCreated(job="j1"))
    work = TaskWork(recorder, "t1", "web-01", host, 5.0)
    work.create(1, None, ())
    work.start()
    await work.run("a")
    returned = told.events[-1]
    assert isinstance(returned, ToolReturned)
    return returned.output


async def test_a_long_output_keeps_its_start_and_its_end() -> None:
    """[P14]"""
    text = "a" * CALL_KEPT + "b" * CALL_KEPT
    got = await output(Scripted(exit_code=0, stdout=text))
    half = CALL_KEPT // 2
    left = 2 * CALL_KEPT - 2 * half
    assert got == f"{'a' * half}\n[{left} characters left out]\n{'b' * half}"


async def test_an_output_that_fits_is_whole() -> None:
    text = "é" * CALL_KEPT
    assert await output(Scripted(exit_code=0, stdout=text)) == text


async def test_what_kept_a_command_from_its_exit_status_is_told() -> None:
    got = await output(Scripted(timed_out=True, stdout="so far\n"))
    assert got == "so far\nno exit status within 5 s"


async def test_output_that_the_host_dropped_is_told() -> None:
    """A reader, and what masks secrets, must know that the text ends too soon."""
    got = await output(Scripted(exit_code=0, stdout="a" * (OUTPUT_LIMIT + 10), stderr="bad"))
    assert got is not None
    assert got.endswith("aaa\n[10 bytes left out]\nbad")
