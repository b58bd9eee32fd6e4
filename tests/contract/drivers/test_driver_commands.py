"""How commands run: the same on every driver. Each test is a sentence of the contract."""

from __future__ import annotations

import asyncio
import time

import pytest

from opsdrill.hosts.driver import Host
from opsdrill.model.host import OUTPUT_LIMIT, Command, HostAnswer


async def ran(host: Host, run: str, *, user: str = "root", timeout: float = 20.0) -> HostAnswer:
    """The answer to a command, which must be an exit status."""
    answer = await host.run(Command(run=run, user=user, timeout=timeout))
    assert answer.exit_code is not None, answer
    return answer


async def printed(host: Host, run: str, *, user: str = "root") -> str:
    answer = await ran(host, run, user=user)
    assert answer.exit_code == 0, answer
    return answer.stdout


async def test_shell_is_bash_and_named(host: Host) -> None:
    """`bash` if the host has it, else `sh`; the record says which."""
    answer = await ran(host, 'printf %s "${BASH_VERSION:+bash}"')
    assert answer.shell == host.facts.shell
    assert answer.stdout == ("bash" if answer.shell == "bash" else "")


async def test_nothing_is_carried_over(host: Host) -> None:
    """One fresh shell per command, nothing carried over."""
    await ran(host, "cd /tmp; word=1; export OTHER=2; set -f; umask 077")
    assert await printed(host, 'echo "$PWD:$word:$OTHER:$(umask)"') == "/root:::0022\n"


async def test_no_login_shell(host: Host) -> None:
    """Not a login shell."""
    await host.put("/etc/profile", b"echo profile\n")
    await host.put("/root/.bashrc", b"echo bashrc\n")
    await host.put("/root/.profile", b"echo dot-profile\n")
    assert await printed(host, "echo x") == "x\n"


async def test_no_pipefail(host: Host) -> None:
    """No `pipefail`: `false | true` is 0 (FAULTS 21)."""
    assert (await ran(host, "false | true")).exit_code == 0


async def test_pipefail_in_sh_is_visible(host: Host) -> None:
    """A shell without `pipefail` says so on standard error, status and all (FAULTS 22)."""
    answer = await ran(host, "sh -c 'set -o nosuchoption; echo on'")
    assert answer.exit_code != 0
    assert "nosuchoption" in answer.stderr


async def test_user_is_root_in_its_home(host: Host) -> None:
    """User root unless said otherwise; working folder: the user's home."""
    assert await printed(host, "id -u; pwd") == "0\n/root\n"


async def test_other_users(host: Host) -> None:
    """Another user has its own ids and home."""
    if not host.facts.users:
        pytest.skip("users other than root need the Debian package uidmap")
    out = await printed(host, "id -un; id -Gn; pwd; echo $HOME $USER $LOGNAME", user="www-data")
    assert out == "www-data\nwww-data\n/var/www\n/var/www www-data www-data\n"


async def test_missing_user_is_no_status(host: Host) -> None:
    """A user that the host does not have is no exit status, and the answer says why."""
    answer = await host.run(Command(run="true", user="nosuchuser"))
    assert answer.exit_code is None
    assert answer.unreachable
    assert "nosuchuser" in (answer.reason or "")


async def test_environment_is_exact(host: Host) -> None:
    """Environment: only PATH, HOME, USER, LOGNAME, SHELL, LANG and TERM, and what a shell adds."""
    lines = (await printed(host, "env")).splitlines()
    found = dict(line.split("=", 1) for line in lines)
    for own in ("PWD", "OLDPWD", "SHLVL", "_"):
        found.pop(own, None)
    assert found.pop("SHELL").endswith("sh")
    assert found == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "USER": "root",
        "LOGNAME": "root",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
    }


async def test_standard_input_is_empty(host: Host) -> None:
    """Standard input is empty; a command that reads it gets end of file at once (FAULTS 27)."""
    assert await printed(host, "cat; read x || echo end") == "end\n"


async def test_child_cannot_read_the_text(host: Host) -> None:
    """Nothing but the three standard descriptors is open in a command."""
    assert await printed(host, "ls /proc/self/fd | wc -l") == "4\n"


