"""Files are told by packets of SFTP and lines of scp; what nothing tells is a gap."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.agents.gateway.copy_watch import ScpWatch, copies, receives_rsync, scp_target
from opsdrill.agents.gateway.kept_output import KeptOutput, KeptStream
from opsdrill.agents.gateway.sftp_watch import SftpWatch
from opsdrill.agents.gateway.shell_watch import reads_commands
from opsdrill.agents.gateway.watch import CommandWatch, Malformed
from opsdrill.agents.gateway.witness import NotRecorded, Witness
from opsdrill.errors import StoreError
from opsdrill.model.event import JobEvent, TaskEnded, ToolCalled, ToolReturned
from opsdrill.model.job import Coverage, Seen

WHOLE = Coverage(default=Seen(state="whole"))


class Reports:
    """Keeps what it is told; `fails` is raised instead."""

    def __init__(self, fails: StoreError | None = None) -> None:
        self.events: list[JobEvent] = []
        self.fails = fails

    def record(self, event: JobEvent) -> None:
        if self.fails is not None:
            raise self.fails
        self.events.append(event)

    def files(self) -> list[tuple[str, object, str | None]]:
        ended = {
            event.call: event.outcome for event in self.events if isinstance(event, ToolReturned)
        }
        return [
            (event.kind, event.arguments["path"], ended.get(event.call))
            for event in self.events
            if isinstance(event, ToolCalled)
            and isinstance(event.arguments, dict)
            and "path" in event.arguments
        ]


def text(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content


def packet(kind: int, *parts: bytes | int) -> bytes:
    body = b"".join(struct.pack(">I", part) if isinstance(part, int) else part for part in parts)
    return text(bytes([kind]) + body)


def sftp() -> tuple[SftpWatch, Reports]:
    reports = Reports()
    watch = SftpWatch(Witness(reports), "web-01", "root")
    watch.begin()
    return watch, reports


READ, WRITE, APPEND, CREATE, CUT = 1, 2, 4, 8, 16


@pytest.mark.parametrize(
    ("flags", "kind"),
    [
        (READ, "other"), (WRITE | CREATE | CUT, "write_file"), (WRITE | CREATE, "write_file"),
        (WRITE, "update_file"), (READ | WRITE, "update_file"),
        (WRITE | CREATE | APPEND, "update_file"),
        (WRITE | CUT, "write_file"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("step", [1, 7, 1000])
async def test_how_a_file_is_opened(flags: int, kind: str, step: int) -> None:
    watch, reports = sftp()
    sent = (
        packet(1, 3) + packet(3, 7, text(b"/tmp/a"), flags, 0)
        + packet(6, 8, text(b"h"), 0, 0, text(b"x" * 300)) + packet(4, 9, text(b"h"))
    )  # fmt: skip
    for at in range(0, len(sent), step):
        await watch.sent(sent[at : at + step])
    assert reports.files() == [(kind, "/tmp/a", None)]
    for answer in (packet(103, 5, text(b"y" * 50)), packet(102, 7, text(b"h"))):
        assert watch.came("stdout", answer) == answer
    watch.over("ran", 0, None)
    assert reports.files() == [(kind, "/tmp/a", "ran")]


async def test_answers_say_what_became_of_it() -> None:
    watch, reports = sftp()
    await watch.sent(packet(18, 1, text(b"/a"), text(b"/b")))
    await watch.sent(packet(200, 2, text(b"posix-rename@openssh.com"), text(b"/c"), text(b"/d")))
    await watch.sent(packet(9, 3, text(b"/e"), 1, 0, 0) + packet(13, 4, text(b"/f")))
    watch.came("stdout", packet(101, 1, 4, text(b"Failure"), text(b"")))
    watch.came("stdout", packet(101, 2, 0, text(b""), text(b"")))
    watch.over("failed", None, "gone")
    assert reports.files() == [
        ("write_file", "/b", "failed"), ("update_file", "/d", "ran"),
        ("update_file", "/e", "failed"), ("other", "/f", "failed"),
    ]  # fmt: skip


@given(st.lists(st.binary(max_size=60), max_size=6), st.booleans())
async def test_any_bytes_are_packets_or_malformed(pieces: list[bytes], framed: bool) -> None:
    watch, _ = sftp()
    with suppress(Malformed):
        for piece in pieces:
            await watch.sent(text(piece) if framed else piece)
            watch.came("stdout", text(piece) if framed else piece)
    watch.over("ran", 0, None)


async def test_requests_are_bounded() -> None:
    watch, _ = sftp()
    with pytest.raises(Malformed):
        for number in range(10_000):
            await watch.sent(packet(13, number, text(b"/a")))
    with pytest.raises(Malformed):
        await sftp()[0].sent(packet(13, 1, text(b"/a")) * 2)


@pytest.mark.parametrize(
    ("command", "target"),
    [
        ("scp -t /tmp", "/tmp"), ("scp -r -p -t -- /tmp/a", "/tmp/a"),
        ("/usr/bin/scp -rpt '/a b'", "/a b"),
        ("scp -t ~/x", None), ("scp -t $HOME", None), ("scp -t a; reboot", None),
        ("scp -f /tmp", None),
        ("scp -t -S evil x", None), ("scp", None), ("echo scp -t x", None), ("scp -t 'x", None),
    ],
)  # fmt: skip
def test_where_scp_writes(command: str, target: str | None) -> None:
    assert scp_target(command) == target


@pytest.mark.parametrize(
    ("command", "both"),
    [
        ("scp -t x", (True, False)), ("scp -v -f x", (True, False)), ("scp x y", (False, False)),
        ("rsync --server -logDtpre.iLsfxCIvu . /x", (True, True)),
        ("rsync --server --sender -x . /x", (True, False)), ("rsync -a x y", (False, False)),
        ("sudo rsync --server -x . /x", (True, True)), ("env A=b /x/rsync --server", (True, True)),
        ("sudo scp -r -t x", (True, False)), ("", (False, False)), ("myscp -t", (False, False)),
    ],
)  # fmt: skip
def test_what_is_a_copy(command: str, both: tuple[bool, bool]) -> None:
    assert (copies(command), receives_rsync(command)) == both


def scp(target: str | None = "/srv", *, folder: bool = True) -> tuple[ScpWatch, Reports, Witness]:
    reports = Reports()
    witness = Witness(reports)

    async def is_folder(path: str) -> bool:
        return folder

    watch = ScpWatch(witness, "web-01", "root", "scp -t /srv", target=target, is_folder=is_folder)
    watch.begin()
    return watch, reports, witness


SENT = b"T1 0 1 0\nD0755 0 d\nC0644 3 a b\n\n\nC\0C0600 0 e\n\0E\nC0644 1 f\nx\0"


@pytest.mark.parametrize("step", [1, 5, 1000])
async def test_lines_of_scp(step: int) -> None:
    watch, reports, witness = scp()
    for at in range(0, len(SENT), step):
        await watch.sent(SENT[at : at + step])
    watch.over("ran", 0, None)
    assert reports.files() == [
        ("write_file", f"/srv/{name}", "ran") for name in ("d/a b", "d/e", "f")
    ]
    assert witness.coverage(WHOLE) == WHOLE


async def test_a_copy_that_breaks_off_failed() -> None:
    watch, reports, _ = scp("/srv/x", folder=False)
    await watch.sent(b"C0644 100 a\nabc")
    watch.over("failed", None, "gone")
    assert reports.files() == [("write_file", "/srv/x", "failed")]


@pytest.mark.parametrize(
    "sent",
    [b"nonsense\n", b"C0644 x a\n", b"C0644 1 a/b\n", b"E\n", b"x" * 9000, b"D0755 0 d\n" * 200],
)  # fmt: skip
async def test_what_cannot_be_told_is_a_gap(sent: bytes) -> None:
    watch, _, witness = scp()
    await watch.sent(sent)
    seen = witness.coverage(WHOLE)
    assert (
        seen.of("write_file").state == "partial" and seen.of("executed_commands").state == "whole"
    )


def test_coverage_gets_no_better() -> None:
    witness = Witness(Reports())
    witness.gap(("write_file",), "why")
    witness.gap(("write_file",), "again")
    none = Coverage(default=Seen(state="unavailable", why="none"))
    assert witness.coverage(none) == none
    assert witness.coverage(WHOLE).of("write_file") == Seen(state="partial", why="why")


def test_what_cannot_be_kept_is_not_begun() -> None:
    reports = Reports()
    witness = Witness(reports)
    call = witness.begin("web-01", "shell", "ssh", {"command": "ls"})
    reports.fails = StoreError("full")
    call.returned("ran", exit_code=0)
    assert witness.fault is reports.fails
    reports.fails = None
    with pytest.raises(NotRecorded):
        witness.begin("web-01", "shell", "ssh", {"command": "ls"})


def test_nothing_follows_the_end() -> None:
    reports = Reports()
    witness = Witness(reports)
    witness.begin("web-01", "shell", "ssh", {"command": "ls"})
    witness.end("completed")
    witness.end("failed")
    ends = [event for event in reports.events if isinstance(event, TaskEnded)]
    assert [end.status for end in ends] == ["completed"]
    with pytest.raises(NotRecorded):
        witness.begin("db-01", "shell", "ssh", {"command": "ls"})


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(2, 20).map(lambda half: half * 2))
def test_head_and_tail_are_kept(pieces: list[bytes], kept: int) -> None:
    stream = KeptStream(kept)
    for piece in pieces:
        stream.add(piece)
    whole = b"".join(pieces)
    if len(whole) <= kept:
        assert stream.text() == whole.decode(errors="replace")
    else:
        head, tail = whole[: kept // 2], whole[-kept // 2 :]
        assert stream.text() == (
            f"{head.decode(errors='replace')}\n[{len(whole) - kept} bytes left out]\n"
            f"{tail.decode(errors='replace')}"
        )


def test_output_is_in_the_order_of_a_command() -> None:
    kept = KeptOutput()
    kept.add("stderr", b"err\n")
    kept.add("stdout", b"out\n")
    assert kept.text("why") == "out\nerr\nwhy"


@pytest.mark.parametrize(
    ("command", "shell"),
    [
        ("bash", True), ("/bin/sh -s", True), ("bash -l", True), ("sudo -n bash -s x", True),
        ("sudo -i", True), ("su - app", True), ("sh -eux -s", True), ("bash --norc -i", True),
        ("bash -c ls", False), ("sh x.sh", False), ("bash -lc ls", False), ("sudo -i ls", False),
        ("cat | sh", False), ("echo bash", False), ("", False),
    ],
)  # fmt: skip
def test_what_is_a_shell(command: str, shell: bool) -> None:
    """One that reads its commands from its input, which are then recorded."""
    assert reads_commands(command) is shell


@pytest.mark.parametrize(
    ("command", "state"),
    [
        ("cat >/tmp/x", "whole"), ("tee /etc/motd.sh", "whole"), ("wc -c", "whole"),
        ("cat | sh", "partial"), ("python3 -", "partial"), ("sudo -n tee x", "whole"),
        (". /dev/stdin", "partial"), ("xargs rm", "partial"),
        ("/bin/bash -c 'read x; $x'", "partial"),
    ],
)  # fmt: skip
async def test_input_that_may_be_commands_is_a_gap(command: str, state: str) -> None:
    """[W3.3]"""
    witness = Witness(Reports())
    watch = CommandWatch(witness, "web-01", "root", command)
    watch.begin()
    assert witness.coverage(WHOLE) == WHOLE
    await watch.sent(b"rm -rf /")
    assert witness.coverage(WHOLE).of("executed_commands").state == state
