"""Sessions: programs that talk while they run, with pipes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from opsdrill.errors import HostError
from opsdrill.hosts.conformance.asking import (
    FOLDER,
    LONG,
    OTHER,
    cut,
    expect,
    expect_equal,
    expect_error,
    expect_none_sleeps,
    expect_sleeping,
    other_user,
    printed,
    ran,
)
from opsdrill.hosts.conformance.check import on_host
from opsdrill.hosts.driver import Host
from opsdrill.hosts.session import Session, SessionEnd, SessionRequest, Stream, Terminal

_ANSWER_SECONDS = 30.0
_HELD_UP_SECONDS = 1.5


@asynccontextmanager
async def opened(
    host: Host, command: str | None, *, user: str = "root", terminal: Terminal | None = None
) -> AsyncIterator[Session]:
    """A session, closed at the end; a login shell keeps no history, as the host may last."""
    kept = {"HISTFILE": ""} if command is None else {}
    request = SessionRequest(command, user=user, terminal=terminal, environment=kept)
    session = await host.open(request)
    try:
        yield session
    finally:
        await session.close()


async def rest(session: Session, stream: Stream = "stdout") -> bytes:
    """What a session still says."""
    parts = []
    async with asyncio.timeout(_ANSWER_SECONDS):
        while part := await session.read(stream):
            parts.append(part)
    return b"".join(parts)


async def until(session: Session, word: bytes) -> bytes:
    """What a session says until it says the word."""
    said = b""
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            while word not in said:
                part = await session.read("stdout")
                expect(bool(part), f"it ends with {cut(repr(said))}, before {word!r}")
                said += part
    except TimeoutError:
        expect(False, f"it says {cut(repr(said))}, and not {word!r}")
    return said


async def ended(session: Session) -> SessionEnd:
    """How a session ends, which must be soon."""
    async with asyncio.timeout(_ANSWER_SECONDS):
        return await session.wait()


def expect_killed(end: SessionEnd, name: str, number: int) -> None:
    """Go on only if it ended by this signal; a way that knows statuses alone says 128+n."""
    expect(end.signal == name or end.exit_code == 128 + number, f"it ended with {end}")


@on_host()
async def bytes_pass_both_ways(host: Host) -> None:
    """Bytes pass as they are, in and out, whatever they are, as many as there are."""
    content = bytes(range(256)) * 40_000
    async with opened(host, "cat") as session:

        async def give() -> None:
            await session.write(content)
            await session.write_eof()

        giving = asyncio.ensure_future(give())
        got = await rest(session)
        await giving
        expect(got == content, f"{len(got)} bytes come of {len(content)}, or they differ")
        expect_equal(await ended(session), SessionEnd(0), "how it ended")


@on_host()
async def streams_stand_apart(host: Host) -> None:
    """Standard output and error come apart."""
    async with opened(host, "echo out; echo err >&2") as session:
        expect_equal(await rest(session), b"out\n", "standard output")
        expect_equal(await rest(session, "stderr"), b"err\n", "standard error")


@on_host(scripted=True)
async def status_is_told(host: Host) -> None:
    """A session ends with its program's exit status."""
    async with opened(host, "exit 3") as session:
        expect_equal(await ended(session), SessionEnd(3), "how `exit 3` ended")
    async with opened(host, "true") as session:
        expect_equal(await ended(session), SessionEnd(0), "how `true` ended")


@on_host(scripted=True)
async def output_of_a_command(host: Host) -> None:
    """What a command says is read to its end, and then the end again."""
    async with opened(host, "echo out; echo err >&2") as session:
        expect_equal(await rest(session), b"out\n", "standard output")
        expect_equal(await session.read("stdout"), b"", "what is read at the end")


@on_host()
async def exit_255(host: Host) -> None:
    """A status of 255 is the program's own."""
    async with opened(host, "exit 255") as session:
        expect_equal(await ended(session), SessionEnd(255), "how it ended")


@on_host()
async def signal_is_told(host: Host) -> None:
    """A session whose program was killed says by which signal."""
    async with opened(host, "kill -9 $$") as session:
        expect_killed(await ended(session), "KILL", 9)


@on_host()
async def answers_while_it_runs(host: Host) -> None:
    """A program answers what it is told, before its input ends."""
    async with opened(host, "while read x; do echo got $x; done; echo end") as session:
        for word in (b"one", b"two"):
            await session.write(word + b"\n")
            await until(session, b"got " + word)
        await session.write_eof()
        await session.write_eof()
        expect_equal(await rest(session), b"end\n", "what is said last")


@on_host()
async def text_as_written(host: Host) -> None:
    """Quotes, line breaks, here-documents and any Unicode of a command arrive as written."""
    words = "printf '%s|' \"a'b\" '日本' '\\' $'x'"
    text = f"{words}\ncat <<'E'\n$x `y` \\\nE\nset --; echo \"$#:$*:$t$i\""
    async with opened(host, text) as session:
        said = (await rest(session)).decode(errors="replace")
    asked = await printed(host, text)
    expect_equal(said, asked, "what a session says, where a command says something else")


