"""The reading end of a command's output stream, while others read from the same pipe."""

from __future__ import annotations

import fcntl
import os
import struct

import pytest

from opsdrill.hosts.drivers.sandbox.output import Output


@pytest.mark.parametrize("still_open", [False, True])
async def test_output_taken_by_others_holds_up_nothing(
    monkeypatch: pytest.MonkeyPatch, still_open: bool
) -> None:
    """What lay in the pipe may be gone when it is read: the end comes all the same."""
    stream = Output()
    writer = os.dup(stream.writer)
    stream.start()
    stream.close_writer()
    os.write(writer, b"seen")
    if not still_open:
        os.close(writer)
    # The kernel's count before a process of the host, by `/proc/PID/fd/1`, took all but this.
    monkeypatch.setattr(fcntl, "ioctl", lambda *_: struct.pack("i", 60_000))
    left = stream.finish()
    assert stream.text == "seen"
    assert (left is not None) == still_open
    stream.close()
    if still_open:
        os.close(writer)
