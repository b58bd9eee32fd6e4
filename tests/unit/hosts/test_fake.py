"""The fake driver: answers are scripted, and what nobody scripted is never a success."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.errors import HostError, HostUnreachable, InvalidInput, ProvisionFailed, UsageError
from opsdrill.hosts.driver import DRIVERS, Driver, DriverContext, Fleet, Host
from opsdrill.hosts.drivers.fake import DISK_LIMIT, FakeDriver, FakeFleet, FakeHost
from opsdrill.hosts.drivers.fake_script import (
    SCRIPT_LIMIT,
    FakeAnswer,
    FakeScript,
    Scripted,
    load_fake_script,
)
from opsdrill.hosts.session import SessionEnd, SessionRequest, Terminal
from opsdrill.model.host import OUTPUT_LIMIT, Command, HostAnswer
from opsdrill.model.scenario import HostSpec


def host(*answers: FakeAnswer, name: str = "web-01", otherwise: Scripted | None = None) -> FakeHost:
    return FakeHost(name, FakeScript(answers=answers, otherwise=otherwise))


async def code(host: Host, run: str) -> int | None:
    return (await host.run(Command(run=run))).exit_code


def written(folder: Path, content: object) -> Path:
    path = folder / "answers.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


async def test_a_command_that_nobody_scripted_ends_with_127_and_says_so() -> None:
    answer = await host().run(Command(run="true"))
    assert answer.exit_code == 127
    assert answer.stderr == "fake host web-01: no scripted answer\n"


async def test_the_answer_carries_all_that_a_host_answer_has() -> None:
    web = host(FakeAnswer(run="id", exit_code=3, stdout="out", stderr="err"))
    answer = await web.run(Command(run="id", user="app", timeout=7))
    assert (answer.on, answer.run, answer.user, answer.timeout) == ("web-01", "id", "app", 7)
    assert (answer.exit_code, answer.stdout, answer.stderr) == (3, "out", "err")
    assert answer.started_at and answer.ended_at and answer.started_at <= answer.ended_at
    assert HostAnswer.model_validate_json(answer.model_dump_json()) == answer


async def test_the_first_answer_that_fits_is_given() -> None:
    web = host(
        FakeAnswer(run="a", on="db-01", exit_code=1),
        FakeAnswer(starts_with="a b", exit_code=2),
        FakeAnswer(run="a b", exit_code=3),
        FakeAnswer(run="a", exit_code=4),
    )
    assert [await code(web, run) for run in ("a", "a b", "a b c", "ab")] == [4, 2, 2, 127]


async def test_an_answer_may_be_for_one_user() -> None:
    web = host(FakeAnswer(run="id -u", user="nobody", exit_code=0, stdout="65534\n"))
    assert (await web.run(Command(run="id -u", user="nobody"))).exit_code == 0
    assert (await web.run(Command(run="id -u"))).exit_code == 127


async def test_an_answer_with_times_makes_room_for_later_ones() -> None:
    web = host(FakeAnswer(run="a", exit_code=1, times=2), FakeAnswer(run="a", exit_code=0))
    assert [await code(web, "a") for _ in range(4)] == [1, 1, 0, 0]


async def test_times_are_counted_on_each_host_apart() -> None:
    script = FakeScript(answers=(FakeAnswer(run="a", exit_code=1, times=1),))
    one, two = FakeHost("one", script), FakeHost("two", script)
    assert [await code(host, "a") for host in (one, two, one)] == [1, 1, 127]


async def test_an_answer_after_a_command_waits_until_that_one_ended() -> None:
    web = host(
        FakeAnswer(run="check", after="mend", exit_code=0),
        FakeAnswer(run="check", exit_code=7),
        FakeAnswer(run="mend", timed_out=True, times=1),
        FakeAnswer(run="mend", exit_code=0),
    )
    assert await code(web, "check") == 7
    assert await code(web, "mend") is None
    assert await code(web, "check") == 7, "a time-out is no end with a status"
    assert await code(web, "mend") == 0
    assert await code(web, "check") == 0


async def test_otherwise_answers_every_other_command() -> None:
    web = host(FakeAnswer(run="a", exit_code=1), otherwise=Scripted(exit_code=0))
    assert [await code(web, run) for run in ("a", "b")] == [1, 0]


@pytest.mark.parametrize("outcome", ["timed_out", "unreachable", "dropped"])
async def test_outcomes_without_an_exit_status_are_never_one(outcome: str) -> None:
    web = host(FakeAnswer.model_validate({"run": "a", outcome: True}))
    answer = await web.run(Command(run="a"))
    assert getattr(answer, outcome) is True
    assert answer.exit_code is None
    assert answer.reason


async def test_a_delay_up_to_the_time_limit_is_a_time_out() -> None:
    web = host(FakeAnswer(run="a", exit_code=0, delay=60, stdout="so far"))
    answer = await web.run(Command(run="a", timeout=0.01))
    assert (answer.timed_out, answer.exit_code, answer.stdout) == (True, None, "so far")
    assert answer.reason == "no exit status within 0.01 s"


async def test_a_host_that_never_answers_is_unreachable_after_its_delay_too() -> None:
    web = host(FakeAnswer(run="a", unreachable=True, delay=60))
    assert (await web.run(Command(run="a", timeout=0.01))).unreachable


async def test_cancelling_leaves_nothing_running() -> None:
    web = host(FakeAnswer(run="a", exit_code=0, delay=60))
    task = asyncio.create_task(web.run(Command(run="a")))
    await asyncio.sleep(0)
    assert web.running == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert web.running == 0


async def test_a_host_that_dies_is_silent_from_then_on() -> None:
    web = host(FakeAnswer(run="kill", exit_code=0, dies=True), otherwise=Scripted(exit_code=0))
    assert await code(web, "kill") == 0
    answer = await web.run(Command(run="uptime"))
    assert answer.unreachable
    assert answer.last_answered_at is not None
    with pytest.raises(HostUnreachable):
        await web.put("/a", b"")
    with pytest.raises(HostUnreachable):
        await web.get("/a")


async def test_output_past_the_limit_is_cut_and_its_full_size_told() -> None:
    text = "é" * OUTPUT_LIMIT
    answer = await host(FakeAnswer(run="a", exit_code=0, stdout=text)).run(Command(run="a"))
    assert answer.truncated
    assert answer.stdout_bytes == 2 * OUTPUT_LIMIT
    assert len(answer.stdout.encode()) == OUTPUT_LIMIT


async def test_files_come_back_as_they_were_put() -> None:
    web = host()
    await web.put("/etc//app/../x", b"\xff\x00", mode=0o600, owner="app")
    assert await web.get("/etc/x") == b"\xff\x00"
    assert await web.get("/etc/x", limit=1) == b"\xff"
    assert (web.files["/etc/x"].mode, web.files["/etc/x"].owner) == (0o600, "app")


async def test_a_file_put_without_mode_and_owner_keeps_its_own() -> None:
    web = host()
    await web.put("/etc/x", b"1", mode=0o600, owner="app")
    await web.put("/etc/x", b"2", mode=None, owner=None)
    await web.put("/etc/y", b"", mode=None, owner=None)
    kept, new = web.files["/etc/x"], web.files["/etc/y"]
    assert (kept.content, kept.mode, kept.owner) == (b"2", 0o600, "app")
    assert (new.mode, new.owner) == (0o644, "root")


async def test_files_that_cannot_be_are_refused() -> None:
    web = host()
    await web.put("/etc/x", b"")
    with pytest.raises(FileNotFoundError):
        await web.get("/etc/y")
    for wrong in ("relative", "/", "//", "/a\0b", "/etc/.."):
        with pytest.raises(HostError, match="absolute path"):
            await web.put(wrong, b"")
    for path in ("/etc", "/etc/x/y"):
        with pytest.raises(HostError, match="folder"):
            await web.put(path, b"")
    with pytest.raises(HostError, match="folder"):
        await web.get("/etc")
    with pytest.raises(HostError, match="no space"):
        await web.put("/big", bytes(DISK_LIMIT + 1))


async def test_changed_files_are_counted_from_mark() -> None:
    web = FakeHost("web-01", FakeScript(files={"web-01": {"/kept": "1", "/edited": "1"}}))
    await web.put("/setup", b"")
    await web.mark()
    assert await web.changed() == ()
    await web.put("/edited", b"22")
    await web.put("/kept", b"1")
    await web.put("/new", b"")
    del web.files["/setup"]
    changed = await web.changed()
    assert changed is not None
    assert [(file.path, file.change, file.size) for file in changed] == [
        ("/edited", "changed", 2),
        ("/new", "added", 0),
        ("/setup", "removed", None),
    ]


async def test_releasing_ends_what_runs_and_may_be_repeated() -> None:
    driver = FakeDriver(
        DriverContext(Path()), FakeScript(answers=(FakeAnswer(run="a", exit_code=0, delay=60),))
    )
    async with await driver.provision("run-1", [HostSpec(name="web-01")]) as fleet:
        web = fleet.hosts["web-01"]
        waiting = asyncio.create_task(web.run(Command(run="a")))
        await asyncio.sleep(0)
        assert set(driver.fleets) == {"run-1"}
        await fleet.release()
    assert (await waiting).unreachable
    assert (await web.run(Command(run="a"))).unreachable
    assert not driver.fleets
    with pytest.raises(HostUnreachable):
        await web.put("/a", b"")


async def test_a_host_that_cannot_be_made_leaves_no_fleet() -> None:
    driver = FakeDriver(DriverContext(Path()), FakeScript(unmade=("db-01",)))
    with pytest.raises(ProvisionFailed, match="db-01"):
        await driver.provision("run-1", [HostSpec(name="web-01"), HostSpec(name="db-01")])
    assert not driver.fleets
    await driver.close()


async def test_the_registered_driver_reads_the_file_of_its_option(tmp_path: Path) -> None:
    written(
        tmp_path,
        {
            "format": "opsdrill.fake/1",
            "answers": [{"run": "a", "exit_code": 4}],
            "files": {"web-01": {"/etc/motd": "hello"}},
            "silent": ["db-01"],
        },
    )
    driver = DRIVERS.get("fake")(DriverContext(tmp_path, {"answers": "answers.json"}, tmp_path))
    assert all(finding.good for finding in await driver.preflight())
    fleet = await driver.provision("r", [HostSpec(name="web-01"), HostSpec(name="db-01")])
    assert await code(fleet.hosts["web-01"], "a") == 4
    assert await fleet.hosts["web-01"].get("/etc/motd") == b"hello"
    assert (await fleet.hosts["db-01"].run(Command(run="a"))).unreachable
    assert await driver.reap() == []
    await driver.close()
    assert (await fleet.hosts["web-01"].run(Command(run="a"))).unreachable


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "answers.json:1:2: is not JSON"),
        ('{"answers": [], "answers": []}', "has the key 'answers' twice in one object"),
        ("[" * 100_000, "is nested too deeply"),
        ("[]", "must be an object"),
        ({"answer": []}, "answer is not a known key here"),
        ({"answers": [{"run": "a"}]}, "answers[0] needs exactly one of `exit_code`"),
        ({"answers": [{"exit_code": 0}]}, "answers[0] needs either `run` or `starts_with`"),
        ({"answers": [{"run": "a", "exit_code": True}]}, "answers[0].exit_code must be a whole"),
        ({"answers": [{"run": "a", "exit_code": 0, "delay": -1}]}, "answers[0].delay must be at"),
        (
            {"files": {"web-01": {"motd": ""}}},
            "files.web-01 needs absolute paths of files, not 'motd'",
        ),
        ('{"answers": [{"run": "a", "exit_code": 0, "delay": NaN}]}', "answers[0].delay"),
        ('{"answers": [{"run": "\\ud800", "exit_code": 0}]}', "half of a surrogate pair"),
        (" " * (SCRIPT_LIMIT + 1), "has more than"),
    ],
)
def test_a_broken_script_is_refused_with_its_place(
    tmp_path: Path, content: object, said: str
) -> None:
    with pytest.raises(InvalidInput, match=re.escape(said)):
        load_fake_script(written(tmp_path, content))


def test_options_and_files_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no option 'size'"):
        FakeDriver(DriverContext(tmp_path, {"size": "1"}))
    with pytest.raises(UsageError, match="cannot read the answers"):
        FakeDriver(DriverContext(tmp_path, {"answers": "none.json"}, tmp_path))
    with pytest.raises(UsageError, match="not a file"):
        load_fake_script(tmp_path)
    (tmp_path / "bytes.json").write_bytes(b'"\xff"')
    with pytest.raises(InvalidInput, match="is not UTF-8"):
        load_fake_script(tmp_path / "bytes.json")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda item: st.lists(item) | st.dictionaries(
            st.sampled_from(["answers", "run", "on", "exit_code", "files", "otherwise"])
            | st.text(), item),
    )
)  # fmt: skip
def test_any_json_is_a_script_or_refused(content: object) -> None:
    with tempfile.TemporaryDirectory() as folder:
        try:
            assert isinstance(load_fake_script(written(Path(folder), content)), FakeScript)
        except InvalidInput as error:
            assert error.problems


def test_it_keeps_the_protocols() -> None:
    """Checked by mypy; at run time only that the names stand."""
    driver: type[Driver] = FakeDriver
    fleet: type[Fleet] = FakeFleet
    host: type[Host] = FakeHost
    assert (driver.name, fleet.__name__, host.__name__) == ("fake", "FakeFleet", "FakeHost")


async def test_sessions_say_what_the_script_says() -> None:
    """A command's answer comes as a session: output, status, or why there is none."""
    one = host(
        FakeAnswer(run="hello", exit_code=3, stdout="out\n", stderr="err\n"),
        FakeAnswer(run="lost", dropped=True),
    )
    session = await one.open(SessionRequest("hello"))
    assert [await session.read("stdout", 3), await session.read("stdout")] == [b"out", b"\n"]
    assert [await session.read("stderr"), await session.read("stderr")] == [b"err\n", b""]
    assert await session.wait() == SessionEnd(3)
    lost = await one.open(SessionRequest("lost"))
    assert (await lost.wait()).reason == "the connection ended before the command did"
    unscripted = await one.open(SessionRequest("who knows"))
    assert await unscripted.wait() == SessionEnd(127)
    assert [command.run for command in one.asked] == ["hello", "lost", "who knows"]


@pytest.mark.parametrize(
    "request_",
    [
        SessionRequest(None),
        SessionRequest("true", terminal=Terminal()),
        SessionRequest(files=True),
        SessionRequest("true", user="-x"),
        SessionRequest("true", environment={"A": "\0"}),
    ],
)
async def test_sessions_that_no_script_has(request_: SessionRequest) -> None:
    """Shells, terminals and SFTP are not scripted; what no host can do is refused here too."""
    with pytest.raises(HostError, match=r"scripted host|user|environment"):
        await host().open(request_)


async def test_no_session_with_a_silent_host() -> None:
    one = host()
    one.silent = True
    with pytest.raises(HostUnreachable):
        await one.open(SessionRequest("true"))
