"""Files by content, each with a row that tells whether anything still uses it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection

from opsdrill.store.cursor import microseconds
from opsdrill.store.database import Database, lock_alone
from opsdrill.store.files import Files
from opsdrill.store.queries import files as queries
from opsdrill.store.tables import FILES

PUT_AHEAD = timedelta(days=1)
"""How long a file may wait for what it was put for."""


class SqlFiles:
    """The files of a store, with their rows.

    Args:
        database: the store's.
        files: the folder of files.
        clock: the present moment, in UTC.
    """

    def __init__(self, database: Database, files: Files, clock: Callable[[], datetime]) -> None:
        self._database = database
        self._files = files
        self._clock = clock

    def put(self, content: bytes) -> str:
        digest = self._files.put(content)
        with self._database.write() as connection:
            queries.put_file(connection, digest, len(content), microseconds(self._clock()))
            # Another process may have removed it since.
            self._files.put(content)
        return digest

    def read(self, digest: str) -> bytes:
        return self._files.read(digest)

    def forget_unused(self, connection: Connection, digests: Sequence[str]) -> list[str]:
        """Forget those of `digests` that nothing uses any more, to be given to `remove`."""
        put_before = microseconds(self._clock() - PUT_AHEAD)
        return queries.forget_unused(connection, digests, put_before)

    def remove(self, digests: Sequence[str]) -> None:
        """Remove files, once the transaction that forgot them is over for good."""
        if not digests:
            return
        with self._database.write() as connection:
            # Not those that came back meanwhile; nobody knows a new one until this is done.
            lock_alone(connection, FILES)
            known = queries.known_files(connection, digests)
            for digest in digests:
                if digest not in known:
                    self._files.remove(digest)
