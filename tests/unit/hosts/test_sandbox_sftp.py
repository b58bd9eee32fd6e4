"""Packets of SFTP: whatever a client sends, reading them is bounded and never breaks."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.hosts.drivers.sandbox.forkserver import sftp_packets as packets
from opsdrill.hosts.drivers.sandbox.forkserver.sftp_packets import Attributes, BadPacket, Fields


@given(packet=st.binary(max_size=64), what=st.lists(st.sampled_from("notpa"), max_size=8))
def test_any_bytes(packet: bytes, what: list[str]) -> None:
    """Fields are read or refused; nothing else happens."""
    fields = Fields(packet)
    calls = {
        "n": fields.number,
        "o": fields.offset,
        "t": fields.text,
        "p": fields.path,
        "a": fields.attributes,
    }
    try:
        for one in what:
            calls[one]()
    except BadPacket as error:
        assert str(error)


@given(content=st.binary(max_size=300))
def test_texts_come_back(content: bytes) -> None:
    assert Fields(packets.text(content)).text() == content


def test_attributes_that_are_asked_for() -> None:
    """Each flag brings its fields, and unknown extensions are passed over."""
    extension = struct.pack(">I", 1) + packets.text(b"a@b") + packets.text(b"c")
    numbers = struct.pack(">IQIIIII", 0x8000000F, 7, 1, 2, 0o644, 3, 4)
    fields = Fields(numbers + extension + struct.pack(">I", 99))
    assert fields.attributes() == Attributes(7, (1, 2), 0o644, (3, 4))
    assert fields.number() == 99
    assert Fields(bytes(4)).attributes() == Attributes()


def test_attributes_of_a_file(tmp_path: Path) -> None:
    """What `stat` tells of a file is what a client reads, as far as 32 bits of time go."""
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    os.utime(file, (-5, 2**40))
    read = Fields(packets.attributes(file.stat())).attributes()
    assert (read.size, read.mode) == (5, file.stat().st_mode)
    assert read.times == (0, 0xFFFFFFFF)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FileNotFoundError(2, "x"), packets.NO_SUCH_FILE),
        (NotADirectoryError(20, "x"), packets.NO_SUCH_FILE),
        (PermissionError(1, "x"), packets.PERMISSION_DENIED),
        (OSError(28, "No space left on device"), packets.FAILURE),
    ],
)
def test_errors_have_a_status(error: OSError, code: int) -> None:
    assert packets.status(error)[0] == code
