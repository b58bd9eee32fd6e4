"""Files by content that end with their process, and who uses them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from opsdrill.model.run import StoredFile
from opsdrill.store import course
from opsdrill.store.files import digest_of


class MemoryFiles:
    """The files of a store in memory; whoever calls holds the store's lock."""

    def __init__(self) -> None:
        self._content: dict[str, bytes] = {}
        self._waiting: set[str] = set()
        """Those that were put for something which is still to be kept."""
        self._uses: dict[Hashable, set[str]] = {}

    def put(self, content: bytes) -> str:
        digest = digest_of(content)
        self._content[digest] = bytes(content)
        self._waiting.add(digest)
        return digest

    def read(self, digest: str) -> bytes:
        """The content. Raises KeyError."""
        return self._content[digest]

    def check(self, what: str, files: Sequence[StoredFile]) -> None:
        """Raises StoreError for a file that was never put; `what` needs it."""
        course.check_files(what, files, self._content)

    def use(self, who: Hashable, what: str, files: Sequence[StoredFile]) -> None:
        """Keep these for `who`, beside those it has; `what` names it in words.

        Raises:
            StoreError: one was never put.
        """
        self.check(what, files)
        digests = {file.digest for file in files}
        self._waiting -= digests
        self._uses.setdefault(who, set()).update(digests)

    def leave(self, who: Hashable) -> None:
        """`who` is no more: what only it used goes with it."""
        gone = self._uses.pop(who, set())
        used = {digest for digests in self._uses.values() for digest in digests}
        for digest in gone - used - self._waiting:
            self._content.pop(digest, None)
