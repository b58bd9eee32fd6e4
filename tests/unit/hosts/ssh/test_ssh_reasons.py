"""Why a machine cannot be reached, in plain words; and which host keys are known."""

from __future__ import annotations

import errno
import socket
from pathlib import Path

import asyncssh
import pytest

from opsdrill.errors import UsageError
from opsdrill.hosts.driver import DriverContext
from opsdrill.hosts.drivers.ssh.driver import SshDriver
from opsdrill.hosts.drivers.ssh.login import known_keys
from opsdrill.hosts.drivers.ssh.reasons import NoConnection, short, why
from opsdrill.model.lab import LabHost

WEB = LabHost("10.0.0.5", 2222, "deploy", key="/keys/id", via="bastion")
KEY = asyncssh.generate_private_key("ssh-ed25519")
LINE = KEY.export_public_key("openssh").decode().strip()


@pytest.mark.parametrize(
    ("error", "words", "passing"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "x"), "connection refused", True),
        (OSError(errno.EHOSTUNREACH, "x"), "no route", True),
        (OSError(errno.ENETUNREACH, "x"), "no route", True),
        (TimeoutError(), "timed out", True),
        (socket.gaierror(-2, "Name or service not known"), "cannot be resolved", True),
        (ConnectionResetError(), "closed the connection", True),
        (asyncssh.ConnectionLost("x"), "closed the connection", True),
        (asyncssh.PermissionDenied("x"), "login refused", False),
        (asyncssh.KeyExchangeFailed("x"), "no common algorithm", False),
        (asyncssh.ChannelOpenError(2, "x"), "bastion cannot reach", True),
        (OSError(errno.EMFILE, "Too many open files"), "Too many open files", True),
    ],
)
def test_reason(error: Exception, words: str, passing: bool) -> None:
    """Each says what happened and where; only what may pass is tried again."""
    reason = why(error, WEB)
    assert words in reason.reason
    assert "10.0.0.5" in reason.reason
    assert reason.passing is passing


def test_refused_login_names_what_was_tried() -> None:
    """User, key and password are named, and no secret is."""
    host = LabHost("a", user="me", key="/keys/id", password="hidden-word")
    reason = why(asyncssh.PermissionDenied("x"), host)
    assert "me" in reason.reason
    assert "/keys/id" in reason.reason
    assert "hidden-word" not in f"{reason.reason} {reason.hint} {host!r}"


def test_text_of_a_machine_is_one_short_line() -> None:
    """What a server sends moves no cursor and fills no screen."""
    text = short("\x1b[2J" + "a\nb" * 1000)
    assert "\x1b" not in text
    assert "\n" not in text
    assert len(text) <= 300


@pytest.mark.parametrize(
    "value",
    [LINE, f"{LINE} somebody", f"web,10.0.0.5 {LINE}", f"  {LINE}\n"],
    ids=["bare", "with a comment", "with host names", "with blanks"],
)
def test_known_host_as_a_line(value: str) -> None:
    """A public key stands for itself, with or without names before it."""
    known = known_keys(LabHost("a", known_host=value), Path("/nowhere"))
    assert [key.get_fingerprint() for key in known.given] == [KEY.get_fingerprint()]


@pytest.mark.parametrize("value", ["", "nonsense", "ssh-ed25519 AAAA", "/nowhere/file", "\0"])
def test_known_host_that_is_none(value: str) -> None:
    """Whatever is no key and no file is refused; never is it no check at all."""
    with pytest.raises(NoConnection, match="known_host"):
        known_keys(LabHost("a", known_host=value), Path("/nowhere"))


def test_nobody_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `known_host` and without known_hosts there is no key that would do."""
    monkeypatch.setenv("HOME", str(tmp_path))
    known = known_keys(LabHost("a"), tmp_path)
    assert known.given == ()


def test_options_are_refused(tmp_path: Path) -> None:
    """The driver has no options; what belongs to a machine stands with it."""
    with pytest.raises(UsageError, match="size"):
        SshDriver(DriverContext(tmp_path, {"size": "1"}))


async def test_preflight_without_machines(tmp_path: Path) -> None:
    """A lab without machines blocks, and the finding says what to write."""
    (finding,) = await SshDriver(DriverContext(tmp_path)).preflight()
    assert finding.blocks
    assert "lab.yaml" in (finding.remedy or "")
