"""Leases of lasting hosts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "v0002"
down_revision = "v0001"
branch_labels = None
depends_on = None

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "leases",
        sa.Column("number", _NUMBER, autoincrement=True, nullable=False),
        sa.Column("run", _TEXT, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("held", sa.Boolean(), nullable=False),
        sa.Column("owner_machine", _TEXT, nullable=False),
        sa.Column("owner_boot", _TEXT, nullable=False),
        sa.Column("owner_pid", sa.BigInteger(), nullable=False),
        sa.Column("owner_started", sa.BigInteger(), nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_leases")),
        sa.UniqueConstraint("run", "attempt", name=op.f("uq_leases_run_attempt")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "lease_hosts",
        sa.Column("lease", _NUMBER, autoincrement=False, nullable=False),
        sa.Column("key", _TEXT, nullable=False),
        sa.Column("name", _TEXT, nullable=False),
        sa.ForeignKeyConstraint(["lease"], ["leases.number"], name=op.f("fk_lease_hosts_lease")),
        sa.PrimaryKeyConstraint("lease", "key", name=op.f("pk_lease_hosts")),
    )
