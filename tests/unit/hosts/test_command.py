"""The shell text that carries a command (hosts.md, How commands run)."""

from __future__ import annotations

import os
import subprocess
import tempfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opsdrill.hosts.command import SHELLS, TEXT_FD, environment, launcher, quote

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


def over_connection(text: str) -> subprocess.CompletedProcess[bytes]:
    line = launcher({**ENVIRONMENT, "ODD": "a 'b' $c\n"})
    return subprocess.run(
        ["/bin/sh", "-c", line], input=text.encode(), capture_output=True, check=False, timeout=60
    )


def test_launcher_over_a_connection() -> None:
    """With the text on standard input, the far side's shell gets it, and an empty input."""
    done = over_connection('cat; env | grep -c .; printf %s "$ODD"; exit 7')
    assert done.returncode == 7
    assert done.stdout.decode().endswith("a 'b' $c\n")


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
