"""What Alembic runs: the migrations, on the connection and in the transaction it was handed."""

from __future__ import annotations

from alembic import context

from opsdrill.store.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