async def test_pgrep_does_not_find_itself(host: Host) -> None:
    """`pgrep -f NAME` cannot find its own shell (FAULTS 6)."""
    assert (await ran(host, "pgrep -f badlog.py")).exit_code == 1
    assert (await ran(host, "pgrep -f badlog.py && echo found; test $? = 1")).exit_code == 0


async def test_pgrep_does_not_find_the_driver(host: Host) -> None:
    """`pgrep -f` on a fresh host finds nothing of OpsDrill's."""
    for word in ("python", "opsdrill", "sandbox"):
        assert (await ran(host, f"pgrep -f {word}")).exit_code == 1, word


QUOTING = {
    "single quotes": ("echo 'a\"b'", 'a"b\n'),
    "double quotes": ('echo "it\'s"', "it's\n"),
    "backslash": (r"printf '%s' 'a\nb'", r"a\nb"),
    "dollar": ("x='$HOME'; echo \"$x\"", "$HOME\n"),
    "line breaks": ("echo a\necho b\n", "a\nb\n"),
    "here-document": ("cat <<X\na $USER\nX\n", "a root\n"),
    "here-document without a last line break": ("cat <<'X'\na $USER\nX", "a $USER\n"),
    "unicode": ("echo 'héllo 日本 🎉'", "héllo 日本 🎉\n"),
    "glob and brace": ("echo '*' \"{a,b}\"", "* {a,b}\n"),
    "comment at the end": ("echo a # end", "a\n"),
    "leading blank lines": ("\n\n  echo a", "a\n"),
    "percent and exclamation": ("printf '%s' '!! %s'", "!! %s"),
    "dash first": ("-n 2>/dev/null; echo a", "a\n"),
    "arguments are none": ('echo "$# $*"', "0 \n"),
    "quotes in quotes": ("touch \"/tmp/it's a file\"; ls '/tmp/it'\\''s a file'", None),
    "a long text": ("x=" + "y" * 300_000 + "; echo ${#x}", "300000\n"),
}


@pytest.mark.parametrize("case", sorted(QUOTING))
async def test_text_arrives_as_written(host: Host, case: str) -> None:
    """Quotes, line breaks, here-documents and any Unicode arrive as written (FAULTS 23)."""
    run, expected = QUOTING[case]
    assert await printed(host, run) == (expected or "/tmp/it's a file\n")


async def test_text_that_cannot_arrive_is_not_run(host: Host) -> None:
    """A text that no shell can take as written is not run in part; there is no status."""
    answer = await host.run(Command(run="touch /tmp/half; true\0; false"))
    assert answer.exit_code is None
    assert "NUL" in (answer.reason or "")
    assert await printed(host, "ls /tmp") == ""


STATUSES = {
    "true": 0,
    "exit 3": 3,
    "false": 1,
    "exit 255": 255,
    "nosuchprogram": 127,
    "/etc/passwd": 126,
    "kill -9 $$": 137,
    "kill -TERM $$": 143,
    "exec sh -c 'exit 7'": 7,
    "sh -c 'kill -9 $$'": 137,
    "( exit 5 )": 5,
    "set -e; false; exit 9": 1,
    "trap 'exit 4' EXIT; exit 2": 4,
    "if then": 2,
    "echo 'unclosed": 2,
}


@pytest.mark.parametrize("run", sorted(STATUSES))
async def test_exit_status(host: Host, run: str) -> None:
    """`exit 3`, `kill -9 $$`, `exec`, a missing newline, a syntax error: as a user would expect."""
    assert (await ran(host, run)).exit_code == STATUSES[run]


async def test_kill_everything_has_a_status(host: Host) -> None:
    """A command that kills every process of the host still has its status, and the host lives.

    Over SSH the server is among the killed, and nobody is left to tell: the answer is `dropped`.
    """
    answer = await host.run(Command(run="kill -9 -1; sleep 1; exit 6", timeout=20))
    if host.facts.driver == "ssh":
        assert answer.dropped, answer
    else:
        assert answer.exit_code in (6, 137), answer
    assert await printed(host, "echo on") == "on\n"