@on_host()
async def long_text(host: Host) -> None:
    """A command of 60,000 characters is a command."""
    text = f"x='{'it is ' * 10_000}'; echo ${{#x}}"
    async with opened(host, text) as session:
        expect_equal(await rest(session), b"60000\n", "what it says")


@on_host()
async def surroundings_of_a_command(host: Host) -> None:
    """A session finds what a command finds: its user, folder, variables, umask and groups."""
    text = "id; pwd; umask; env | grep -v -e ^_= -e ^SHLVL= | sort; echo $0 $#"
    async with opened(host, text) as session:
        said = (await rest(session)).decode(errors="replace")
    expect_equal(said, await printed(host, text), "what is found")


@on_host()
async def variables_are_added(host: Host) -> None:
    """What is asked for is added to the environment, whatever the values are."""
    wanted = {"LANG": "de_DE.UTF-8", "OWN": "a b'\"$x\n2"}
    request = SessionRequest('echo "$LANG:$OWN:$HOME"', environment=wanted)
    session = await host.open(request)
    try:
        expect_equal(await rest(session), b"de_DE.UTF-8:a b'\"$x\n2:/root\n", "what is found")
    finally:
        await session.close()


@on_host("users")
async def session_of_another_user(host: Host) -> None:
    """A session is that of its user, and has no more rights."""
    name, home = await other_user(host)
    async with opened(host, f"id -un; echo $HOME; : > {FOLDER}/x", user=name) as session:
        expect_equal(await rest(session), f"{name}\n{home}\n".encode(), "what it says")
        expect((await ended(session)).exit_code != 0, "it may write where it must not")


@on_host()
async def session_of_nobody(host: Host) -> None:
    """For a user that the host does not have there is no session, and the error names it."""
    for user in ("nosuchuser", "-x", "$(id -un)"):
        call = host.open(SessionRequest("true", user=user))
        await expect_error(call, HostError, f"a session of {user}", names=user)


@on_host(scripted=True)
async def impossible_sessions(host: Host) -> None:
    """What no shell can take is an error, and no other command."""
    call = host.open(SessionRequest("true\0false"))
    await expect_error(call, HostError, "a command with a NUL character", names="NUL")
    for name in ("A=B", "", "a b"):
        call = host.open(SessionRequest("true", environment={name: "x"}))
        await expect_error(call, HostError, f"a variable named {name!r}", names="environment")


@on_host()
async def ends_with_its_program(host: Host) -> None:
    """A session ends when its program does, whatever background processes hold; these go on."""
    async with opened(host, f"sleep {LONG} & echo started; exit 4") as session:
        expect_equal(await ended(session), SessionEnd(4), "how it ended")
        expect_equal(await rest(session), b"started\n", "what it said")
    await expect_sleeping(host, otherwise="what was started in the background is gone")


@on_host()
async def unread_output_holds_it_up(host: Host) -> None:
    """Where nobody reads, the program stands still; once somebody does, it goes on."""
    count = f"{FOLDER}/count"
    text = f"n=0; while head -c 100000 /dev/zero; do n=$((n+1)); echo $n > {count}; done"
    async with opened(host, text) as session:
        seen, before = -1, -2
        for _ in range(20):
            seen, before = int((await ran(host, f"cat {count}")).stdout or 0), seen
            if seen == before:
                break
            await asyncio.sleep(_HELD_UP_SECONDS)
        expect(seen == before, f"it wrote {seen * 100_000} bytes that nobody read, and goes on")
        expect(seen < 640, f"{seen * 100_000} bytes that nobody read wait somewhere")
        for _ in range(3000):
            await session.read("stdout")
            if int((await ran(host, f"cat {count}")).stdout or 0) > seen:
                return
        expect(False, "it does not go on")


@on_host()
async def unread_input_holds_us_up(host: Host) -> None:
    """Where the program does not read, writing waits, and ends with the program."""
    async with opened(host, "read x; exit 5") as session:

        async def give() -> None:
            for _ in range(1000):
                await session.write(bytes(100_000))

        giving = asyncio.ensure_future(give())
        try:
            done, _ = await asyncio.wait([giving], timeout=_HELD_UP_SECONDS)
            expect(not done, "100 MB went somewhere that nobody reads")
            await ran(host, "kill -9 $(pgrep -f 'exit[ ]5') 2>/dev/null; :")
        finally:
            await session.close()
        async with asyncio.timeout(_ANSWER_SECONDS):
            await giving


@on_host()
async def writing_to_what_is_over(host: Host) -> None:
    """Whoever writes to a session that is over, or signals it, hears nothing of it."""
    async with opened(host, "true") as session:
        await ended(session)
        await session.write(b"x" * 100_000)
        await session.write_eof()
        await session.signal("TERM")
        await session.resize(10, 10)
        await session.close()
        await session.write(b"x")
        await session.signal("TERM")
        expect_equal(await session.wait(), SessionEnd(0), "how it ended")


