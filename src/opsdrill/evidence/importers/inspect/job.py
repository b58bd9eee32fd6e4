"""The job that a sample of an Inspect log is: who it was, what was asked, how it ended."""

from __future__ import annotations

from collections.abc import Mapping

from opsdrill.evidence.importers.inspect.parts import Header, key_of, name_of
from opsdrill.evidence.transcripts.imported import Imported, Placing
from opsdrill.evidence.transcripts.rows import listing, mapping, spoken, text, within
from opsdrill.evidence.transcripts.transcript import Transcript
from opsdrill.model.job import Stop

FORMAT = "inspect"
TITLE = "Inspect AI"

_LIMITED = "the harness's limit was reached: {}"
_UNFINISHED = {"max_tokens", "model_length"}


def summarised(
    row: object, header: Header, placing: Placing, seen: set[tuple[str, int]]
) -> Imported | None:
    """The job of which there is only a row of a summary; None where it was seen before."""
    key = key_of(row)
    if not key[0] or key in seen:
        return None
    seen.add(key)
    transcript = begun(mapping(row), header, placing)
    transcript.ledger.lose("only a summary of the sample is in the log")
    end(transcript, mapping(row))
    return transcript.imported(name_of(row))


def unread(name: str, why: str, header: Header, placing: Placing) -> Imported:
    """The job of which nothing can be read."""
    transcript = begun({"uuid": name}, header, placing)
    transcript.ledger.lose(why)
    return transcript.imported(name)


def begun(small: Mapping[str, object], header: Header, placing: Placing) -> Transcript:
    """The transcript of a sample, as far as the sample's short values tell it.

    Args:
        small: those values.
        header: what the log says of all samples.
        placing: where commands ran.
    """
    small = dict(small)
    transcript = Transcript(FORMAT, TITLE, placing)
    transcript.job = text(small, "uuid") or name_of(small) or None
    transcript.written_by("inspect_ai", header.version, header.model)
    main = transcript.main
    main.started_at = transcript.clock.text(small.get("started_at"))
    main.ended_at = transcript.clock.text(small.get("completed_at"))
    given = small.get("input")
    asked = [given] if isinstance(given, str) else listing(given)
    for each in asked:
        if isinstance(each, str):
            transcript.ask(each)
        elif text(each, "role") == "user":
            transcript.ask(spoken(within(each, "content")))
    return transcript


def end(transcript: Transcript, small: Mapping[str, object], limit: str | None = None) -> None:
    """Tell how a sample ended; one that is in the log without an error or a limit came to its end.

    Args:
        transcript: of the sample.
        small: the sample's short values.
        limit: the limit that an event told of.
    """
    small = dict(small)
    error = text(small, "error", "message") or text(small, "error")
    limit = text(small, "limit", "type") or text(small, "limit") or limit
    reason = text(small, "output", "choices", 0, "stop_reason") if small.get("output") else None
    if error and error.startswith(("CancelledError", "KeyboardInterrupt")):
        transcript.end("cancelled", "cancelled", Stop(reason=error, fault="operator"))
    elif error or small.get("error"):
        transcript.end("failed", "error", Stop(reason=error or "error", fault="infrastructure"))
    elif limit == "operator":
        transcript.end("cancelled", limit, Stop(reason="an operator stopped it", fault="operator"))
    elif limit:
        stop = Stop(reason=_LIMITED.format(limit), fault="agent")
        transcript.end("timed_out", f"{limit} limit", stop)
    elif reason in _UNFINISHED:
        stop = Stop(reason=_LIMITED.format(reason), fault="agent")
        transcript.end("timed_out", reason, stop)
    elif reason == "content_filter":
        stop = Stop(reason="the model's provider filtered its answer", fault="infrastructure")
        transcript.end("failed", reason, stop)
    else:
        transcript.end("completed", reason)
