"""Masking a text that comes in pieces, as if it were whole, in bounded memory."""

from __future__ import annotations

from opsdrill.evidence.mask import Mask

HELD = 1024 * 1024
"""Bytes of one line, or of one private key, that are waited for; then they are given as they are,
but for what a named secret or a token may still reach into."""
TOKEN = 4096
"""Bytes of the longest token that is found where a line is longer than `HELD`."""

STEP = 4096
"""Bytes that are waited for at least, so that not every piece is looked at by itself."""

_KEY, _END = b"-----BEGIN ", b"-----END "


class MaskStream:
    """Masks a text piece by piece; what it gives, joined, is the whole text masked.

    It gives whole lines, once no secret can reach from them into what follows.
    """

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._waiting: list[bytes] = []
        self._size = 0
        self._step = max(STEP, mask.longest)
        self._enough = 2 * self._step

    def feed(self, piece: str) -> str:
        """Take a piece; returns what can be given by now, maybe nothing."""
        data = piece.encode("utf-8", "surrogatepass")
        self._waiting.append(data)
        self._size += len(data)
        if self._size < self._enough:
            return ""
        whole = b"".join(self._waiting)
        end = self._sure(whole)
        self._waiting, self._size = [whole[end:]], len(whole) - end
        # What could not be given now is looked at again when there is twice as much of it.
        self._enough = max(2 * self._step, 2 * self._size)
        return self._mask.data(whole[:end]).decode("utf-8", "surrogatepass")

    def end(self, *, cut: bool = False) -> str:
        """The rest.

        Args:
            cut: something was left out at the end.
        """
        rest = b"".join(self._waiting)
        self._waiting, self._size = [], 0
        return self._mask.data(rest, cut=cut).decode("utf-8", "surrogatepass")

    def _sure(self, data: bytes) -> int:
        """How much nothing can change any more that is still to come."""
        hold = self._mask.longest
        end = data.rfind(b"\n", 0, max(0, len(data) - hold)) + 1
        key = data.rfind(_KEY, 0, end)
        if key >= 0 and data.find(_END, key, end) < 0:
            end = key
        if end == 0 and len(data) > HELD + hold + TOKEN:
            end = len(data) - hold - TOKEN
        for place in sorted(self._mask.places(data), reverse=True) if end else ():
            if place.start < end < place.end:
                end = place.start
        while end and data[end] & 0xC0 == 0x80:
            end -= 1  # not inside of a character
        return end
