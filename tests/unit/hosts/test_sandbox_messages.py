"""What OpsDrill and the fork server say to each other."""

from __future__ import annotations

import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.hosts.drivers.sandbox.messages import (
    PACKET,
    Done,
    Ended,
    Failed,
    MakeHost,
    Message,
    PutFile,
    RunCommand,
    Stop,
    decode,
    encode,
    memory_file,
    read_memory_file,
    receive,
    send,
)

NAMES = st.text(max_size=20)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(RunCommand, NAMES, NAMES, st.floats(0.1, 1e6)),
    st.builds(PutFile, NAMES, NAMES, st.none() | st.integers(0, 0o7777), st.none() | NAMES),
    st.builds(
        MakeHost, NAMES, NAMES, st.dictionaries(NAMES, NAMES, max_size=3), *[st.integers(0)] * 3
    ),
    st.builds(Failed, NAMES, NAMES),
    st.builds(Ended, st.integers(0, 255), NAMES),
    st.just(Stop()),
    st.builds(Done, st.dictionaries(NAMES, NAMES, max_size=3)),
)


@given(MESSAGES)
def test_decode_gives_what_was_encoded(message: Message) -> None:
    """Every message arrives as it was sent."""
    assert decode(encode(message)) == message


def test_descriptors_travel() -> None:
    """File descriptors arrive with their message, and are not inherited further."""
    one, two = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    fd = memory_file(b"content")
    with one, two:
        send(one, Stop(), (fd,))
        came = receive(two)
        assert came is not None
        message, fds = came
        assert message == Stop()
        assert read_memory_file(fds[0]) == b"content"
        assert not os.get_inheritable(fds[0])
        os.close(fds[0])
        one.close()
        assert receive(two) is None
    os.close(fd)


def test_the_longest_request_fits() -> None:
    """The hosts file of 64 hosts with the longest names fits in one packet."""
    addresses = {f"{number:02}" + "x" * 61: f"10.99.0.{number}" for number in range(64)}
    assert len(encode(MakeHost("h1", "x" * 63, addresses, 1, 1, 1))) < PACKET
    # JSON writes a character of a path with up to twelve bytes.
    assert len(encode(PutFile("h1", "🎉" * 1000, 0o644, "x" * 65))) < PACKET


@pytest.mark.parametrize("size", [0, 1, 3_000_000])
def test_files_in_memory(size: int) -> None:
    """A file in memory gives back what was put in."""
    fd = memory_file(b"x" * size)
    assert len(read_memory_file(fd)) == size
    os.close(fd)
