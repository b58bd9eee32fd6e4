"""What an API needs: batches, labels and tags to find runs by, the shelf, access, requests."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import context, op

from opsdrill.store.backfill import fill

revision = "v0003"
down_revision = "v0002"
branch_labels = None
depends_on = None

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _create_lists()
    _create_shelf()
    _create_access()
    fill(op.get_bind(), context.config.attributes.get("files"))


def _create_lists() -> None:
    op.create_index(
        op.f("ix_runs_fault_created_at_number"), "runs", ["fault", "created_at", "number"]
    )
    op.create_index(
        op.f("ix_runs_batch_state_verdict_scenario_agent"),
        "runs",
        ["batch", "state", "verdict", "scenario", "agent"],
    )
    op.create_table(
        "batches",
        sa.Column("number", _NUMBER, autoincrement=True, nullable=False),
        sa.Column("id", _TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_batches")),
        sa.UniqueConstraint("id", name=op.f("uq_batches_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(op.f("ix_batches_created_at_number"), "batches", ["created_at", "number"])
    op.create_table(
        "marks",
        sa.Column("run", _NUMBER, autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", _TEXT, nullable=False),
        sa.Column("value", _TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.number"], name=op.f("fk_marks_run")),
        sa.PrimaryKeyConstraint("run", "kind", "name", name=op.f("pk_marks")),
    )
    op.create_index(
        op.f("ix_marks_kind_name_value_created_at_run"),
        "marks",
        ["kind", "name", "value", "created_at", "run"],
    )


def _create_shelf() -> None:
    op.create_table(
        "scenarios",
        sa.Column("number", _NUMBER, autoincrement=True, nullable=False),
        sa.Column("key", _TEXT, nullable=False),
        sa.Column("title", _TEXT, nullable=False),
        sa.Column("tags", _TEXT, nullable=False),
        sa.Column("hosts", _TEXT, nullable=False),
        sa.Column("rules", sa.Integer(), nullable=False),
        sa.Column("words", _TEXT, nullable=False),
        sa.Column("latest", sa.Integer(), nullable=False),
        sa.Column("version", _TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.Column("by", _TEXT, nullable=True),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_scenarios")),
        sa.UniqueConstraint("key", name=op.f("uq_scenarios_key")),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "scenario_versions",
        sa.Column("scenario", _NUMBER, autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version", _TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("by", _TEXT, nullable=True),
        sa.Column("form", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["scenario"], ["scenarios.number"], name=op.f("fk_scenario_versions_scenario")
        ),
        sa.PrimaryKeyConstraint("scenario", "number", name=op.f("pk_scenario_versions")),
    )
    op.create_table(
        "scenario_tags",
        sa.Column("scenario", _NUMBER, autoincrement=False, nullable=False),
        sa.Column("tag", _TEXT, nullable=False),
        sa.ForeignKeyConstraint(
            ["scenario"], ["scenarios.number"], name=op.f("fk_scenario_tags_scenario")
        ),
        sa.PrimaryKeyConstraint("scenario", "tag", name=op.f("pk_scenario_tags")),
    )
    op.create_index(op.f("ix_scenario_tags_tag"), "scenario_tags", ["tag"])
    op.create_table(
        "scenario_files",
        sa.Column("scenario", _NUMBER, autoincrement=False, nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["scenario"], ["scenarios.number"], name=op.f("fk_scenario_files_scenario")
        ),
        sa.ForeignKeyConstraint(
            ["digest"], ["files.digest"], name=op.f("fk_scenario_files_digest")
        ),
        sa.PrimaryKeyConstraint("scenario", "digest", name=op.f("pk_scenario_files")),
    )
    op.create_index(op.f("ix_scenario_files_digest"), "scenario_files", ["digest"])


def _create_access() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", _TEXT, nullable=False),
        sa.Column("hash", _TEXT, nullable=False),
        sa.Column("name", _TEXT, nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.Column("by", _TEXT, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("hash", name=op.f("uq_tokens_hash")),
    )
    op.create_table(
        "sessions",
        sa.Column("hash", _TEXT, nullable=False),
        sa.Column("id", _TEXT, nullable=False),
        sa.Column("token", _TEXT, nullable=False),
        sa.Column("csrf", _TEXT, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["token"], ["tokens.id"], name=op.f("fk_sessions_token")),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_sessions")),
    )
    op.create_index(op.f("ix_sessions_token"), "sessions", ["token"])
    op.create_index(op.f("ix_sessions_expires_at"), "sessions", ["expires_at"])
    op.create_table(
        "requests",
        sa.Column("who", _TEXT, nullable=False),
        sa.Column("key", _TEXT, nullable=False),
        sa.Column("digest", _TEXT, nullable=False),
        sa.Column("claimed_at", sa.BigInteger(), nullable=False),
        sa.Column("answer", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("who", "key", name=op.f("pk_requests")),
    )
    op.create_index(op.f("ix_requests_claimed_at"), "requests", ["claimed_at"])
