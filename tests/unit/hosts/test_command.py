"""The shell text that carries a command to a fresh shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opsdrill.hosts.command import (
    BOOT,
    NO_SHELL,
    SHELLS,
    TEXT_FD,
    Account,
    account_text,
    ask_line,
    environment,
    get_line,
    kill_line,
    next_mark,
    put_line,
    quote,
    run_line,
)
from opsdrill.hosts.framed import End, FramedOutput

ENVIRONMENT = environment("root", "/", "/bin/sh")


def through_shell(name: str, text: str) -> subprocess.CompletedProcess[bytes]:
    """Hand a text over as a driver does: on its descriptor, standard input empty."""
    shell = next(shell for shell in SHELLS if shell.name == name)
    path = next(path for path in shell.paths if os.access(path, os.X_OK))
    with tempfile.NamedTemporaryFile() as body:
        body.write(text.encode())
        body.flush()
        hand_over = f'text=$1; shift; exec "$@" {TEXT_FD}<"$text"'
        return subprocess.run(
            ["/bin/sh", "-c", hand_over, "sh", body.name, path, *shell.arguments[1:]],
            env=ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )


BOTH = pytest.mark.parametrize("shell", ["bash", "sh"])


@BOTH
@pytest.mark.parametrize(
    ("text", "status", "out"),
    [
        ("exit 3", 3, ""),
        ("echo a", 0, "a\n"),
        ("kill -9 $$", -9, ""),
        ("if then", 2, ""),
        ("cat <<X\n$HOME\nX", 0, "/\n"),
        ("cat; echo end", 0, "end\n"),
        ("ls /proc/self/fd | wc -l", 0, "4\n"),
        ("printf 'a\\nb'", 0, "a\nb"),
        ("exec sh -c 'exit 9'", 9, ""),
        ("set --; echo $#", 0, "0\n"),
        ("-x 2>/dev/null; echo $?", 0, "127\n"),
        ('eval "exit 4"', 4, ""),
        ("echo '  two  spaces  '", 0, "  two  spaces  \n"),
        ("echo 'a\\\\b'", 0, None),
        ("", 0, ""),
        ("\n\n", 0, ""),
        ("# nothing", 0, ""),
    ],
)
def test_launcher_runs_the_text(shell: str, text: str, status: int, out: str | None) -> None:
    """Both launchers end as `sh -c TEXT` would."""
    done = through_shell(shell, text)
    assert done.returncode == status, done
    if out is not None:
        assert done.stdout.decode() == out


@BOTH
def test_no_variable_of_the_launcher(shell: str) -> None:
    """No shell variable of the launcher is left for the text to trip over."""
    out = through_shell(
        shell, 'echo "${t-none} ${l-none} ${REPLY-none} ${IFS}"; env'
    ).stdout.decode()
    assert out.startswith("none none none  \t\n")
    assert "EXECUTION" not in out


@BOTH
def test_needs_no_program(shell: str) -> None:
    """A host without any program in its search path still runs what the shell has built in."""
    assert through_shell(shell, "PATH=/nowhere; echo on; exit 5").returncode == 5


@BOTH
@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=80))
@settings(max_examples=25, deadline=None)
def test_any_text_arrives(shell: str, text: str) -> None:
    """Whatever stands between quotes comes out as it went in."""
    done = through_shell(shell, f"printf %s {quote(text)}")
    assert done.returncode == 0
    assert done.stdout.decode() == text


def test_words_of_users_are_not_in_arguments() -> None:
    """No shell has anything on its command line but the launcher, the same for every command."""
    for shell in SHELLS:
        assert all(word.isascii() for word in shell.arguments)
        assert len(" ".join(shell.arguments)) < 160


def test_environment_is_exact() -> None:
    """PATH, HOME, USER, LOGNAME, SHELL, LANG, TERM and nothing else."""
    assert environment("deploy", "/home/deploy", "/bin/bash") == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/home/deploy",
        "USER": "deploy",
        "LOGNAME": "deploy",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
    }


NONCE = "f00dn0nce"
ROOT = Account("root", 0, 0, "/")
MARK = 1 << 61


def over_connection(
    line: str, content: bytes = b"", shell: str = "/bin/sh"
) -> tuple[FramedOutput, FramedOutput]:
    """Both streams of a shell that reads `line` and what comes after it on standard input."""
    done = subprocess.run(
        [*shell.split(), "-c", BOOT],
        input=line.encode() + content,
        capture_output=True,
        check=True,
        timeout=60,
    )
    out, err = FramedOutput(NONCE), FramedOutput(NONCE)
    for stream, data in ((out, done.stdout), (err, done.stderr)):
        stream.feed(data)
        assert stream.ended, data
    return out, err


FAR_SHELLS = pytest.mark.parametrize("far", ["/bin/sh", "bash", "busybox sh"])


def skip_without(shell: str) -> None:
    program = shell.split()[0]
    if shutil.which(program) is None:
        pytest.skip(f"needs the program {program} (Debian package busybox-static)")


@FAR_SHELLS
@pytest.mark.parametrize(
    ("text", "status", "out"),
    [
        ("cat; echo $0; exit 7", 7, "bash\n"),
        ("kill -9 $$", 137, ""),
        ("exit 255", 255, ""),
        ("ls /proc/self/fd | wc -l", 0, "4\n"),
        ("printf %s a; printf %s b >&2", 0, "a"),
        ("", 0, ""),
    ],
)
def test_status_comes_out_of_band(far: str, text: str, status: int, out: str) -> None:
    """The status of the command's shell stands after the nonce, whatever shell is behind."""
    skip_without(far)
    stdout, stderr = over_connection(run_line(NONCE, MARK, ROOT), text.encode(), far)
    assert stderr.end == End(status, "bash")
    assert stdout.text == out


