"""Commands as an SSH server starts them: the login's shell becomes the command's own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Literal

import pytest

from opsdrill.hosts.command import Account, environment
from opsdrill.hosts.framed import FramedOutput
from opsdrill.hosts.login_shell import Login, direct_input

NONCE = "f00dn0nce"
MARK = 1 << 61
ROOT = Account("root", 0, 0, "/")
FAR_SHELLS = pytest.mark.parametrize("far", ["/bin/sh", "bash", "busybox sh"])


def skip_without(shell: str) -> None:
    program = shell.split()[0]
    if shutil.which(program) is None:
        pytest.skip(f"needs the program {program} (Debian package busybox-static)")


LOGINS = pytest.mark.parametrize(
    ("login", "far"),
    [("bash", "bash"), ("posix", "/bin/sh"), ("posix", "busybox sh"), ("other", "/bin/sh")],
)


def directly(login: Login, far: str, account: Account, text: str) -> tuple[int, str, str]:
    """Exit status and both outputs of a command, as an SSH server would start it."""
    skip_without(far)
    line, before = login.for_command(account)
    done = subprocess.run(
        [*far.split(), "-c", line],
        input=before + direct_input(NONCE, MARK, account, text.encode()),
        capture_output=True,
        check=False,
        timeout=60,
        env={"LEAK": "1", "PATH": "/usr/bin:/bin"},
    )
    out, err = FramedOutput(NONCE), FramedOutput(NONCE)
    for stream, data in ((out, done.stdout), (err, done.stderr)):
        stream.feed(data)
        stream.close()
    return done.returncode, out.text, err.text


@LOGINS
@pytest.mark.parametrize(
    ("text", "status", "out"),
    [
        ("exit 255", 255, ""),
        ("kill -9 $$", -9, ""),
        ("cat; echo $0; pwd; umask", 0, "bash\n/\n0022\n"),
        ("ls /proc/self/fd | wc -l", 0, "4\n"),
        ("echo ${l-none} ${n-none} ${t-none}", 0, "none none none\n"),
        ("", 0, ""),
        ("cat <<X\n$HOME\nX", 0, "/\n"),
    ],
)
def test_command_without_anybody_between(
    login: Literal["bash", "posix", "other"], far: str, text: str, status: int, out: str
) -> None:
    """The shell that the server started is the command's own, whatever the login shell is."""
    assert directly(Login(login), far, ROOT, text)[:2] == (status, out)


@LOGINS
def test_environment_without_anybody_between(
    login: Literal["bash", "posix", "other"], far: str
) -> None:
    """Nothing of the login's environment is left, and all seven are there."""
    _, out, _ = directly(Login(login), far, ROOT, "env")
    found = dict(entry.split("=", 1) for entry in out.splitlines())
    for own in ("PWD", "SHLVL", "_"):
        found.pop(own, None)
    assert found == environment("root", "/", "/bin/bash")


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")
@pytest.mark.parametrize(
    ("login", "far", "become"),
    [
        ("bash", "bash", "setpriv"),
        ("bash", "bash", "su"),
        ("posix", "/bin/sh", "setpriv"),
        ("posix", "busybox sh", "su"),  # busybox has a setpriv that cannot
        ("other", "/bin/sh", "setpriv"),
        ("other", "/bin/sh", "su"),
    ],
)
def test_another_user_without_anybody_between(
    login: Literal["bash", "posix", "other"], far: str, become: Literal["setpriv", "su"]
) -> None:
    """By setpriv or by su: the same user, the same place, the same bound."""
    account = Account("daemon", 1, 1, "/usr", become)
    status, out, _ = directly(
        Login(login), far, account, "id -un; pwd; echo $HOME; grep locks /proc/self/limits; exit 9"
    )
    assert status == 9
    assert out.startswith("daemon\n/usr\n/usr\n")
    assert str(MARK) in out


@pytest.mark.parametrize("bash", [True, False])
def test_text_that_was_cut_off_is_not_run(bash: bool, tmp_path: Path) -> None:
    """A text whose end did not arrive, as its connection broke, is another command: none of it
    runs; with its end all of it does."""
    line, _ = Login("posix").for_command(ROOT)
    line = line if bash else line.replace("/bin/bash", "/no/bash")
    text = f"touch {tmp_path}/ran\ntouch {tmp_path}/ran\n: more".encode()
    whole = direct_input(NONCE, MARK, ROOT, text)
    for size in (len(whole) - len(NONCE) - 2, len(whole) - len(NONCE) - 9, len(whole) - 50):
        subprocess.run(["/bin/sh", "-c", line], input=whole[:size], check=False, timeout=60)
        assert not (tmp_path / "ran").exists()
    subprocess.run(["/bin/sh", "-c", line], input=whole, check=False, timeout=60)
    assert (tmp_path / "ran").exists()


@FAR_SHELLS
def test_command_where_there_is_no_bash(far: str) -> None:
    """The text arrives line by line as it was written, and nothing of the reading is left."""
    skip_without(far)
    line, _ = Login("posix").for_command(ROOT)
    text = (
        "cat <<X\n a\\b  'c\"\n\nX\necho ${l-none} ${n-none} ${t-none} ${m-none} ${e-none}; exit 7"
    )
    done = subprocess.run(
        [*far.split(), "-c", line.replace("/bin/bash", "/no/bash")],
        input=direct_input(NONCE, MARK, ROOT, text.encode()),
        capture_output=True,
        check=False,
        timeout=60,
    )
    out = FramedOutput(NONCE)
    out.feed(done.stdout)
    assert done.returncode == 7
    assert out.text == " a\\b  'c\"\n\nnone none none none none\n"