@on_host()
async def signals_reach_the_program(host: Host) -> None:
    """A signal reaches the program and what it started in its group; an unknown one nobody."""
    async with opened(host, f"sleep {LONG}; sleep {OTHER}") as session:
        await expect_sleeping(host)
        for name in ("NOSUCH", "", "$(reboot)", "TERM"):
            await session.signal(name)
        expect_killed(await ended(session), "TERM", 15)
    await expect_none_sleeps(host, "after a signal")


@on_host()
async def killing_a_session(host: Host) -> None:
    """Killing a session kills everything it started, `setsid` and what ignores signals included."""
    text = f"trap '' TERM HUP; (setsid sleep {OTHER} &); sleep {LONG} & sleep {LONG}"
    async with opened(host, text) as session:
        await expect_sleeping(host)
        await expect_sleeping(host, OTHER)
        expect_equal(await session.kill(), 0, "how many processes are left")
        expect_killed(await ended(session), "KILL", 9)
        expect_equal(await session.kill(), 0, "how many are left of what is over")
    await expect_none_sleeps(host, "after it was killed")
    await expect_sleeping(host, OTHER, there=False)


@on_host()
async def signals_can_be_caught(host: Host) -> None:
    """A program that catches a signal goes on."""
    text = "trap 'echo caught' USR1; echo ready; while :; do sleep 0.1; done"
    async with opened(host, text) as session:
        await until(session, b"ready")
        await session.signal("USR1")
        await until(session, b"caught")


@on_host()
async def hanging_up(host: Host) -> None:
    """Who is hung up on gets SIGHUP; what ignores that goes on."""
    text = (
        f"(trap '' HUP; echo alive; while :; do sleep 0.1; echo >> {FOLDER}/alive; done) & "
        f"trap 'echo hup > {FOLDER}/hup; exit' HUP; while :; do echo ready; sleep 0.1; done"
    )
    async with opened(host, text) as session:
        await until(session, b"alive")
        await until(session, b"ready")
    await session.close()
    await session.wait()
    await ran(
        host, f"for i in 1 2 3 4 5 6 7 8 9 10; do [ -s {FOLDER}/hup ] && break; sleep 0.2; done"
    )
    expect_equal(await printed(host, f"cat {FOLDER}/hup"), "hup\n", "what hanging up did")
    asked = f"a=$(wc -c < {FOLDER}/alive); sleep 1; b=$(wc -c < {FOLDER}/alive); echo $((b > a))"
    try:
        expect_equal(await printed(host, asked), "1\n", "whether what ignores it goes on")
    finally:
        await ran(host, f"pkill -9 -f '{FOLDER}/[a]live'; rm -rf {FOLDER}/alive; :")


@on_host()
async def closing_is_soon_over(host: Host) -> None:
    """Closing a session whose program heeds nothing is soon over, as is the session."""
    session = await host.open(SessionRequest(f"trap '' HUP TERM; sleep {LONG}; sleep {LONG}"))
    async with asyncio.timeout(_ANSWER_SECONDS):
        await session.close()
        await session.close()
        await session.wait()
        expect_equal(await session.read("stdout"), b"", "what is read of it")


@on_host()
async def many_at_once(host: Host) -> None:
    """Twenty sessions at once are twenty programs."""

    async def talk(number: int) -> bytes:
        async with opened(host, f"read x; echo {number} $x") as session:
            await session.write(b"word\n")
            return await rest(session)

    said = await asyncio.gather(*(talk(number) for number in range(20)))
    expect_equal(said, [f"{number} word\n".encode() for number in range(20)], "what they say")


@on_host()
async def text_of_a_session_on_no_command_line(host: Host) -> None:
    """Looking for a name among command lines does not find the session that looks."""
    async with opened(host, ": marked-word; grep -ls 'marked-[w]ord' /proc/[0-9]*/cmdline") as one:
        expect_equal(await rest(one), b"", "who is found")


@on_host()
async def login_shell_reads_its_input(host: Host) -> None:
    """Without a command there is a login shell, which does what its input says."""
    async with opened(host, None) as session:
        await session.write(b"id -un; cd /; pwd\nexit 6\n")
        expect_equal(await rest(session), b"root\n/\n", "what it says")
        expect_equal(await ended(session), SessionEnd(6), "how it ended")


@on_host("throw-away")
async def login_shell_reads_profiles(host: Host) -> None:
    """A login shell reads the profile of its user."""
    for name in (".bash_profile", ".profile"):
        await host.put(f"/root/{name}", b"OWN=profile\n")
    async with opened(host, None) as session:
        await session.write(b"echo $OWN\n")
        await session.write_eof()
        expect_equal(await rest(session), b"profile\n", "what it says")