@FAR_SHELLS
def test_environment_over_a_connection(far: str) -> None:
    """Nothing of the connection's shell is in the command's environment."""
    skip_without(far)
    account = Account("root", 0, 0, "/a 'b'\n$c")
    out, _ = over_connection(run_line(NONCE, MARK, account), b'env -0; printf "$HOME"', far)
    found = dict(entry.split("=", 1) for entry in out.text.split("\0")[:-1])
    for own in ("PWD", "SHLVL", "_"):
        found.pop(own, None)
    assert found.pop("SHELL").endswith("/bash")
    expected = environment("root", "/a 'b'\n$c", "")
    expected.pop("SHELL")
    assert found == expected


@FAR_SHELLS
def test_unread_text_is_no_shell(far: str) -> None:
    """Where nobody read the command's text no shell ran, whatever status stands there."""
    skip_without(far)
    line = run_line(NONCE, MARK, ROOT).replace("env -i", "/nowhere/env -i")
    _, stderr = over_connection(line, b"exit 0", far)
    assert stderr.end is not None
    assert stderr.end.shell == NO_SHELL


def sleeping(seconds: int) -> int:
    found = subprocess.run(["pgrep", "-fc", f"sleep {seconds}"], capture_output=True, check=False)
    return int(found.stdout)


