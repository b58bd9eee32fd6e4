"""Runs are found by their lab."""

from __future__ import annotations

from alembic import op

revision = "v0004"
down_revision = "v0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(op.f("ix_runs_lab_created_at_number"), "runs", ["lab", "created_at", "number"])
