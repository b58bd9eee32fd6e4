"""Alembic migrations of the store: one file a version, oldest `v0001`."""
