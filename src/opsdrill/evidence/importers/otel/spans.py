"""Spans of OpenTelemetry exports, whatever they are packed in, with plain attributes.

OTLP JSON (opentelemetry-proto, JSON encoding), as one document or a line for each export; Tempo's
batches; Jaeger's `data[].spans[]`; and one span on its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from opsdrill.evidence.transcripts.glimpse import Glimpse
from opsdrill.evidence.transcripts.ledger import Ledger
from opsdrill.evidence.transcripts.reading import rows_of
from opsdrill.evidence.transcripts.rows import listing, mapping, text, within
from opsdrill.evidence.transcripts.source import Damaged, Source

_RESOURCES = ("resourceSpans", "resource_spans", "batches")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
_WRAPPED = ("", "trace.", "result.", "data.")
_NESTED = tuple(
    f"{outer}{resource}.item.{scope}.item.spans.item"
    for outer in _WRAPPED
    for resource in _RESOURCES
    for scope in _SCOPES
)
_JAEGER = ("data.item.spans.item", "spans.item")
_ALONE = ("spanName", "attributes")
_DEPTH = 12


@dataclass(frozen=True, slots=True)
class Span:
    """One span.

    Args:
        trace: the trace's id; empty where it has none.
        id: its own; empty where it has none.
        parent: the span it is in.
        name: what was done.
        start: nanoseconds since 1970.
        end: likewise; None where it did not end.
        attributes: plain values by their names.
        events: the attributes of what happened in it, each with its `name`.
        error: what went wrong; None where nothing did.
    """

    trace: str
    id: str
    parent: str
    name: str
    start: int | None
    end: int | None
    attributes: Mapping[str, object]
    events: tuple[Mapping[str, object], ...] = field(default=())
    error: str | None = None


def holds_spans(glimpse: Glimpse) -> bool:
    """Whether a file looks like an export of spans."""
    if glimpse.rows and all(_has_resources(row) for row in glimpse.rows):
        return True
    return bool(_paths(glimpse)) or is_alone(glimpse)


def is_alone(glimpse: Glimpse) -> bool:
    """Whether a file is one span on its own, without its trace."""
    return glimpse.has(*_ALONE) and not _paths(glimpse)


def spans_of(source: Source, ledger: Ledger) -> Iterator[Span]:
    """The spans of a file, in its order; damage is told to the ledger."""
    glimpse = source.glimpse
    if len(glimpse.rows) > 1 and all(_has_resources(row) for row in glimpse.rows):
        for row in rows_of(source, ledger):
            yield from _in_row(row)
        return
    for path in _paths(glimpse):
        try:
            for item in source.items(path, several=True):
                if isinstance(item, dict):
                    yield _jaeger(item) if path in _JAEGER else _otlp(item)
        except Damaged as damage:
            ledger.lose(str(damage))
    if is_alone(glimpse):
        ledger.lose("it is one span of a trace of which the rest is not in it")
        yield _alone(source)


def _paths(glimpse: Glimpse) -> list[str]:
    """Where its spans stand: of every way there is, those that its start shows."""
    found = [path for path in _NESTED if glimpse.has(path)]
    found += [
        path
        for path in _JAEGER
        if glimpse.has(f"{path}.traceID", f"{path}.spanID", f"{path}.operationName")
    ]
    return found


def _has_resources(row: Mapping[str, object]) -> bool:
    return any(isinstance(row.get(key), list) for key in _RESOURCES)


def _in_row(row: Mapping[str, object]) -> Iterator[Span]:
    for resource in (each for key in _RESOURCES for each in listing(row.get(key))):
        for scope in (each for key in _SCOPES for each in listing(resource, key)):
            for span in listing(scope, "spans"):
                yield _otlp(span)


def _otlp(span: object) -> Span:
    attributes = _attributes(within(span, "attributes"))
    failed = within(span, "status", "code") in (2, "2", "STATUS_CODE_ERROR")
    return Span(
        trace=_id(span, "traceId", "trace_id"),
        id=_id(span, "spanId", "span_id"),
        parent=_id(span, "parentSpanId", "parent_span_id"),
        name=text(span, "name") or "",
        start=_nanoseconds(span, "startTimeUnixNano", "start_time_unix_nano"),
        end=_nanoseconds(span, "endTimeUnixNano", "end_time_unix_nano"),
        attributes=attributes,
        events=tuple(
            {"name": text(event, "name")} | _attributes(within(event, "attributes"))
            for event in listing(span, "events")
        ),
        error=_error(attributes, text(span, "status", "message"), failed),
    )


def _jaeger(span: object) -> Span:
    attributes = _attributes(within(span, "tags"))
    start = _nanoseconds(span, "startTime", times=1000)
    took = _nanoseconds(span, "duration", times=1000) or 0
    above = [
        each
        for each in listing(span, "references")
        if text(each, "refType") != "FOLLOWS_FROM"
        and text(each, "traceID") in (None, text(span, "traceID"))
    ]
    failed = attributes.get("error") is True or attributes.get("otel.status_code") == "ERROR"
    status = attributes.get("otel.status_description")
    return Span(
        trace=_id(span, "traceID"),
        id=_id(span, "spanID"),
        parent=_id(above[0], "spanID") if above else _id(span, "parentSpanID"),
        name=text(span, "operationName") or "",
        start=start,
        end=None if start is None else start + took,
        attributes=attributes,
        events=tuple(_log(each) for each in listing(span, "logs")),
        error=_error(attributes, status if isinstance(status, str) else None, failed),
    )


def _log(event: object) -> dict[str, object]:
    fields = _attributes(within(event, "fields"))
    return {"name": fields.get("event") or fields.get("name")} | fields


def _alone(source: Source) -> Span:
    parts, _ = source.parts("spanName", "attributes", "traceId", "spanId")
    values = {key: part.value("") for key, part in parts.items()}
    attributes = _attributes(values.get("attributes"))
    return Span(
        trace=_id(values, "traceId"),
        id=_id(values, "spanId"),
        parent="",
        name=text(values, "spanName") or "",
        start=None,
        end=None,
        attributes=attributes,
        error=_error(attributes, None, False),
    )


def _error(attributes: Mapping[str, object], message: str | None, failed: bool) -> str | None:
    kind = attributes.get("error.type")
    if not failed and not (isinstance(kind, str) and kind):
        return None
    return ": ".join(each for each in (kind, message) if isinstance(each, str) and each) or "error"


def _id(value: object, *keys: str) -> str:
    return next((found for key in keys if (found := text(value, key))), "")


def _nanoseconds(value: object, *keys: str, times: int = 1) -> int | None:
    """A count of time, which may be a text; none of it is no time."""
    for key in keys:
        found = within(value, key)
        if isinstance(found, str) and found.isascii() and found.isdigit() and len(found) < 25:
            found = int(found)
        if isinstance(found, int | float) and not isinstance(found, bool) and found > 0:
            return int(found) * times
    return None


def _attributes(given: object) -> dict[str, object]:
    """Attributes as a plain object: of OTLP, of Jaeger, or one that is plain already."""
    if isinstance(given, dict):
        return {key: _value(value, bare=True) for key, value in given.items()}
    found: dict[str, object] = {}
    for each in listing(given):
        key = text(each, "key")
        if key is not None:
            found[key] = _value(within(each, "value"))
    return found


def _value(value: object, depth: int = 0, *, bare: bool = False) -> object:
    """A plain value; of OTLP, one that is wrapped in its type."""
    if not isinstance(value, dict) or depth > _DEPTH:
        return value
    for kind in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
        if kind in value:
            return value[kind]
    if "intValue" in value:
        return _whole(value["intValue"])
    if "kvlistValue" in value:
        pairs = listing(value, "kvlistValue", "values")
        return {
            key: _value(within(each, "value"), depth + 1)
            for each in pairs
            if (key := text(each, "key")) is not None
        }
    items = value.get("arrayValue", value)
    if isinstance(items, dict) and isinstance(items.get("values"), list):
        return [_value(each, depth + 1) for each in listing(items, "values")]
    return value if bare else mapping(value) or None


def _whole(value: object) -> object:
    if isinstance(value, str) and len(value) < 25:
        try:
            return int(value)
        except ValueError:
            return value
    return value
