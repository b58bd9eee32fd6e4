"""Bodies on their way between models and rows: short ones lie in the row, long ones are files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import TypeAdapter
from sqlalchemy import Connection

from opsdrill.errors import StoreDamaged
from opsdrill.store import queries
from opsdrill.store.documents import Body, dump, load, pack, size, unpack
from opsdrill.store.files import Files

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A body for a row; `content` is what its file holds, None when it has none."""

    body: Body
    content: bytes | None = None


class Bodies:
    """Writes and reads bodies.

    Args:
        files: where those lie that are too long for a row.
    """

    def __init__(self, files: Files) -> None:
        self._files = files

    def prepare(self, adapter: TypeAdapter[T], value: T) -> Prepared:
        """The body of a value. A long one is on the disk already, ahead of the transaction."""
        content = dump(adapter, value)
        body = pack(content)
        if body is not None:
            return Prepared(body)
        return Prepared(Body("file", bytes.fromhex(self._files.put(content))), content)

    def admit(self, connection: Connection, run: int, prepared: Iterable[Prepared]) -> None:
        """Make the run a user of the files that these bodies lie in."""
        large = {
            item.body.data.hex(): item.content for item in prepared if item.content is not None
        }
        # In one order, so that no two processes wait for each other's files.
        for digest, content in sorted(large.items()):
            queries.put_file(connection, digest, len(content), None)
            # Another process may have removed it since: its last run was deleted.
            self._files.put(content)
        queries.use_files(connection, run, large)

    def read(self, adapter: TypeAdapter[T], body: Body, what: str) -> T:
        """The value of a body; `what` names it when it is damaged.

        Raises:
            StoreError: it cannot be read back.
        """
        return load(adapter, self.content(body, what), what)

    def size(self, connection: Connection, body: Body) -> int:
        """About how many bytes the JSON of a body is."""
        if body.form != "file":
            return size(body)
        return queries.file_size(connection, body.data.hex())

    def content(self, body: Body, what: str) -> bytes:
        """The JSON of a body. Raises as `read`."""
        if body.form != "file":
            return unpack(body, what)
        try:
            return self._files.read(body.data.hex())
        except KeyError:
            raise StoreDamaged(f"the file of {what} is missing") from None
