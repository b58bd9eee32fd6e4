"""Files: which are kept, and which run or scenario uses each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, and_, delete, or_, select, update

from opsdrill.store.database import insert_or_ignore, upsert
from opsdrill.store.files import is_digest
from opsdrill.store.tables import FILE_USES, FILES, SCENARIO_FILES


def put_file(connection: Connection, digest: str, size: int, put_at: int | None) -> None:
    """Know a file; with `put_at` it is kept from then on even while nothing uses it yet.

    Nobody forgets it until the transaction ends.
    """
    # A row that is there is written again, since only so is it ours on PostgreSQL.
    statement = upsert(
        connection, FILES, ("digest",), ("size",) if put_at is None else ("size", "put_at")
    )
    connection.execute(statement.values(digest=digest, size=size, put_at=put_at))


def file_size(connection: Connection, digest: str) -> int:
    """Bytes of a file; 0 where it is not known."""
    found = connection.execute(select(FILES.c.size).where(FILES.c.digest == digest)).scalar()
    return int(found or 0)


def use_files(connection: Connection, run: int, digests: Iterable[str]) -> None:
    rows = [{"run": run, "digest": digest} for digest in sorted(set(digests))]
    if rows:
        connection.execute(insert_or_ignore(connection, FILE_USES), rows)


def known_files(connection: Connection, digests: Iterable[str], *, keep: bool = False) -> set[str]:
    """Those of `digests` that are kept; with `keep` nobody forgets them in this transaction."""
    wanted = sorted(digest for digest in set(digests) if is_digest(digest))
    if not wanted:
        return set()
    statement = select(FILES.c.digest).where(FILES.c.digest.in_(wanted)).order_by(FILES.c.digest)
    if keep:
        statement = statement.with_for_update(read=True, key_share=True)
    return set(connection.execute(statement).scalars())


def planned_files(connection: Connection, digests: Iterable[str]) -> None:
    """What these files were put for is there."""
    if wanted := sorted(set(digests)):
        connection.execute(update(FILES).where(FILES.c.digest.in_(wanted)).values(put_at=None))


def used_files(connection: Connection, run: int) -> list[str]:
    return list(
        connection.execute(select(FILE_USES.c.digest).where(FILE_USES.c.run == run)).scalars()
    )


def forget_unused(connection: Connection, digests: Sequence[str], put_before: int) -> list[str]:
    """Forget those of `digests`, and all put before that moment, that nothing uses."""
    candidates = or_(
        FILES.c.put_at < put_before, and_(FILES.c.digest.in_(digests), FILES.c.put_at.is_(None))
    )
    # First alone with them, then a look at who uses them: nobody can begin to in between.
    held = select(FILES.c.digest).where(candidates).order_by(FILES.c.digest).with_for_update()
    found = list(connection.execute(held).scalars())
    if not found:
        return []
    used = [
        select(table.c.digest).where(table.c.digest == FILES.c.digest).exists()
        for table in (FILE_USES, SCENARIO_FILES)
    ]
    gone = delete(FILES).where(FILES.c.digest.in_(found), ~or_(*used)).returning(FILES.c.digest)
    return list(connection.execute(gone).scalars())
