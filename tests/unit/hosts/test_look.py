"""What a machine says about itself; it is hostile input."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.hosts.command import Account
from opsdrill.hosts.drivers.ssh.findings import look_findings
from opsdrill.hosts.look import (
    NEEDED,
    Look,
    NoAccount,
    packages_digest,
    parse_account,
    parse_look,
)
from opsdrill.model.lab import LabHost

SAID = (
    "login=0\nkernel=6.1.0\ntime=1700000000\nshell=bash\nbash=yes\nmark=yes\n"
    'os="Debian GNU/Linux 12 (bookworm)"\n'
)
PASSWD = "web:x:33:33:web,,,:/var/www:/usr/sbin/nologin\n"


def test_look_is_read() -> None:
    """Everything that was said is in the look."""
    assert parse_look(SAID) == Look(
        uid=0,
        shell="bash",
        distribution="Debian GNU/Linux 12 (bookworm)",
        kernel="6.1.0",
        clock=1_700_000_000,
        marks=True,
        login="bash",
    )


@pytest.mark.parametrize(
    ("said", "login"), [("bash=yes\n", "bash"), ("zsh=yes\n", "other"), ("", "posix")]
)
def test_login_shell(said: str, login: str) -> None:
    """zsh splits words otherwise and is only asked for `sh`."""
    look = parse_look("login=0\n" + said)
    assert look is not None
    assert look.login == login


def test_what_is_not_said_is_not_known() -> None:
    """A machine that says little is not given defaults."""
    look = parse_look("login=1000\nlacks=env\nlacks=made-up\ntime=soon\n")
    assert look == Look(1000, None, None, None, None, marks=False, login="posix", lacks=("env",))


@pytest.mark.parametrize("said", ["", "login=\n", "login=root\n", "kernel=6\n"])
def test_no_look(said: str) -> None:
    """Without knowing who runs there nothing is known."""
    assert parse_look(said) is None


@given(st.text())
def test_any_words_of_a_machine(said: str) -> None:
    """Whatever it says is bounded and raises nothing."""
    look = parse_look("login=0\n" + said)
    assert look is not None
    assert len(look.distribution or "") <= 300
    assert set(look.lacks) <= set(NEEDED)


def test_findings_of_a_poor_machine() -> None:
    """What is missing is said, each with what mends it."""
    look = Look(7, None, None, None, 0, marks=False, login="posix", lacks=("env", "stat"))
    found = {finding.what: finding for finding in look_findings(LabHost("a", user="me"), look)}
    assert [what for what, finding in found.items() if not finding.good] == [
        "login",
        "shell",
        "clock",
        "programs",
        "time limits",
    ]
    assert all(finding.remedy for finding in found.values() if not finding.good)
    assert "env, stat" in found["programs"].detail
    assert "behind" in found["clock"].detail


def test_packages() -> None:
    """Only what is installed counts, sorted, so that the order of the list does not."""
    one = "installed b 2\ndeinstalled c 3\ninstalled a 1\n"
    assert packages_digest(one) == hashlib.sha256(b"a 1\nb 2").hexdigest()
    assert packages_digest("not a list\n") is None


@pytest.mark.parametrize(
    ("said", "uid", "become"),
    [
        (PASSWD + "setpriv\nsu\n", 0, "setpriv"),
        (PASSWD + "su\n", 0, "su"),
        (PASSWD, 33, "stay"),
        (PASSWD + "su\n", 33, "stay"),
    ],
)
def test_account(said: str, uid: int, become: str) -> None:
    """The way to become a user: none if it is the login itself, setpriv before su."""
    account = parse_account("web", said, uid)
    assert (account.name, account.uid, account.gid, account.home) == ("web", 33, 33, "/var/www")
    assert account.become == become


@pytest.mark.parametrize(
    ("said", "uid", "why"),
    [
        ("", 0, "no user web"),
        ("setpriv\n", 0, "no user web"),
        ("web:x:33\n", 0, "no user web"),
        ("web:x:a:b::/:\n", 0, "no user web"),
        (PASSWD, 0, "neither setpriv nor su"),
        (PASSWD + "su\n", 1000, "sudo: true"),
    ],
)
def test_no_account(said: str, uid: int, why: str) -> None:
    """A user that a command cannot run as: the reason says why."""
    with pytest.raises(NoAccount, match=why):
        parse_account("web", said, uid)


def test_home_of_nobody() -> None:
    """A user without a home works in the root folder."""
    assert parse_account("n", "n:x:9:9:::\nsu\n", 0) == Account("n", 9, 9, "/", "su")
