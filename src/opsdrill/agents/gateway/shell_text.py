"""Shell text for what a client gave as bytes."""

from __future__ import annotations


def as_text(command: bytes) -> str:
    """A command as text; where it is none, text whose shell evaluates exactly those bytes."""
    try:
        return command.decode()
    except UnicodeDecodeError:
        # A substitution loses line breaks at its end, which end a command as well as its end does.
        octets = "".join(chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in command)
        return f"eval \"$(printf '{octets}')\""


_PLAIN = b" +,./0123456789:=@ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
