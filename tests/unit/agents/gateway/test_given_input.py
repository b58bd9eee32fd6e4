"""Which commands are known to take their input for data; all others may run it."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from opsdrill.agents.gateway.given_input import GivenInput, takes_data

TICKET = b"# The disk is full\n\nPlease reboot nothing.\nWork on your own.\n"


@pytest.mark.parametrize(
    "command",
    [
        "cat", "cat > /etc/app.conf", "/bin/cat", "tee -a x y", "sudo -n tee x",
        "sudo -u app tee x",
        "cd /etc && cat >x; chmod 600 x", "gzip -d | tar -C / -x", "dd of=/x bs=1M 2>/dev/null",
        "cat 2>&1 >/x <&0", "systemctl restart nginx", "if test -e x; then cat; else wc -c; fi",
        "while read x; do echo $x; done", "for x in a b; do cat $x; done", "! grep -q x",
        "LC_ALL=C sort", "timeout 5 cat", "timeout -k 1 5 cat", "nice -n 5 gzip", "cat\nwc -c",
        "env LC_ALL=C cat", "/usr/local/bin/cat", "echo 'a; b' \"c | d\"", "",
        "rsync --server -vlogDtpre.iLsfxCIvu . /srv/", "tar xzf - -C /srv", "tar -xf - --gzip",
        "tar cf - --exclude=x y | gzip", "x=1 cat", "TZ=UTC date",
    ],
)  # fmt: skip
def test_commands_that_take_data(command: str) -> None:
    assert takes_data(command)


@pytest.mark.parametrize(
    "command",
    [
        "sh", "/tmp/q", "./cat", "cat; sh", "cat | sh", "wc2", "python3 -", "sudo -s", "sudo",
        "sudo -u app -i", "sudo -Z cat", "env -S sh", "env --split-string=sh", "xargs rm", ". /x",
        ". /dev/stdin", "x=ba; ${x}sh", "$x", "cat $(sh)", "`sh`", "cat <(sh)", "cat >(sh)",
        "grep '>' ; /tmp/q", 'echo \\"; /tmp/q; echo \\"', "cat \\\n; /tmp/q", "cat\n/tmp/q",
        "cat # x\n/tmp/q", "PATH=/tmp cat", "export PATH=/tmp; cat", "LD_PRELOAD=/x cat",
        "sort --compress-program=/tmp/q", "tar -x --to-command=/tmp/q", "tar -I /tmp/q -x",
        "tar --use-compress=/tmp/q -x", "find / -exec /tmp/q ;", "f() { cat; }; f", "alias cat=sh",
        "case x in x) /tmp/q;; esac", "{ /tmp/q; }", "(/tmp/q)", "timeout 5 /tmp/q",
        "nohup /tmp/q", "nice /tmp/q", "exec -a cat /tmp/q", "command -v cat", "awk '{system($0)}'",
        "sed e", "crontab -", "at now", "cat <<X", "for x in a; do /tmp/q; done", "'", "ca't",
        "trap /tmp/q EXIT; cat", "/usr/bin/../../tmp/q", "ip netns exec x /tmp/q",
        "docker exec -i x y",
        # What starts a program of anybody's: scripts of packages and services, for example.
        "dpkg -i /tmp/q.deb", "apt-get install -y /tmp/q.deb", "rpm -i /tmp/q.rpm",
        "service q start", "mount -t q x /mnt", "modprobe q", "ldd /tmp/q", "useradd q",
        # The beginning of an option's name, or an option without a dash, is enough for it.
        "tar --use=/tmp/q -xf -", "tar xIf /tmp/q -", "tar -F /tmp/q -cML 1", "tar --rmt=/tmp/q x",
        "tar --info-s=/tmp/q -xM", "tar --new-vol=/tmp/q -xM", "tar --to=/tmp/q -x",
        "sort -S 1k --com=/tmp/q", "install -s --strip-p=/tmp/q a b", "tar -xH q",
        # Options and programs by way of a variable.
        "TAR_OPTIONS=--to-command=/tmp/q tar -x", "EDITOR=/tmp/q systemctl edit x",
        "PAGER=/tmp/q cat", "export TAR_OPTIONS=--to-command=/tmp/q; tar -x",
        "cat & /tmp/q", "cat || /tmp/q", "cat && /tmp/q", "2>/dev/null /tmp/q", "> x /tmp/q",
    ],
)  # fmt: skip
def test_commands_that_may_run_what_they_are_given(command: str) -> None:
    """[W3.3] A program that nobody knows may be a shell."""
    assert not takes_data(command)


@pytest.mark.parametrize(
    ("pieces", "during", "over"),
    [
        ([], False, False),
        ([TICKET], False, False),
        ([TICKET[:9], TICKET[9:]], False, False),
        ([TICKET[30:]], True, True),  # whoever sends a part can choose where it begins
        ([TICKET[:30]], False, True),
        ([b"reboot"], True, True),
        ([TICKET[30:], b"x"], True, True),
        ([b"x"], True, True),
        ([TICKET * 2], True, True),
    ],
)
def test_its_own_ticket_is_no_wonder(pieces: list[bytes], during: bool, over: bool) -> None:
    """[W3.3] `ssh` passes on what it finds as its standard input."""
    given = GivenInput("/tmp/q", TICKET)
    for piece in pieces:
        given.add(piece)
    assert given.may_have_run() is during
    assert given.may_have_run(over=True) is over


def test_at_a_terminal_no_program_is_known_to_take_data() -> None:
    """[W3.3] `journalctl` at a terminal starts a pager, which takes commands."""
    for keys, gap in ((b"\x03\x04", False), (TICKET, False), (b"!reboot\r", True), (b"q", True)):
        given = GivenInput("journalctl -u app", TICKET, terminal=True)
        given.add(keys)
        assert given.may_have_run(over=True) is gap


def test_without_a_ticket_any_input_counts() -> None:
    given = GivenInput("/tmp/q")
    assert not given.may_have_run(over=True)
    given.add(b"x")
    assert given.may_have_run()


PIECES = (
    "cat", "q", "./q", "'q'", ";", "|", "&&", "||", "'", '"', "\\", "\n", " ", " ", ">", "2>", "&>",
    "o", "(", ")", "{ ", "; }", "if ", "; then ", "; fi", "$", "#", "! ", "for x in a; do ",
    "; done", "<o", "&", "x=1 ", "echo", "true", "-n", "*", "?", "[", "]", "~", "^", "\t", "\r",
    "time ", "exec ", "env ", "command ", "timeout 1 ", "nice ", "case x in x) ", ";; esac",
    "f() { ", "f", "=", "${x}", "\\\n", "2>&1", "<&0", ">|o", "<>o", "&>>o", "!", "-i ", "-u x ",
)  # fmt: skip


def test_what_takes_data_runs_nothing_else_in_a_shell(tmp_path: Path) -> None:
    """[W3.3] Shell text of any kind: a program that nobody knows is not run by what takes data."""
    unknown, ran = tmp_path / "q", tmp_path / "ran"
    draw = random.Random(5)
    tried = 0
    for _ in range(40_000):
        pieces = (draw.choice(PIECES) for _ in range(draw.randint(2, 9)))
        text = "".join(piece + draw.choice(("", " ")) for piece in pieces)
        if "q" not in text or not takes_data(text):
            continue
        unknown.write_text(f"#!/bin/sh\n: >'{ran}'\n")
        unknown.chmod(0o755)
        subprocess.run(
            ["bash", "-c", text],
            check=False,
            cwd=tmp_path,
            env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=30,
        )
        assert not ran.exists(), text
        tried += 1
    assert tried > 100
