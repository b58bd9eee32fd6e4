"""Sessions with a terminal."""

from __future__ import annotations

import asyncio
import hashlib

from opsdrill.hosts.conformance.asking import (
    FOLDER,
    LONG,
    OTHER,
    expect,
    expect_equal,
    expect_none_sleeps,
    expect_sleeping,
)
from opsdrill.hosts.conformance.check import on_host
from opsdrill.hosts.conformance.sessions import ended, expect_killed, opened, rest, until
from opsdrill.hosts.driver import Host
from opsdrill.hosts.session import SessionEnd, Terminal

_TERMINAL = Terminal("vt100", 100, 30)


@on_host()
async def there_is_a_terminal(host: Host) -> None:
    """All three streams are one terminal, of the kind asked for; everything comes on standard
    output."""
    text = "for n in 0 1 2; do test -t $n && echo is $n; done; echo $TERM; echo err >&2"
    async with opened(host, text, terminal=_TERMINAL) as session:
        said = await rest(session)
        expect_equal(said, b"is 0\r\nis 1\r\nis 2\r\nvt100\r\nerr\r\n", "what it says")
        expect_equal(await rest(session, "stderr"), b"", "standard error")
        expect_equal(await ended(session), SessionEnd(0), "how it ended")


@on_host(programs=("tty",))
async def terminal_has_a_name(host: Host) -> None:
    """The terminal is one of the host's own, which can be opened by its name and as /dev/tty."""
    text = 'tty; echo one > "$(tty)"; echo two > /dev/tty'
    async with opened(host, text, terminal=_TERMINAL) as session:
        said = (await rest(session)).decode(errors="replace").split()
    expect(len(said) == 3 and said[0].startswith("/dev/"), f"it says {said}")
    expect_equal(said[1:], ["one", "two"], "what is written to it by name")


@on_host(programs=("stty",))
async def terminal_has_a_size(host: Host) -> None:
    """The terminal has the size asked for, and another one once that is said."""
    # Some engines tell the size a moment after they started the program.
    text = "for x in 1 2 3 4 5 6 7 8 9; do [ \"$(stty size)\" = '0 0' ] || break; sleep 0.5; done; "
    text += "stty size; trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.1; done"
    async with opened(host, text, terminal=_TERMINAL) as session:
        said = await until(session, b"ready")
        expect(said.startswith(b"30 100\r\n"), f"it says {said!r}")
        await session.resize(132, 43)
        await until(session, b"43 132\r\n")


@on_host()
async def terminal_echoes(host: Host) -> None:
    """A terminal shows what is typed, takes a rubout back, and gives a line at its end."""
    async with opened(host, "echo ready; read x; echo got $x", terminal=_TERMINAL) as session:
        await until(session, b"ready\r\n")
        await session.write(b"abd\x7fc\r")
        said = await rest(session)
        expect(said.startswith(b"abd"), f"it shows {said!r}")
        expect(said.endswith(b"got abc\r\n"), f"it says {said!r}")


@on_host()
async def end_of_file_on_a_terminal(host: Host) -> None:
    """The end of the input is the end of file for whoever reads the terminal."""
    async with opened(host, "echo ready; cat; echo end", terminal=_TERMINAL) as session:
        await until(session, b"ready")
        await session.write_eof()
        await until(session, b"end")


@on_host(programs=("stty", "sha256sum"))
async def raw_terminal_passes_bytes(host: Host) -> None:
    """Through a terminal without its own ways bytes pass as they are, in and out."""
    content = bytes(range(256)) * 400
    text = f"stty raw -echo; echo ready; head -c {len(content)} | sha256sum"
    async with opened(host, text, terminal=_TERMINAL) as session:
        await until(session, b"ready\n")
        await session.write(content)
        got = (await rest(session)).split()[:1]
        expect_equal(got, [hashlib.sha256(content).hexdigest().encode()], "what arrives")
    await host.put(f"{FOLDER}/file", content)
    async with opened(host, f"stty raw; cat {FOLDER}/file", terminal=_TERMINAL) as session:
        back = await rest(session)
        expect(back == content, f"{len(back)} bytes come of {len(content)}, or they differ")


@on_host()
async def interrupt_from_the_keyboard(host: Host) -> None:
    """Ctrl-C ends what runs in the foreground."""
    async with opened(host, f"sleep {LONG}; sleep {OTHER}", terminal=_TERMINAL) as session:
        await expect_sleeping(host)
        await session.write(b"\x03")
        expect_killed(await ended(session), "INT", 2)
    await expect_none_sleeps(host, "after Ctrl-C")


@on_host()
async def interactive_shell(host: Host) -> None:
    """Without a command the shell is interactive, and has jobs: Ctrl-Z stops one, `fg` goes on,
    Ctrl-C ends it, and the shell is still there."""
    async with opened(host, None, terminal=_TERMINAL) as session:
        await session.write(b"case $- in *i*) echo inter'active';; esac\r")
        await until(session, b"interactive")
        await session.write(f"sleep {LONG}\r".encode())
        await expect_sleeping(host)
        await session.write(b"\x1a")
        await until(session, b"topped")
        await session.write(b"fg\r")
        await until(session, b"sleep")
        await asyncio.sleep(0.5)
        await session.write(b"\x03")
        await expect_sleeping(host, there=False)
        await session.write(b"echo en'ded' $?\r")
        await until(session, b"ended 130")
        await session.write(b"exit 7\r")
        expect_equal(await ended(session), SessionEnd(7), "how it ended")


@on_host()
async def signal_goes_to_the_foreground(host: Host) -> None:
    """A signal reaches what runs in the foreground, and not the shell behind it."""
    async with opened(host, None, terminal=_TERMINAL) as session:
        await session.write(f"sleep {LONG}; echo wo'ke' $?\r".encode())
        await expect_sleeping(host)
        await session.signal("TERM")
        await until(session, b"woke 143")
        await session.write(b"exit 8\r")
        expect_equal(await ended(session), SessionEnd(8), "how it ended")


@on_host()
async def hanging_up_a_terminal(host: Host) -> None:
    """When the terminal is hung up, the shell and what runs in its foreground end; what was
    started with `nohup` goes on."""
    async with opened(host, None, terminal=_TERMINAL) as session:
        await session.write(f"nohup sleep {OTHER} >/dev/null 2>&1 &\rsleep {LONG}\r".encode())
        await expect_sleeping(host)
        await expect_sleeping(host, OTHER)
    await expect_sleeping(host, there=False)
    await expect_sleeping(host, OTHER, otherwise="what was started with nohup is gone")
