"""A scenario: hosts, how they are broken, the ticket, and the rules that grade the work."""

from __future__ import annotations

import hashlib
import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    ModelWrapValidatorHandler,
    StringConstraints,
    model_validator,
)
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError, ValidationError
from pydantic_core.core_schema import ErrorType

from opsdrill.model.fields import (
    DNS_LABEL,
    KEY,
    MODE,
    OWNER,
    PROGRAM,
    USER,
    HostName,
    Hosts,
    Items,
    NotBlank,
    Seconds,
    ShellText,
    ShortForm,
    Written,
    refuse,
    refused,
)
from opsdrill.model.host_names import host_mistakes
from opsdrill.model.rules import Rule

Key = Annotated[str, StringConstraints(pattern=KEY, max_length=100)]
UserName = Annotated[str, StringConstraints(pattern=USER)]
ExitCode = Annotated[int, Field(ge=0, le=255)]


class HostSpec(Written):
    """A host by name; `image` is a name that the lab knows."""

    name: HostName
    image: NotBlank | None = None


def _host(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


Host = Annotated[
    HostSpec, BeforeValidator(_host), ShortForm(({"type": "string", "pattern": DNS_LABEL},))
]


def is_inside(source: str) -> bool:
    """Whether a support file's `from` stays in the scenario's folder, as far as its name tells."""
    parts = source.split("/")
    return not (source.startswith("/") or ".." in parts or "\\" in source or "\0" in source)


def _inside(value: str) -> str:
    if not is_inside(value):
        raise PydanticCustomError("outside", "must be a path inside the scenario's folder")
    return value


def _absolute(value: str) -> str:
    folder = value.endswith("/") or not posixpath.normpath(value).strip("/")
    if not value.startswith("/") or "\0" in value or folder:
        raise PydanticCustomError("not_absolute", "must be an absolute path of a file")
    return value


class SupportFile(Written):
    """A file of the scenario's folder that is put on hosts before setup."""

    source: Annotated[NotBlank, AfterValidator(_inside), Field(alias="from")]
    to: Annotated[NotBlank, AfterValidator(_absolute)]
    on: HostName | None = None
    """A host of the scenario; all hosts when left out."""
    mode: Annotated[str, StringConstraints(pattern=MODE)] = "0644"
    owner: Annotated[str, StringConstraints(pattern=OWNER)] = "root"


class Step(Written):
    """A setup, restore or reference step; it must end with `exit_code`."""

    run: ShellText
    on: HostName | None = None
    user: UserName | None = None
    timeout: Seconds | None = None
    exit_code: ExitCode = 0


class ReadyCheck(Written):
    """What must hold after setup: the proof that the fault is really there."""

    run: ShellText
    on: HostName | None = None
    user: UserName | None = None
    exit_code: ExitCode | None = None
    """The expected exit status; 0 unless `fails` is given."""
    fails: bool = False
    """Any exit status but 0 is right."""
    within: Seconds = 10.0
    """Seconds during which it is asked again."""

    @model_validator(mode="after")
    def _one_expectation(self) -> ReadyCheck:
        if self.fails and self.exit_code is not None:
            raise PydanticCustomError("two_expectations", "has both `exit_code` and `fails`")
        return self


class Reply(Written):
    """What the requester answers on the ticket when a message of the agent system matches."""

    when: NotBlank
    after: Seconds | None = None
    body: str


class Limits(Written):
    """Time limits in seconds."""

    job_seconds: Seconds = 1800.0
    command_seconds: Seconds = 60.0
    setup_seconds: Seconds = 300.0


Program = Annotated[str, StringConstraints(pattern=PROGRAM)]


class Requires(Written):
    """What the hosts must have before the agent starts.

    Written as a list (`[curl, python3, users]`), by host (`{web-01: [curl], users: true}`), or
    in full.
    """

    commands: Items[Program] = ()
    by_host: dict[HostName, Items[Program]] = {}
    users: bool = False
    """Users other than root."""
    systemd: bool = False


_ABILITIES = ("users", "systemd")
_PROGRAM = re.compile(PROGRAM.removesuffix("$") + r"\Z")
_LABEL = re.compile(DNS_LABEL.removesuffix("$") + r"\Z")


def _requires(value: object) -> object:
    """The short forms in full; they are checked here, where their places are still known."""
    if isinstance(value, list):
        return _from_list(value)
    if isinstance(value, dict):
        by_host = {key: item for key, item in value.items() if key not in Requires.model_fields}
        if by_host and "by_host" not in value:
            wrong = [error for host, items in by_host.items() for error in _wrong_host(host, items)]
            if wrong:
                refuse("Requires", wrong)
            rest = {key: item for key, item in value.items() if key not in by_host}
            return {**rest, "by_host": by_host}
    return value


def _from_list(value: list[Any]) -> dict[str, object]:
    wrong = [error for place, item in enumerate(value) for error in _wrong_program((place,), item)]
    if wrong:
        refuse("Requires", wrong)
    commands = [item for item in value if item not in _ABILITIES]
    return {"commands": commands, **{name: name in value for name in _ABILITIES}}


def _wrong_host(host: object, items: object) -> Iterator[InitErrorDetails]:
    if not isinstance(host, str) or _LABEL.match(host) is None:
        yield refused((str(host),), host, "is neither a host nor `commands`, `users`, `systemd`")
    elif not isinstance(items, list):
        yield InitErrorDetails(type="list_type", loc=(host,), input=items)
    else:
        for place, item in enumerate(items):
            if item in _ABILITIES:
                message = "is asked of all hosts; write `{name}: true` beside the hosts"
                yield refused((host, place), item, message, name=str(item))
            else:
                yield from _wrong_program((host, place), item)


def _wrong_program(place: tuple[str | int, ...], item: object) -> Iterator[InitErrorDetails]:
    if not isinstance(item, str):
        yield InitErrorDetails(type="string_type", loc=place, input=item)
    elif _PROGRAM.match(item) is None:
        context = {"pattern": PROGRAM}
        yield InitErrorDetails(type="string_pattern_mismatch", loc=place, input=item, ctx=context)


_PROGRAMS: dict[str, JsonValue] = {
    "type": "array",
    "items": {"type": "string", "pattern": PROGRAM},
}
_YES_NO: dict[str, JsonValue] = {"anyOf": [{"type": "boolean"}, {"type": "null"}]}
Required = Annotated[
    Requires,
    BeforeValidator(_requires),
    ShortForm(
        (
            _PROGRAMS,
            {
                "type": "object",
                "properties": {"users": _YES_NO, "systemd": _YES_NO, "commands": _PROGRAMS},
                "patternProperties": {
                    r"^(?!(commands|users|systemd)$)" + DNS_LABEL.removeprefix("^"): _PROGRAMS
                },
                "additionalProperties": False,
            },
        )
    ),
]


class Scenario(Written):
    """One drill. What the agent sees of it: the ticket, the hosts, the operational rules."""

    key: Key
    title: NotBlank
    description: str = ""
    tags: Items[NotBlank] = ()
    ticket_title: str
    ticket_body: str = ""
    hosts: Hosts[Host] = ()
    operational_rules: Items[str] = ()
    files: Items[SupportFile] = ()
    requires: Required = Requires()
    setup: Items[Step] = ()
    ready: Items[ReadyCheck] = ()
    replies: Items[Reply] = ()
    reference: Items[Step] = ()
    restore: Items[Step] = ()
    limits: Limits = Limits()
    validation: Items[Rule] = ()

    @property
    def host_names(self) -> tuple[str, ...]:
        return tuple(host.name for host in self.hosts)

    def host_of(self, on: str | None) -> str:
        """The host that `on` means: the first one when it was left out."""
        return on if on is not None else self.hosts[0].name

    @model_validator(mode="wrap")
    @classmethod
    def _hosts_agree(cls, value: Any, handler: ModelWrapValidatorHandler[Scenario]) -> Scenario:
        """Refuses hosts that do not fit together; also beside other mistakes, all at once."""
        try:
            scenario = handler(value)
        except ValidationError as error:
            others = [_again(item) for item in error.errors(include_url=False)]
            if any(item["loc"][:1] == ("hosts",) for item in others):
                raise
            wrong = list(host_mistakes(value))
            if not wrong:
                raise
            refuse(cls.__name__, [*others, *wrong])
        if wrong := list(host_mistakes(scenario)):
            refuse(cls.__name__, wrong)
        return scenario

    def version(self, files: Mapping[str, str] | None = None) -> str:
        """The digest of this content and of its support files.

        Args:
            files: the SHA-256 in hex of each support file, by its path in the folder.

        Returns:
            SHA-256 in hex over the scenario as JSON with sorted keys, then the files' digests.
        """
        content: dict[str, Any] = {
            "scenario": self.model_dump(mode="json", by_alias=True),
            "files": dict(sorted((files or {}).items())),
        }
        text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


def _again(item: ErrorDetails) -> InitErrorDetails:
    """An error as pydantic told it, to be raised once more."""
    if item["type"] in _STANDARD:
        return InitErrorDetails(
            type=item["type"], loc=item["loc"], input=item["input"], ctx=item.get("ctx", {})
        )
    told = PydanticCustomError(item["type"], item["msg"])
    return InitErrorDetails(type=told, loc=item["loc"], input=item["input"])


_STANDARD: frozenset[str] = frozenset(get_args(ErrorType))