@FAR_SHELLS
def test_marked_processes_are_killed(far: str) -> None:
    """What carries the mark is killed, `setsid` and double forks included; nothing else is."""
    skip_without(far)
    mark, seconds = next_mark(), 900_000_000 + os.getpid()
    text = (
        f"(setsid sh -c '(sleep {seconds} &) ; exit' &) ; sleep {seconds} & trap '' TERM;"
        f" sleep {seconds}"
    )
    shell = subprocess.Popen(
        [*far.split(), "-c", BOOT],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert shell.stdin is not None
        shell.stdin.write(run_line(NONCE, mark, ROOT).encode() + text.encode())
        shell.stdin.close()
        end = time.monotonic() + 60
        while sleeping(seconds) != 3:
            assert shell.poll() is None
            assert time.monotonic() < end
        other, _ = over_connection(kill_line(NONCE, next_mark()), b"", far)
        assert other.text == "0\n"
        assert shell.poll() is None
        killed, _ = over_connection(kill_line(NONCE, mark), b"", far)
        assert killed.text == "0\n"
        shell.wait(timeout=30)
        assert sleeping(seconds) == 0
    finally:
        subprocess.run(["pkill", "-KILL", "-f", f"sleep {seconds}"], check=False)
        shell.kill()
        shell.wait()


@FAR_SHELLS
def test_killer_that_sees_nothing_says_nothing(far: str) -> None:
    """Where /proc cannot be read, how many processes are left is not known, and not told."""
    skip_without(far)
    blind = kill_line(NONCE, next_mark()).replace("/proc/self/", "/nowhere/self/")
    out, err = over_connection(blind, b"", far)
    assert err.end is not None
    assert out.text == ""


@FAR_SHELLS
@pytest.mark.parametrize(("text", "status"), [("kill -9 0", 137), ("kill 0; sleep 9", 143)])
def test_process_group_is_the_commands_own(far: str, text: str, status: int) -> None:
    """A command that kills its process group ends with that signal, which the shell that started it
    lives to tell."""
    skip_without(far)
    _, err = over_connection(run_line(NONCE, next_mark(), ROOT), text.encode(), far)
    assert err.end is not None
    assert err.end.status == status


@FAR_SHELLS
def test_mark_can_always_be_lowered(far: str) -> None:
    """A command inside another one, as after a restart of the SSH server, has its own mark."""
    skip_without(far)
    inner = run_line("inner", MARK - 1, ROOT)
    body = f"printf %s {quote(inner + 'grep locks /proc/self/limits')} | sh -c {quote(BOOT)}"
    out, _ = over_connection(run_line(NONCE, MARK, ROOT), body.encode(), far)
    assert str(MARK - 1) in out.text


@FAR_SHELLS
@pytest.mark.parametrize("name", ["a b", "it's", "line\nbreak\n", "$(touch x)", "-n", "日本", "*"])
def test_file_of_any_name(far: str, name: str, tmp_path: Path) -> None:
    """A path is one word for the line, whatever is in it; bytes arrive as they are."""
    skip_without(far)
    content = bytes(range(256))
    path = f"{tmp_path}/{name}"
    line = put_line(NONCE, path, len(content), 0o640, None)
    assert over_connection(line, content, far)[1].end == End(0, "bash")
    assert [found.name for found in tmp_path.iterdir()] == [name]
    assert Path(path).stat().st_mode & 0o7777 == 0o640
    out, _ = over_connection(get_line(NONCE, path, 100), b"", far)
    assert out.content == content[:100]


def test_half_a_file_is_not_put(tmp_path: Path) -> None:
    """A file whose content was cut off leaves what was there before."""
    path = tmp_path / "file"
    path.write_bytes(b"before")
    _, err = over_connection(put_line(NONCE, str(path), 10, None, None), b"half")
    assert err.end is not None
    assert err.end.status == 1
    assert "cut off" in err.text
    assert path.read_bytes() == b"before"
    assert [found.name for found in tmp_path.iterdir()] == ["file"]


def test_account_is_asked_for() -> None:
    """The line of passwd and the ways to become a user come from the host."""
    out, err = over_connection(ask_line(NONCE, account_text("daemon")))
    assert out.text.startswith("daemon:x:1:1:")
    assert "su" in out.text.splitlines()
    assert err.end == End(0, "bash")


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
@settings(max_examples=25, deadline=None)
def test_quote_makes_one_word(word: str) -> None:
    """A quoted word is one word for a POSIX shell, whatever is in it."""
    done = subprocess.run(
        ["/bin/sh", "-c", f"set -- {quote(word)}; printf '%s|%s' $# \"$1\""],
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode() == f"1|{word}"
