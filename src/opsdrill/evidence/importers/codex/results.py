"""What Codex's tools return: text with a head, JSON in a text, or parts."""

from __future__ import annotations

import re
from dataclasses import dataclass

from opsdrill.evidence.transcripts.rows import row, spoken, text, whole, within
from opsdrill.model.job import Outcome, ToolKind

_EXITED = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,9})$", re.MULTILINE)
_RUNNING = re.compile(r"^Process running with session ID (\d+)$", re.MULTILINE)
_REFUSED = re.compile(
    r"(?:exec )?command rejected by user|patch rejected|rejected by user|approval denied"
    r"|exec_command failed for [\s\S]{1,100000}?Rejected\("
)
_FAILED = re.compile(
    r"failed to parse|unsupported |exec_command failed|write_stdin failed|execution error"
    r"|apply_patch verification failed|failed in sandbox|tool call error"
)


@dataclass(frozen=True, slots=True)
class Result:
    """A call's return: output, status of a command, or the session in which it goes on."""

    outcome: Outcome
    output: str
    status: int | None = None
    session: str | None = None


def result_of(given: object, kind: ToolKind | None) -> Result:
    """What a call returned: text with or without a head, JSON in a text, or parts."""
    said = spoken(within(given, "content") if isinstance(given, dict) else given)
    inner = row(said.encode(errors="replace")) if said.startswith('{"') else None
    status = whole(inner, "metadata", "exit_code")
    session = None
    if status is not None:
        said = text(inner, "output") or ""
        body = said
    else:
        head, found, body = said.partition("\nOutput:")
        exited = _EXITED.search(head) if found else None
        running = _RUNNING.search(head) if found else None
        status = int(exited[1]) if exited else None
        session = running[1] if running else None
        body = body.removeprefix("\n") if found else said
    if status is None and session is None and _REFUSED.match(said):
        return Result("refused", said)
    if status == 124 and body.startswith("command timed out after"):
        return Result("timed_out", said, status)
    failed = status is None and session is None and _FAILED.match(said) is not None
    # A shell's status is the command's; that of a patch says whether it was applied.
    patch_failed = kind in ("write_file", "update_file", None) and bool(status)
    if failed or patch_failed or within(given, "success") is False:
        return Result("failed", said, status)
    return Result("ran", said, status, session)
