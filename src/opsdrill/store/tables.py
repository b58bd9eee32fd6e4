"""The tables, portable between SQLite and PostgreSQL. The migrations must build the same.

    runs         a row a run, small: what a listing shows, and who works on it
    phases       a row a phase of an attempt
    documents    what an attempt left: spec, result, record, outputs, answers, ...
    events       what the agent did, a row an event, keyed by (run, attempt, seq)
    grades       every grade of a run, numbered, never overwritten
    files        the bodies that lie in the folder of files, by content
    file_uses    which run uses which of them
    leases       which run has lasting hosts, or waits for them; the number is never used again
    lease_hosts  the machines of each
    batches      a row a batch that has runs; it stands where its first run stands
    marks        the labels of a run and the tags of its scenario, each to find runs by
    scenarios    the shelf: a row a scenario, what a listing shows of its latest version
    scenario_versions, scenario_tags, scenario_files
                 every version whole; what the latest one is tagged; the files that any of them uses
    tokens       who may do what; the secret as a hash only
    sessions     browsers that logged in with a token, by the hash of what they hold
    requests     idempotency keys of starts, with what was answered

A run has a number of its own here, so that the rows below it stay small whatever its id is.
Moments are microseconds since 1970 in UTC.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

from opsdrill.store.text import AnyText

METADATA = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)
# SQLite numbers rows by itself only in a column of the type INTEGER.
NUMBER = BigInteger().with_variant(Integer(), "sqlite")

RUNS = Table(
    "runs",
    METADATA,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("id", AnyText, nullable=False, unique=True),
    Column("batch", AnyText),
    Column("scenario", AnyText, nullable=False),
    Column("title", AnyText, nullable=False),
    Column("agent", AnyText, nullable=False),
    Column("lab", AnyText, nullable=False),
    Column("repeat", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("verdict", Text),
    Column("fault", Text),
    Column("reason", AnyText, nullable=False),
    Column("compliance_passed", Integer),
    Column("compliance_total", Integer),
    Column("remediation_passed", Integer),
    Column("remediation_total", Integer),
    Column("after_agent", Boolean, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("owner_machine", AnyText),
    Column("owner_boot", AnyText),
    Column("owner_pid", BigInteger),
    Column("owner_started", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    Column("started_at", BigInteger),
    Column("ended_at", BigInteger),
    sqlite_autoincrement=True,
)
# One index a filter, each in the order of a page.
Index(None, RUNS.c.created_at, RUNS.c.number)
for _name in ("scenario", "agent", "lab", "state", "verdict", "batch", "fault"):
    Index(None, RUNS.c[_name], RUNS.c.created_at, RUNS.c.number)
# A batch's runs are counted without reading them.
Index(None, RUNS.c.batch, RUNS.c.state, RUNS.c.verdict, RUNS.c.scenario, RUNS.c.agent)


def _run_key() -> Column[int]:
    return Column("run", NUMBER, ForeignKey(RUNS.c.number), primary_key=True, autoincrement=False)


PHASES = Table(
    "phases",
    METADATA,
    _run_key(),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, primary_key=True),
    Column("status", Text, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("ended_at", BigInteger),
    Column("reason", AnyText),
)

DOCUMENTS = Table(
    "documents",
    METADATA,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("run", NUMBER, ForeignKey(RUNS.c.number), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("name", AnyText, nullable=False),
    Column("form", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    UniqueConstraint("run", "attempt", "kind", "name"),
)

EVENTS = Table(
    "events",
    METADATA,
    _run_key(),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("form", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    sqlite_with_rowid=False,
)

GRADES = Table(
    "grades",
    METADATA,
    _run_key(),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("cause", AnyText, nullable=False),
    Column("by", AnyText),
    Column("created_at", BigInteger, nullable=False),
    Column("form", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

FILES = Table(
    "files",
    METADATA,
    Column("digest", Text, primary_key=True),
    Column("size", BigInteger, nullable=False),
    # Set while a file was put for a run that is still to be planned.
    Column("put_at", BigInteger, index=True),
)

FILE_USES = Table(
    "file_uses",
    METADATA,
    _run_key(),
    Column("digest", Text, ForeignKey(FILES.c.digest), primary_key=True, index=True),
)

LEASES = Table(
    "leases",
    METADATA,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("run", AnyText, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("held", Boolean, nullable=False),
    Column("owner_machine", AnyText, nullable=False),
    Column("owner_boot", AnyText, nullable=False),
    Column("owner_pid", BigInteger, nullable=False),
    Column("owner_started", BigInteger, nullable=False),
    Column("since", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    UniqueConstraint("run", "attempt"),
    sqlite_autoincrement=True,
)

LEASE_HOSTS = Table(
    "lease_hosts",
    METADATA,
    Column("lease", NUMBER, ForeignKey(LEASES.c.number), primary_key=True, autoincrement=False),
    Column("key", AnyText, primary_key=True),
    Column("name", AnyText, nullable=False),
)

BATCHES = Table(
    "batches",
    METADATA,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("id", AnyText, nullable=False, unique=True),
    Column("created_at", BigInteger, nullable=False),
    Index(None, "created_at", "number"),
    sqlite_autoincrement=True,
)

MARKS = Table(
    "marks",
    METADATA,
    _run_key(),
    Column("kind", Text, primary_key=True),
    Column("name", AnyText, primary_key=True),
    Column("value", AnyText, nullable=False),
    # The run's, so that one index has a page's order.
    Column("created_at", BigInteger, nullable=False),
    Index(None, "kind", "name", "value", "created_at", "run"),
)

SCENARIOS = Table(
    "scenarios",
    METADATA,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("key", AnyText, nullable=False, unique=True),
    Column("title", AnyText, nullable=False),
    Column("tags", AnyText, nullable=False),
    Column("hosts", AnyText, nullable=False),
    Column("rules", Integer, nullable=False),
    Column("words", AnyText, nullable=False),
    Column("latest", Integer, nullable=False),
    Column("version", AnyText, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    Column("by", AnyText),
    sqlite_autoincrement=True,
)


def _scenario_key() -> Column[int]:
    key = ForeignKey(SCENARIOS.c.number)
    return Column("scenario", NUMBER, key, primary_key=True, autoincrement=False)


SCENARIO_VERSIONS = Table(
    "scenario_versions",
    METADATA,
    _scenario_key(),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("version", AnyText, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("by", AnyText),
    Column("form", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

SCENARIO_TAGS = Table(
    "scenario_tags",
    METADATA,
    _scenario_key(),
    Column("tag", AnyText, primary_key=True, index=True),
)

SCENARIO_FILES = Table(
    "scenario_files",
    METADATA,
    _scenario_key(),
    Column("digest", Text, ForeignKey(FILES.c.digest), primary_key=True, index=True),
)

TOKENS = Table(
    "tokens",
    METADATA,
    Column("id", AnyText, primary_key=True),
    Column("hash", AnyText, nullable=False, unique=True),
    Column("name", AnyText, nullable=False),
    Column("role", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("revoked_at", BigInteger),
    Column("last_used_at", BigInteger),
    Column("by", AnyText),
)

SESSIONS = Table(
    "sessions",
    METADATA,
    Column("hash", AnyText, primary_key=True),
    Column("id", AnyText, nullable=False),
    Column("token", AnyText, ForeignKey(TOKENS.c.id), nullable=False, index=True),
    Column("csrf", AnyText, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False, index=True),
)

REQUESTS = Table(
    "requests",
    METADATA,
    Column("who", AnyText, primary_key=True),
    Column("key", AnyText, primary_key=True),
    Column("digest", AnyText, nullable=False),
    Column("claimed_at", BigInteger, nullable=False, index=True),
    Column("answer", LargeBinary),
)