async def test_ends_when_its_shell_ends(host: Host) -> None:
    """Background processes that keep the output open do not hold it up (FAULTS 26)."""
    started = time.monotonic()
    answer = await ran(host, "sleep 60 & echo started")
    assert answer.stdout == "started\n"
    assert time.monotonic() - started < 30


@pytest.mark.parametrize("redirect", ["", ">/dev/null", ">/dev/null 2>&1 </dev/null"])
async def test_background_processes_live_on(host: Host, redirect: str) -> None:
    """Background processes go on running, for the life of the host (FAULTS 26)."""
    await ran(host, f"nohup sh -c 'while echo x; do sleep 0.05; done' {redirect} &")
    await ran(host, "sleep 0.3")
    assert (await ran(host, "pgrep -f 'while echo'")).exit_code == 0


async def test_time_limit_is_no_status(host: Host) -> None:
    """Past its time limit it is reported as a time-out, not as an exit status (FAULTS 28)."""
    answer = await host.run(Command(run="echo before; sleep 9999", timeout=0.5))
    assert answer.timed_out
    assert answer.exit_code is None
    assert answer.stdout == "before\n"


DESCENDANTS = {
    "child": "sleep 9999",
    "background": "sleep 9999 & sleep 9999",
    "setsid": "setsid sleep 9999 & sleep 9999",
    "double fork": "(setsid sh -c '(sleep 9999 &) ; exit' &) ; sleep 9999",
    "nohup": "nohup sleep 9999 >/dev/null 2>&1 & sleep 9999",
    "ignores signals": "trap '' TERM INT HUP; sleep 9999; sleep 9999",
    "stopped": "sleep 9999 & kill -STOP $!; sleep 9999",
    "forks on": "f() { sleep 9999 & f; }; for i in 1 2 3; do sleep 9999 & done; sleep 9999",
}


@pytest.mark.parametrize("case", sorted(DESCENDANTS))
async def test_time_limit_kills_every_descendant(host: Host, case: str) -> None:
    """Killed on the host with every descendant, `setsid` and double forks included (FAULTS 28)."""
    answer = await host.run(Command(run=DESCENDANTS[case], timeout=0.5))
    assert answer.timed_out
    assert (await ran(host, "pgrep -f 'sleep 9999'")).exit_code == 1


async def test_time_limit_spares_others(host: Host) -> None:
    """Only what the command itself started is killed."""
    await ran(host, "sleep 8888 >/dev/null 2>&1 &")
    await host.run(Command(run="sleep 9999", timeout=0.3))
    assert (await ran(host, "pgrep -f 'sleep 8888'")).exit_code == 0


async def test_cancelling_kills_every_descendant(host: Host) -> None:
    """Cancelling the call kills the command with all its descendants."""
    call = asyncio.ensure_future(
        host.run(Command(run="touch /tmp/on; setsid sleep 9999 & sleep 9999"))
    )
    while (await host.run(Command(run="pgrep -f 'sleep 9999'"))).exit_code != 0:
        await asyncio.sleep(0.02)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await ran(host, "pgrep -f 'sleep 9999'")).exit_code == 1


async def test_streams_are_kept_apart(any_host: Host) -> None:
    """Standard output and error are kept apart."""
    answer = await any_host.run(Command(run="echo out; echo err >&2"))
    assert (answer.exit_code, answer.stdout, answer.stderr) == (0, "out\n", "err\n")


async def test_output_past_the_limit_is_dropped(any_host: Host) -> None:
    """Up to 1 MiB each; more is read and dropped, marked with the full size."""
    answer = await any_host.run(Command(run="head -c 3000000 /dev/zero | tr '\\0' x"))
    assert answer.exit_code == 0
    assert answer.truncated
    assert answer.stdout == "x" * OUTPUT_LIMIT
    assert answer.stdout_bytes == 3_000_000


async def test_output_at_the_limit_is_whole(host: Host) -> None:
    """Exactly 1 MiB is kept and not marked."""
    answer = await ran(host, f"head -c {OUTPUT_LIMIT} /dev/zero | tr '\\0' x")
    assert len(answer.stdout) == OUTPUT_LIMIT
    assert not answer.truncated


