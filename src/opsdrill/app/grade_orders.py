"""Grade what a caller sent, without keeping anything of it."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opsdrill.app.grade import Graded, graded
from opsdrill.app.patience import patient
from opsdrill.app.texts import given_model
from opsdrill.app.wiring import Place
from opsdrill.errors import InvalidInput, Problem, UsageError
from opsdrill.model.host import HostAnswer, HostAnswers
from opsdrill.scenarios.load import LoadedScenario

SECONDS = 120.0
"""How long a caller waits."""
JOBS_LIMIT = 200
"""Jobs of one file that are graded at once."""


@dataclass(frozen=True, slots=True)
class GradeOrder:
    """What is to be graded.

    Args:
        loaded: the scenario with the rules.
        record: a job record or another tool's transcript.
        answers: what the hosts answered.
        host: the host of whatever names none.
        split_ssh: take `ssh HOST COMMAND` for a command of that host.
    """

    loaded: LoadedScenario
    record: Path
    answers: Sequence[HostAnswer] = ()
    host: str | None = None
    split_ssh: bool = False


def worked_off(place: Place, order: GradeOrder) -> list[Graded]:
    """The jobs of the record with their results.

    Raises:
        UsageError: there are too many jobs, it takes too long, or nobody says on which host the
            agent worked.
        InvalidInput: the record cannot be read.
    """
    found: list[Graded] = []
    with patient(SECONDS, "grading") as searcher:
        for each in graded(
            place,
            order.loaded,
            order.record,
            order.answers,
            searcher=searcher,
            host=order.host,
            split_ssh=order.split_ssh,
        ):
            if len(found) >= JOBS_LIMIT:
                raise UsageError(
                    f"more than {JOBS_LIMIT} jobs are in it", hint="import it, and regrade the runs"
                )
            found.append(each)
    return found


def written_record(
    path: Path, *, record: dict[str, Any] | None, text: str | None, packed: str | None
) -> str:
    """Write the record of a request, of which there must be one, into a file; gives its key.

    Args:
        path: of the file.
        record: a JSON document.
        text: a text.
        packed: any file, in base64.

    Raises:
        InvalidInput: there is none or more than one, or it is no base64.
    """
    given = {"record": record, "text": text, "base64": packed}
    names = [name for name, value in given.items() if value is not None]
    if len(names) != 1:
        why = "must hold one of `record`, `text` and `base64`"
        raise InvalidInput("the request is refused", [Problem("", why)])
    if record is not None:
        content = json.dumps(record).encode()
    elif text is not None:
        content = text.encode("utf-8", "replace")
    else:
        try:
            content = base64.b64decode(packed or "", validate=True)
        except (binascii.Error, ValueError):
            wrong = Problem("base64", "is no base64")
            raise InvalidInput("the request is refused", [wrong]) from None
    path.write_bytes(content)
    return names[0]


def given_answers(answers: Sequence[dict[str, Any]]) -> tuple[HostAnswer, ...]:
    """Host answers as they are in the file of `--host-answers`. Raises InvalidInput."""
    return given_model({"answers": list(answers)}, HostAnswers).answers
