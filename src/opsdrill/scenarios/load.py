"""Files -> models: a scenario with its folder, a job record, host answers.

Everything that is wrong with a file is reported at once, each with path, line and column. A file
that is not there, or cannot be opened, is a UsageError.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from opsdrill.errors import InvalidInput, InvalidPattern, Problem, UsageError
from opsdrill.model.host import HostAnswers
from opsdrill.model.job import JobRecord
from opsdrill.model.problem import Refusal, dotted, refusals
from opsdrill.model.scenario import Scenario, is_inside
from opsdrill.patterns import compile_pattern
from opsdrill.scenarios.document import Document, Location, decoded, unreadable
from opsdrill.scenarios.files import Support, support_files
from opsdrill.scenarios.json import parse_json
from opsdrill.scenarios.yaml import parse_yaml

SCENARIO_FILES = ("scenario.yaml", "scenario.yml", "scenario.json")
WRITTEN_LIMIT = 5 * 1024 * 1024
"""Bytes of a file that people write."""
RECORD_LIMIT = 512 * 1024 * 1024
"""Bytes of a file that programs write."""
PROBLEMS_SHOWN = 100
MOST_PATTERNS, MOST_IN_PATTERNS = 2000, 100_000
"""Patterns of a scenario, and their characters altogether: so many are looked at in seconds."""

REFUSED = "OD002"
"""The code of a value that its model refuses."""
BAD_PATTERN = "OD003"
"""The code of a regular expression outside the dialect."""
BAD_FILE = "OD004"
"""The code of a support file that cannot be used."""

M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class LoadedScenario:
    """A scenario as it stands in its folder, in a store, or in a text.

    Args:
        scenario: what its file says.
        path: that file; None: there is none.
        folder: the folder that support files and a `script:` are relative to.
        document: the data as written, with the place of every part.
        files: the support files by their path in the folder.
    """

    scenario: Scenario
    path: Path | None
    folder: Path | None
    document: Document
    files: Mapping[str, Support]

    @property
    def version(self) -> str:
        """The digest of the scenario and its support files, SHA-256 in hex."""
        return self.scenario.version({name: file.digest for name, file in self.files.items()})


def load_scenario(path: str | os.PathLike[str]) -> LoadedScenario:
    """The scenario in a folder or a file, with its support files.

    Args:
        path: a folder that holds one of `SCENARIO_FILES`, or such a file by any name.

    Raises:
        UsageError: there is no such file, or it cannot be opened.
        InvalidInput: the file breaks the format; all problems with path, line and column.
    """
    file = scenario_file(Path(path))
    return load_document(file, read_document(file))


def load_document(file: Path, document: Document) -> LoadedScenario:
    """The scenario in a document that was read from `file`. Raises InvalidInput."""
    files, wrong = support_files(file.parent, _sources(document.data))
    bad = [found_at(document, *found, code=BAD_FILE) for found in wrong]
    scenario = parse_scenario(document.data, document=document, beside=bad)
    return LoadedScenario(scenario, file, file.parent, document, files)


def load_text(
    text: str, files: Mapping[str, Support] | None = None, *, json: bool | None = None
) -> LoadedScenario:
    """The scenario in a text.

    Args:
        text: JSON or YAML.
        files: the support files that it may name; None: nobody looks for them.
        json: which of the two it is; None: its start decides.

    Raises:
        InvalidInput: it breaks the format; all problems with path, line and column.
    """
    if len(text) > WRITTEN_LIMIT:
        unreadable(f"is larger than {WRITTEN_LIMIT // 1024 // 1024} MiB", None, None)
    document = parse_text(text, None, json=begins_as_json(text) if json is None else json)
    return load_data(document, files)


def load_data(document: Document, files: Mapping[str, Support] | None = None) -> LoadedScenario:
    """As `load_text`, of a document that was read already."""
    missing = [
        (("files", index, "from"), f"{source!r} is not among the files of the scenario")
        for index, source in _sources(document.data)
        if files is not None and source not in files
    ]
    bad = [found_at(document, *found, code=BAD_FILE) for found in missing]
    scenario = parse_scenario(document.data, document=document, beside=bad)
    return LoadedScenario(scenario, None, None, document, files or {})


def _sources(data: object) -> Iterator[tuple[int, str]]:
    """The support files that a scenario names, with their places; also where it is wrong."""
    entries = data.get("files") if isinstance(data, dict) else None
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        source = entry.get("from") if isinstance(entry, dict) else None
        if isinstance(source, str) and source.strip() and is_inside(source):
            yield index, source


def scenario_file(path: Path) -> Path:
    """The file that holds the scenario at `path`, a folder or the file itself.

    Raises:
        UsageError: there is none, or there is more than one.
    """
    if not path.is_dir():
        if not path.exists():
            raise UsageError(f"there is no file or folder {path}")
        return path
    found = [path / name for name in SCENARIO_FILES if (path / name).is_file()]
    if not found:
        raise UsageError(
            f"the folder {path} holds no scenario",
            hint=f"a scenario folder has a {SCENARIO_FILES[0]}; `opsdrill init DIR` makes one",
        )
    if len(found) > 1:
        names = " and ".join(file.name for file in found)
        raise UsageError(f"the folder {path} holds {names}", hint="leave one of them there")
    return found[0]


def parse_scenario(
    data: object, *, document: Document | None = None, beside: Sequence[Problem] = ()
) -> Scenario:
    """The scenario that plain data says.

    Args:
        data: what JSON or YAML gave.
        document: where the data came from, for the places of problems.
        beside: what is wrong with it that only its folder shows.

    Raises:
        InvalidInput: with every problem found.
    """
    document = document or Document(data)
    bad = [found_at(document, *wrong, code=BAD_PATTERN) for wrong in _bad_patterns(data)]
    return parse_model(data, Scenario, document=document, noun="scenario", beside=[*bad, *beside])


def load_model(
    path: str | os.PathLike[str], model: type[M], *, noun: str | None = None, written: bool = True
) -> M:
    """Any model of ours from a JSON or YAML file.

    Args:
        path: the file; `.json` is JSON, `.yaml` and `.yml` are YAML, else its start decides.
        model: what it must be.
        noun: what to call it in an error, e.g. `"script"`.
        written: by people (up to `WRITTEN_LIMIT` bytes) or by programs (`RECORD_LIMIT`).

    Raises:
        UsageError: there is no such file, or it cannot be opened.
        InvalidInput: it breaks the format; all problems with path, line and column.
    """
    document = read_document(Path(path), written=written)
    return parse_model(document.data, model, document=document, noun=noun or "file")


def load_record(path: str | os.PathLike[str]) -> JobRecord:
    """The job record in a JSON file. Raises as `load_model` does."""
    return load_model(path, JobRecord, noun="job record", written=False)


def load_answers(path: str | os.PathLike[str]) -> HostAnswers:
    """What hosts answered, from a JSON file. Raises as `load_model` does."""
    return load_model(path, HostAnswers, noun="host answers file", written=False)


def parse_model(
    data: object,
    model: type[M],
    *,
    document: Document,
    noun: str,
    beside: Sequence[Problem] = (),
) -> M:
    """Plain data as a model.

    Args:
        data: what JSON or YAML gave.
        model: what it must be.
        document: where the data came from, for the places of problems.
        noun: what to call it in an error.
        beside: what is wrong with it that the model does not know of.

    Raises:
        InvalidInput: with every problem found, in the order of the file.
    """
    found: list[Problem] = []
    try:
        made = model.model_validate(data)
        if not beside:
            return made
    except ValidationError as error:
        found = [_placed(document, refusal) for refusal in refusals(error, model, data)]
    raise _refused(noun, [*found, *beside])


def _placed(document: Document, refusal: Refusal) -> Problem:
    find = document.key_place if refusal.on_key else document.place
    problem = replace(refusal.problem, code=REFUSED)
    return document.at(problem, find(refusal.location))


def read_document(path: Path, *, written: bool = True) -> Document:
    """The data in a JSON or YAML file.

    Raises:
        UsageError: there is no such file, or it cannot be opened.
        InvalidInput: it cannot be read as JSON or YAML; names line and column.
    """
    limit, name = (WRITTEN_LIMIT if written else RECORD_LIMIT), str(path)
    try:
        with path.open("rb") as stream:
            content = stream.read(limit + 1)
    except OSError as error:
        raise UsageError(f"cannot open {path}: {error.strerror or error}") from None
    if len(content) > limit:
        unreadable(f"is larger than {limit // 1024 // 1024} MiB", name, None)
    text = decoded(content, name)
    return parse_text(text, name, json=is_json(path, text), written=written)


def parse_text(text: str, name: str | None, *, json: bool, written: bool = True) -> Document:
    """The data in a text of JSON or YAML. Raises InvalidInput as `read_document` does."""
    if json:
        return parse_json(text, name, written=written)
    return parse_yaml(text, name)


def is_json(path: Path, text: str) -> bool:
    """Whether a file is read as JSON: by its name, else by how its text begins."""
    suffix = path.suffix.lower()
    if suffix in (".yaml", ".yml"):
        return False
    return suffix == ".json" or begins_as_json(text)


def begins_as_json(text: str) -> bool:
    """Whether a text without a name is read as JSON."""
    return text.lstrip()[:1] in ("{", "[")


def found_at(document: Document, location: Location, message: str, *, code: str) -> Problem:
    """A problem of a document with its place in the file."""
    problem = Problem(dotted(location), message, code=code)
    return document.at(problem, document.place(location))


def _refused(noun: str, problems: Iterable[Problem]) -> InvalidInput:
    ordered = sorted(problems, key=lambda problem: (problem.line or 0, problem.column or 0))
    left = ordered[PROBLEMS_SHOWN:]
    if left:
        last = f"is the first of {len(left)} more problems, which are not shown"
        ordered = [*ordered[:PROBLEMS_SHOWN], replace(left[0], message=last, suggestion=None)]
    return InvalidInput(f"the {noun} is refused", ordered)


def _bad_patterns(data: object) -> Iterator[tuple[Location, str]]:
    """The patterns that do not compile, in plain data that may be wrong in other ways too."""
    count = size = 0
    for location, text in _patterns(data):
        count, size = count + 1, size + len(text)
        if count > MOST_PATTERNS or size > MOST_IN_PATTERNS:
            yield (
                location,
                f"is too much: a scenario has at most {MOST_PATTERNS} patterns with"
                f" {MOST_IN_PATTERNS} characters altogether",
            )
            return
        try:
            compile_pattern(text)
        except InvalidPattern as error:
            yield location, f"is no valid pattern: {error.message}"


def _patterns(data: object) -> Iterator[tuple[Location, str]]:
    """Every pattern that is not blank, which the model refuses."""
    for part, key in (("validation", "pattern"), ("replies", "when")):
        entries = data.get(part) if isinstance(data, dict) else None
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            text = entry.get(key) if isinstance(entry, dict) else None
            if isinstance(text, str) and text.strip():
                yield (part, index, key), text
