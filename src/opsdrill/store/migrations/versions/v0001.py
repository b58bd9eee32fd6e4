"""The first store: runs, phases, documents, events, grades, files."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "v0001"
down_revision = None
branch_labels = None
depends_on = None

_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _create_runs()
    _create_evidence()
    _create_files()


def _create_runs() -> None:
    op.create_table(
        "runs",
        sa.Column("number", _NUMBER, autoincrement=True, nullable=False),
        sa.Column("id", _TEXT, nullable=False),
        sa.Column("batch", _TEXT, nullable=True),
        sa.Column("scenario", _TEXT, nullable=False),
        sa.Column("title", _TEXT, nullable=False),
        sa.Column("agent", _TEXT, nullable=False),
        sa.Column("lab", _TEXT, nullable=False),
        sa.Column("repeat", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=True),
        sa.Column("fault", sa.Text(), nullable=True),
        sa.Column("reason", _TEXT, nullable=False),
        sa.Column("compliance_passed", sa.Integer(), nullable=True),
        sa.Column("compliance_total", sa.Integer(), nullable=True),
        sa.Column("remediation_passed", sa.Integer(), nullable=True),
        sa.Column("remediation_total", sa.Integer(), nullable=True),
        sa.Column("after_agent", sa.Boolean(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("owner_machine", _TEXT, nullable=True),
        sa.Column("owner_boot", _TEXT, nullable=True),
        sa.Column("owner_pid", sa.BigInteger(), nullable=True),
        sa.Column("owner_started", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_runs")),
        sa.UniqueConstraint("id", name=op.f("uq_runs_id")),
        sqlite_autoincrement=True,
    )
    op.create_index(
        op.f("ix_runs_agent_created_at_number"), "runs", ["agent", "created_at", "number"]
    )
    op.create_index(
        op.f("ix_runs_batch_created_at_number"), "runs", ["batch", "created_at", "number"]
    )
    op.create_index(op.f("ix_runs_created_at_number"), "runs", ["created_at", "number"])
    op.create_index(
        op.f("ix_runs_scenario_created_at_number"), "runs", ["scenario", "created_at", "number"]
    )
    op.create_index(
        op.f("ix_runs_state_created_at_number"), "runs", ["state", "created_at", "number"]
    )
    op.create_index(
        op.f("ix_runs_verdict_created_at_number"), "runs", ["verdict", "created_at", "number"]
    )


def _create_evidence() -> None:
    op.create_table(
        "phases",
        sa.Column("run", _NUMBER, autoincrement=False, nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("started_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.Column("reason", _TEXT, nullable=True),
        sa.ForeignKeyConstraint(["run"], ["runs.number"], name=op.f("fk_phases_run")),
        sa.PrimaryKeyConstraint("run", "attempt", "name", name=op.f("pk_phases")),
    )
    op.create_table(
        "documents",
        sa.Column("number", _NUMBER, autoincrement=True, nullable=False),
        sa.Column("run", _NUMBER, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", _TEXT, nullable=False),
        sa.Column("form", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_documents")),
        sa.UniqueConstraint(
            "run", "attempt", "kind", "name", name=op.f("uq_documents_run_attempt_kind_name")
        ),
        sa.ForeignKeyConstraint(["run"], ["runs.number"], name=op.f("fk_documents_run")),
    )
    op.create_table(
        "events",
        sa.Column("run", _NUMBER, autoincrement=False, nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("form", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.number"], name=op.f("fk_events_run")),
        sa.PrimaryKeyConstraint("run", "attempt", "seq", name=op.f("pk_events")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "grades",
        sa.Column("run", _NUMBER, autoincrement=False, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("cause", _TEXT, nullable=False),
        sa.Column("by", _TEXT, nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("form", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.number"], name=op.f("fk_grades_run")),
        sa.PrimaryKeyConstraint("run", "number", name=op.f("pk_grades")),
    )


def _create_files() -> None:
    op.create_table(
        "files",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("put_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_files")),
    )
    op.create_index(op.f("ix_files_put_at"), "files", ["put_at"])
    op.create_table(
        "file_uses",
        sa.Column("run", _NUMBER, autoincrement=False, nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["run"], ["runs.number"], name=op.f("fk_file_uses_run")),
        sa.ForeignKeyConstraint(["digest"], ["files.digest"], name=op.f("fk_file_uses_digest")),
        sa.PrimaryKeyConstraint("run", "digest", name=op.f("pk_file_uses")),
    )
    op.create_index(op.f("ix_file_uses_digest"), "file_uses", ["digest"])
