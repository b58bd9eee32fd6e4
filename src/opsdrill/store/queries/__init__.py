"""Every question and every change that the store puts to the database, a file a noun.

Each function takes the connection of a transaction that is open. `run` is a run's number, `id` its
id. Those of the shelf stand apart, in `opsdrill.store.queries.shelf`.
"""

from opsdrill.store.queries.evidence import (
    body_of,
    document,
    documents,
    events,
    events_size,
    interrupt_phases,
    phases,
    put_document,
    put_events,
    put_phase,
)
from opsdrill.store.queries.files import (
    file_size,
    forget_unused,
    known_files,
    planned_files,
    put_file,
    use_files,
    used_files,
)
from opsdrill.store.queries.grades import grades, put_grades, sealed
from opsdrill.store.queries.listings import (
    Listing,
    batch,
    batch_counts,
    batch_starters,
    batch_values,
    batches,
)
from opsdrill.store.queries.runs import (
    delete_run,
    ids_from,
    ids_in,
    insert_runs,
    owned,
    run_number,
    run_of,
    runs_to_change,
    set_run,
    set_runs,
)

__all__ = [
    "Listing",
    "batch", "batch_counts", "batch_starters", "batch_values", "batches",
    "body_of",
    "delete_run",
    "document",
    "documents",
    "events",
    "events_size",
    "file_size",
    "forget_unused",
    "grades",
    "ids_from",
    "ids_in",
    "insert_runs",
    "interrupt_phases",
    "known_files",
    "owned",
    "phases",
    "planned_files",
    "put_document",
    "put_events",
    "put_file",
    "put_grades",
    "put_phase",
    "run_number",
    "run_of",
    "runs_to_change",
    "sealed",
    "set_run",
    "set_runs",
    "use_files",
    "used_files",
]  # fmt: skip
