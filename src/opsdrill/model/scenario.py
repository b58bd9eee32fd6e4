"""A scenario: hosts, how they are broken, the ticket, and the rules that grade the work."""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from opsdrill.model.fields import HostName, Items, NotBlank, Seconds, ShellText, Written
from opsdrill.model.rules import HostState, Rule, Turns

KEY = r"^[a-z0-9][a-z0-9-]*$"
USER = r"^[a-z_][a-z0-9_-]{0,31}\$?$"

Key = Annotated[str, StringConstraints(pattern=KEY, max_length=100)]
UserName = Annotated[str, StringConstraints(pattern=USER)]
ExitCode = Annotated[int, Field(ge=0, le=255)]


class HostSpec(Written):
    """A host by name; `image` is a name that the lab knows."""

    name: HostName
    image: NotBlank | None = None


def _host(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


def _inside(value: str) -> str:
    if value.startswith("/") or ".." in value.split("/") or "\\" in value or "\0" in value:
        raise PydanticCustomError("outside", "must be a path inside the scenario's folder")
    return value


def _absolute(value: str) -> str:
    if not value.startswith("/") or "\0" in value or posixpath.normpath(value) == "/":
        raise PydanticCustomError("not_absolute", "must be an absolute path of a file")
    return value


class SupportFile(Written):
    """A file of the scenario's folder that is put on hosts before setup."""

    source: Annotated[NotBlank, AfterValidator(_inside), Field(alias="from")]
    to: Annotated[NotBlank, AfterValidator(_absolute)]
    on: HostName | None = None
    """A host of the scenario; all hosts when left out."""
    mode: Annotated[str, StringConstraints(pattern=r"^0?[0-7]{3,4}$")] = "0644"
    owner: Annotated[
        str, StringConstraints(pattern=r"^[a-z_][a-z0-9_-]*(:[a-z_][a-z0-9_-]*)?$")
    ] = "root"


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
    body: NotBlank


class Limits(Written):
    """Time limits in seconds."""

    job_seconds: Seconds = 1800.0
    command_seconds: Seconds = 60.0
    setup_seconds: Seconds = 300.0


def _requires(value: object) -> object:
    if isinstance(value, list):
        commands = [item for item in value if item not in ("users", "systemd")]
        return {
            "commands": commands,
            "users": "users" in value,
            "systemd": "systemd" in value,
        }
    known = {"commands", "by_host", "users", "systemd"}
    if isinstance(value, dict) and not (set(value) & known):
        return {"by_host": value}
    return value


Program = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.+][A-Za-z0-9_.+-]*$")]


class Requires(Written):
    """What the hosts must have before the agent starts.

    Written as a list (`[curl, python3, users]`), by host (`{web-01: [curl]}`), or in full.
    """

    commands: Items[Program] = ()
    by_host: dict[HostName, Items[Program]] = {}
    users: bool = False
    """Users other than root."""
    systemd: bool = False


class Scenario(Written):
    """One drill. What the agent sees of it: the ticket, the hosts, the operational rules."""

    key: Key
    title: NotBlank
    description: str = ""
    tags: Items[NotBlank] = ()
    ticket_title: NotBlank
    ticket_body: str = ""
    hosts: Annotated[Items[Annotated[HostSpec, BeforeValidator(_host)]], Field(max_length=64)] = ()
    operational_rules: Items[NotBlank] = ()
    files: Items[SupportFile] = ()
    requires: Annotated[Requires, BeforeValidator(_requires)] = Requires()
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

    @model_validator(mode="after")
    def _hosts_agree(self) -> Scenario:
        wrong = [*self._twice(), *self._strangers()]
        if wrong:
            raise ValidationError.from_exception_data(type(self).__name__, wrong)
        return self

    def _twice(self) -> list[InitErrorDetails]:
        names = self.host_names
        return [
            _fault(("hosts", index), name, "names the host {name} a second time", name=repr(name))
            for index, name in enumerate(names)
            if name in names[:index]
        ]

    def _strangers(self) -> list[InitErrorDetails]:
        """Every place that needs a host which the scenario does not have."""
        wrong = []
        for place, name in self._needed():
            if not self.hosts:
                wrong.append(_fault(place, name, "needs a host, but the scenario has no `hosts`"))
            elif name is not None and name not in self.host_names:
                wrong.append(
                    _fault(
                        place,
                        name,
                        "{name} is no host of the scenario; its hosts: {known}",
                        name=repr(name),
                        known=", ".join(self.host_names),
                    )
                )
        return wrong

    def _needed(self) -> list[tuple[tuple[str | int, ...], str | None]]:
        found: list[tuple[tuple[str | int, ...], str | None]] = []
        for part in ("files", "setup", "ready", "reference", "restore"):
            for index, step in enumerate(getattr(self, part)):
                found.append(((part, index, "on"), step.on))
        for name in self.requires.by_host:
            found.append((("requires", name), name))
        if self.requires.commands or self.requires.users or self.requires.systemd:
            found.append((("requires",), None))
        for index, rule in enumerate(self.validation):
            if isinstance(rule, HostState):
                found.append((("validation", index, "on"), rule.on))
            elif isinstance(rule, Turns):
                for turn, item in enumerate(rule.turns):
                    for place, name in enumerate(item.hosts or ()):
                        where = ("validation", index, "turns", turn, "hosts", place)
                        found.append((where, name))
        return found

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


def _fault(
    place: tuple[str | int, ...], value: object, message: str, **context: str
) -> InitErrorDetails:
    return InitErrorDetails(
        type=PydanticCustomError("host", message, context or None),
        loc=place,
        input=value,
    )
