"""Processes that we start: what they say, how they end, and that their end is never made up."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import select
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from opsdrill.hosts.child import Child
from opsdrill.hosts.command import BOOT, ask_line, next_nonce
from opsdrill.hosts.drivers.container.engine import Engine
from opsdrill.hosts.process_link import ProcessLink

HANGS = 30.0


class Heard:
    """Keeps what a child says, in the order in which it came."""

    def __init__(self) -> None:
        self.said: dict[int, bytes] = {1: b"", 2: b""}
        self.events: list[str] = []
        self.status: int | None = None

    def heard(self, stream: int, data: bytes) -> None:
        self.said[stream] += data

    def exited(self, status: int | None) -> None:
        self.status = status
        self.events.append("exited")

    def finished(self) -> None:
        self.events.append("finished")


async def over(text: str, content: bytes = b"") -> Heard:
    heard = Heard()
    child = Child(("/bin/sh", "-c", text), heard, content)
    async with asyncio.timeout(HANGS):
        await child.over.wait()
    assert heard.events == ["exited", "finished"]
    return heard


async def test_what_it_says_and_how_it_ends() -> None:
    """Both streams arrive whole, and the status is the one that it ended with."""
    heard = await over("echo out; echo err >&2; exit 7")
    assert (heard.said, heard.status) == ({1: b"out\n", 2: b"err\n"}, 7)


async def test_a_signal_is_a_negative_number() -> None:
    assert (await over("kill -9 $$")).status == -9


async def test_what_it_is_told() -> None:
    """Its input is more than a pipe holds, and ends; what it says is as long."""
    content = os.urandom(1 << 20)
    assert (await over("cat", content)).said[1] == content
    assert (await over("cat")).said[1] == b""


async def test_one_that_does_not_listen() -> None:
    """Input that nobody reads holds nothing up."""
    assert (await over("exit 3", b"x" * (1 << 20))).status == 3


async def test_what_cannot_be_started() -> None:
    with pytest.raises(FileNotFoundError):
        Child(("/nosuch/program",), Heard())


def children() -> str:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text()


async def test_no_thread_to_wait_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the machine is full, nothing of it stays, and the error is one of starting."""

    def full(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    before = children()
    monkeypatch.setattr(threading.Thread, "start", full)
    with pytest.raises(OSError, match="can't start new thread"):
        Child(("/bin/sleep", "60"), Heard())
    assert children() == before


async def test_closed_while_it_runs() -> None:
    """Killed, and heard no more of; twice is no error."""
    heard = Heard()
    child = Child(("/bin/sh", "-c", "while :; do echo x; done"), heard)
    while not heard.said[1]:
        await asyncio.sleep(0.001)
    child.close()
    said = len(heard.said[1])
    child.close()
    async with asyncio.timeout(HANGS):
        await child.over.wait()
    assert (heard.status, len(heard.said[1])) == (-9, said)


@pytest.mark.parametrize("family", [True, False])
async def test_closed_with_its_family(family: bool) -> None:
    """What it had started is ended with it where that is asked for, and lives on otherwise."""
    heard = Heard()
    child = Child(("/bin/sh", "-c", "sleep 4714 & echo $!; wait"), heard)
    while not heard.said[1].endswith(b"\n"):
        await asyncio.sleep(0.001)
    other = os.pidfd_open(int(heard.said[1]))
    try:
        child.close(family=family)
        async with asyncio.timeout(HANGS):
            await child.over.wait()
        # A descriptor of a process can be read once the process has ended.
        ended, _, _ = select.select([other], [], [], HANGS if family else 0.1)
        assert bool(ended) is family
    finally:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(other, signal.SIGKILL)
        os.close(other)


async def test_paused_for_a_while() -> None:
    """Nothing is heard meanwhile, and nothing is lost."""
    heard = Heard()
    child = Child(("/bin/sh", "-c", "cat"), heard, b"x" * 300_000)
    child.pause(1, 0.05)
    assert heard.said[1] == b""
    async with asyncio.timeout(HANGS):
        await child.over.wait()
    assert len(heard.said[1]) == 300_000


async def test_an_end_that_nobody_saw() -> None:
    """Not seen is not false: where the kernel keeps no status, none is made up."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert (await over("exit 3")).status is None
        reply = await Engine("/bin/false", "podman", "").ask("ps")
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert (reply.status, reply.good, reply.said) == (None, False, "nobody knows how it ended")


def test_a_loop_that_is_gone() -> None:
    """A child that outlives its event loop disturbs nobody: no trace on standard error."""
    text = (
        "import asyncio, time\n"
        "from opsdrill.hosts.child import Child\n"
        "class Deaf:\n"
        "    heard = exited = finished = lambda *_: None\n"
        "async def main():\n"
        "    Child(('/bin/sleep', '0.3'), Deaf())\n"
        "asyncio.run(main())\n"
        "time.sleep(1)\n"
    )
    words = [sys.executable, "-c", text]
    done = subprocess.run(words, capture_output=True, timeout=HANGS, check=True)
    assert done.stderr == b""


class Stress:
    """Ends processes at the moment at which they end themselves."""

    def __init__(self) -> None:
        self.chance = random.Random(7411)

    async def links(self) -> None:
        """A host is given back while the client of its last line ends."""
        for _ in range(100):
            link = ProcessLink(("/bin/sh", "-c", BOOT), linger=2.0)
            nonce = next_nonce()
            told = await link.talk(nonce, ask_line(nonce, "echo told").encode())
            assert told.out.text == "told\n"
            await asyncio.sleep(self.chance.random() * 0.002)
            await link.close()
            assert told.status in (0, -9)

    async def late_answers(self) -> None:
        """A client is given up while it ends."""
        engine = Engine("/bin/sleep", "podman", "")
        for _ in range(40):
            reply = await engine.ask(f"0.0{self.chance.randint(1, 3)}", seconds=0.02)
            assert reply.status in (0, None)

    async def cancelled(self) -> None:
        """Whoever asks is cancelled at any moment, the start included."""
        engine = Engine("/bin/true", "podman", "")
        for _ in range(200):
            asking = asyncio.ensure_future(engine.ask())
            await asyncio.sleep(self.chance.random() * 0.004)
            asking.cancel()
            (reply,) = await asyncio.gather(asking, return_exceptions=True)
            if not isinstance(reply, asyncio.CancelledError):
                assert not isinstance(reply, BaseException)
                assert reply.status == 0


@pytest.mark.parametrize("how", ["links", "late_answers", "cancelled"])
async def test_an_end_is_taken_note_of_once(how: str, caplog: pytest.LogCaptureFixture) -> None:
    """Whenever a process is ended, its status is its own: no 255 that nobody ended with."""
    with caplog.at_level(logging.DEBUG):
        await getattr(Stress(), how)()
    assert caplog.messages == []


def test_several_loops_at_once() -> None:
    """Each event loop has its children, in whichever thread it runs."""
    found: list[int | None] = []

    async def many() -> None:
        for status in range(20):
            found.append((await over(f"exit {status}")).status)

    threads = [threading.Thread(target=lambda: asyncio.run(many())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(number for number in found if number is not None) == sorted([*range(20)] * 4)