async def test_both_streams_full(host: Host) -> None:
    """Ten megabytes on both streams at once do not block (FAULTS 30)."""
    answer = await ran(
        host,
        "(head -c 10000000 /dev/zero | tr '\\0' e >&2) & head -c 10000000 /dev/zero | tr '\\0' o;"
        " wait",
        timeout=60,
    )
    assert (answer.exit_code, answer.stdout_bytes, answer.stderr_bytes) == (
        0,
        10_000_000,
        10_000_000,
    )


async def test_undecodable_bytes_are_replaced(host: Host) -> None:
    """Undecodable bytes are replaced, never an exception (FAULTS 32)."""
    answer = await ran(host, r"printf '\355\240\200\377 OK\0end'")
    assert answer.stdout.endswith(" OK\0end")
    assert "\ufffd" in answer.stdout


async def test_answer_says_what_was_asked(any_host: Host) -> None:
    """An answer names host, command, user, limit, shell and times."""
    command = Command(run="exit 3", timeout=7.0)
    answer = await any_host.run(command)
    assert (answer.on, answer.run, answer.user, answer.timeout) == ("web-01", "exit 3", "root", 7.0)
    assert answer.exit_code == 3
    assert answer.shell == any_host.facts.shell
    assert answer.started_at is not None
    assert answer.ended_at is not None
    assert answer.started_at <= answer.ended_at


async def test_time_out_of_any_driver(any_host: Host) -> None:
    """A time-out is an answer of its own on every driver."""
    answer = await any_host.run(Command(run="sleep 9999", timeout=0.2))
    assert answer.timed_out
    assert answer.reason


async def test_cancelled_on_any_driver(any_host: Host) -> None:
    """A cancelled call ends soon, and the host goes on answering."""
    call = asyncio.ensure_future(any_host.run(Command(run="sleep 9999")))
    await asyncio.sleep(0.2)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(20):
            await call
    assert (await any_host.run(Command(run="true"))).exit_code == 0


async def test_commands_run_side_by_side(host: Host) -> None:
    """Commands of one host run at the same time and can meet."""
    one = host.run(Command(run="mkfifo /tmp/p 2>/dev/null; echo hello > /tmp/p", timeout=20))
    two = host.run(Command(run="mkfifo /tmp/p 2>/dev/null; cat /tmp/p", timeout=20))
    answers = await asyncio.gather(one, two)
    assert [answer.exit_code for answer in answers] == [0, 0]
    assert answers[1].stdout == "hello\n"


async def test_many_commands_at_once(host: Host) -> None:
    """Twenty commands at once keep their outputs apart."""
    answers = await asyncio.gather(*(ran(host, f"echo {number}") for number in range(20)))
    assert [answer.stdout for answer in answers] == [f"{number}\n" for number in range(20)]


async def test_blocking_check_leaves_no_process(host: Host) -> None:
    """A check that blocks on a named pipe ends at its limit and leaves no process (FAULTS 31)."""
    await ran(host, "mkfifo /tmp/pipe")
    for _ in range(3):
        assert (await host.run(Command(run="cat /tmp/pipe", timeout=0.3))).timed_out
    assert (await ran(host, "pgrep -x cat")).exit_code == 1


async def test_host_without_tools_still_answers(host: Host) -> None:
    """A missing program is status 127 of the command, not a pass and not silence (FAULTS 3)."""
    answer = await ran(host, "nosuch-lsof /srv/f")
    assert answer.exit_code == 127
    assert "nosuch-lsof" in answer.stderr


async def test_host_without_a_shell_is_no_status(host: Host) -> None:
    """A host on which no shell can be started does not answer, and that is said (FAULTS 43)."""
    assert (await ran(host, "true")).exit_code == 0
    await ran(host, "rm -f /bin /lib /lib64 /sbin")
    answer = await host.run(Command(run="true"))
    assert answer.unreachable
    assert answer.exit_code is None
    assert "no shell" in (answer.reason or "")
    assert answer.last_answered_at is not None
