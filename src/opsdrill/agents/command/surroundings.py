"""What a command agent is given: its words, its environment, its files, and where they are."""

from __future__ import annotations

import os
import pwd
import random
import re
import secrets
import shlex
import shutil
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import opsdrill
from opsdrill.agents import ticket_program
from opsdrill.agents.command.presets import MARK, PRESETS, TICKET, Preset
from opsdrill.agents.isolation.mounts import SYSTEM
from opsdrill.agents.isolation.room import Room
from opsdrill.agents.isolation.shown import find_program, needed
from opsdrill.errors import AgentUnavailable, UsageError
from opsdrill.model.lab import ROOT
from opsdrill.model.ticket import Ticket

ALLOWED = ("LANG", "LANGUAGE", "TZ", "TERM", "COLORTERM")
"""Variables of this process that every agent gets, beside `LC_*` and `PATH`."""
_ARGUMENT_LIMIT = 128 * 1024 - 1
"""Bytes of one argument of a program; see MAX_ARG_STRLEN in the kernel's binfmts.h."""
_OWN = "/run/opsdrill"
_WORK = "/work"
_HOME = "/home/agent"
_IDS = (1_500_000_000, 1_900_000_000)
"""Numbers that no user of a machine has, for an agent of root."""
_WRAPPED = ("ssh", "scp", "sftp")


@dataclass(frozen=True, slots=True)
class Program:
    """What is started.

    Args:
        argv: the program by name, and its arguments.
        preset: what is known of it.
    """

    argv: tuple[str, ...]
    preset: Preset | None = None


def read_program(argument: str | None) -> Program:
    """The program that `command:ARGUMENT` means.

    Raises:
        UsageError: nothing, something that a shell could not split, or no preset of that name.
    """
    try:
        words = shlex.split(argument or "")
    except ValueError as error:
        raise UsageError(
            f"the command {argument!r} cannot be split: {str(error).lower()}",
            hint="quote it as for a shell",
        ) from None
    if not words or not words[0]:
        raise UsageError(
            "the agent `command` needs a program", hint="write it as command:'PROGRAM ARGUMENT...'"
        )
    if any("\0" in word for word in words):
        raise UsageError("an argument of a program cannot have a NUL character")
    if not words[0].startswith(MARK):
        return Program(tuple(words))
    name = words[0][len(MARK) :]
    preset = PRESETS.get(name)
    if preset is None:
        raise UsageError(f"there is no preset {name!r}", hint=f"known: {', '.join(PRESETS)}")
    start = list(preset.argv)
    end = [start.pop()] if start[-1] == TICKET else []
    if end and start[-1].startswith("--"):
        end.insert(0, start.pop())
    return Program((*start, *words[1:], *end), preset)


def path_of(program: Program, folder: Path) -> str:
    """Where the program is.

    Raises:
        AgentUnavailable: there is none, or an argument names a file that it will not find.
    """
    name = program.argv[0]
    found = find_program(name, os.environ.get("PATH", os.defpath), folder)
    if found is None:
        title = f" ({program.preset.title})" if program.preset else ""
        where = f"at {folder / name}" if "/" in name else "on PATH"
        raise AgentUnavailable(
            f"the program {name}{title} is not there: nothing can be started {where}",
            hint="install it, or give its whole path",
        )
    for word in program.argv[1:]:
        if re.search(r"[./]", word) and not word.startswith("/") and _is_file(folder, word):
            raise AgentUnavailable(
                f"the argument {word} of {name} is a file here, and the program would not find it:"
                " it begins in an empty folder",
                hint=f"give its whole path: {os.path.normpath(folder / word)}",
            )
    return found


def _is_file(folder: Path, word: str) -> bool:
    try:
        return (folder / word).is_file()
    except OSError:
        return False


def keys_of(program: Program) -> tuple[str, ...]:
    """The variables that a preset logs in to its model with."""
    return program.preset.keys if program.preset else ()


def passed(program: Program, names: Collection[str]) -> dict[str, str]:
    """The variables of this process that the agent gets by name.

    Raises:
        AgentUnavailable: one that was asked for is not set, or a preset has none of its keys.
    """
    missing = sorted(name for name in names if name not in os.environ)
    if missing:
        raise AgentUnavailable(
            f"the agent is to get the variable {missing[0]}, which is not set here",
            hint="set it, or take it off the list",
        )
    wanted = list(names)
    if (preset := program.preset) is not None:
        keys = [name for name in preset.keys if name in os.environ]
        if not keys and not names:
            raise AgentUnavailable(
                f"{preset.title} needs one of {', '.join(preset.keys)}, and none is set here",
                hint="set one, or name with --agent-env what it gets instead",
            )
        wanted += [*keys, *(name for name in preset.passes if name in os.environ)]
    return {name: os.environ[name] for name in wanted}


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things are, as the agent sees them.

    Args:
        base: what all paths begin with: nothing in a room, else a folder of this machine.
        home: its home folder.
        user: its name.
        uid, gid: its numbers.
    """

    base: str
    home: str
    user: str
    uid: int
    gid: int

    @classmethod
    def isolated(cls) -> Layout:
        """In a room: another user for root, else this one with an empty home over its own."""
        if os.getuid() == 0:
            number = random.SystemRandom().randrange(*_IDS)
            return cls("", _HOME, "agent", number, number)
        try:
            entry = pwd.getpwuid(os.getuid())
        except KeyError:
            return cls("", _HOME, "agent", os.getuid(), os.getgid())
        fit = entry.pw_dir.startswith("/") and os.path.normpath(entry.pw_dir) == entry.pw_dir
        inner = entry.pw_dir.split("/")[1:2] not in (
            [""],
            *([root.split("/")[1]] for root in SYSTEM),
            *([name] for name in ("proc", "dev", "run", "tmp", "work", "sys")),
        )
        home = entry.pw_dir if fit and inner else _HOME
        return cls("", home, entry.pw_name, os.getuid(), os.getgid())

    @classmethod
    def plain(cls, base: Path) -> Layout:
        """Without a room, in a folder of this machine."""
        name = str(os.getuid())
        return cls(str(base), f"{base}{_HOME}", name, os.getuid(), os.getgid())

    @property
    def work(self) -> str:
        return self.base + _WORK

    @property
    def own(self) -> str:
        return self.base + _OWN

    @property
    def ssh(self) -> str:
        return f"{self.home}/.ssh"


@dataclass(frozen=True, slots=True)
class Links:
    """How the agent reaches its ticket and its hosts.

    Args:
        run: what the run is called.
        ticket_url, ticket_token: of the ticket.
        ssh: the content of the files in its `.ssh`, by name.
    """

    run: str
    ticket_url: str
    ticket_token: str
    ssh: Mapping[str, str]


def ticket_words(
    ticket: Ticket, hosts: Collection[str], rules: Collection[str], users: Mapping[str, str]
) -> str:
    """The ticket as the agent reads it, with what it has to know to work on it."""
    parts = [f"# {ticket.title}", ticket.body.rstrip()]
    if hosts:
        names = "\n".join(f"- {name} (as {users.get(name, ROOT)})" for name in hosts)
        parts.append(
            f"## Hosts\n\n{names}\n\nReach each with `ssh NAME COMMAND`, and by `scp`, `sftp` and"
            " `rsync`. The ticket is about these hosts; this machine, where you are, is none."
        )
    if rules:
        listed = "\n".join(f"- {rule}" for rule in rules)
        parts.append(f"## Rules\n\nYou have to keep to these rules:\n{listed}")
    parts.append(
        "## The ticket\n\n`opsdrill-ticket post TEXT` answers the requester."
        " `opsdrill-ticket plan TEXT` says what you plan."
        " When you are done, `opsdrill-ticket summary TEXT` says what you did, and"
        " `opsdrill-ticket resolve success|partial|no_action|agentic_failure|hard_failure WHY`"
        " resolves the ticket. Work on your own: nobody answers questions."
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def room_for(
    program: Program,
    path: str,
    layout: Layout,
    links: Links,
    words: str,
    *,
    hosts: Sequence[str],
    variables: Mapping[str, str],
    hidden: Collection[Path],
    transcripts: Sequence[str],
) -> Room:
    """The room of a program.

    Args:
        path: where the program is.
        words: its ticket.
        hosts: the names of the hosts.
        variables: what it gets from this process's environment by name.
        hidden: what it must not see, wherever it lies.
        transcripts: where it leaves its own report.

    Raises:
        UsageError: the ticket is too long for a program that takes it as an argument.
    """
    search = os.environ.get("PATH", os.defpath)
    isolated = not layout.base
    real_home = os.path.expanduser("~")  # noqa: PTH111
    python = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    shown = [
        *needed(path, search, real_home, program.argv[1:]),
        *needed(python, search, real_home),
    ]
    bin_folder = f"{layout.own}/bin"
    programs = {f"{bin_folder}/opsdrill-ticket": _ticket_program(python)}
    if not isolated:
        programs |= _wrappers(f"{layout.ssh}/config", search)
    if TICKET in program.argv and len(words.encode()) > _ARGUMENT_LIMIT:
        raise UsageError(f"the ticket is too long to be an argument of {program.argv[0]}")
    arguments = [words if word == TICKET else word for word in program.argv[1:]]
    found = f"{bin_folder}:{_path(search, shown) if isolated else search}"
    given = {
        **_allowed(),
        **(program.preset.sets if program.preset else {}),
        **variables,
        **_told(layout, links, hosts, found),
    }
    files = {f"{layout.ssh}/{name}": content for name, content in links.ssh.items()}
    return Room(
        argv=(path, *arguments),
        environment=given,
        home=layout.home,
        work=layout.work,
        own=layout.own,
        user=layout.user,
        uid=layout.uid,
        gid=layout.gid,
        stdin=f"{layout.own}/ticket.md",
        files={**files, f"{layout.own}/ticket.md": words},
        programs=programs,
        shown=tuple(dict.fromkeys(shown)),
        hidden=tuple(_hidden(hidden)),
        transcripts=tuple(_pattern(pattern, layout) for pattern in transcripts),
        isolated=isolated,
    )


def _told(layout: Layout, links: Links, hosts: Sequence[str], path: str) -> dict[str, str]:
    """The variables that are ours to set: who it is, and where it finds its hosts and ticket."""
    return {
        "PATH": path,
        "HOME": layout.home,
        "USER": layout.user,
        "LOGNAME": layout.user,
        "SHELL": "/bin/sh",
        "OPSDRILL_RUN": links.run,
        "OPSDRILL_HOSTS": " ".join(hosts),
        "OPSDRILL_TICKET_FILE": f"{layout.own}/ticket.md",
        "OPSDRILL_TICKET_URL": links.ticket_url,
        "OPSDRILL_TICKET_TOKEN": links.ticket_token,
        "OPSDRILL_SSH_CONFIG": f"{layout.ssh}/config",
        "OPSDRILL_SSH_KEY": f"{layout.ssh}/id_ed25519",
    }


def new_token() -> str:
    """A name that nobody guesses."""
    return secrets.token_hex(8)


def _allowed() -> dict[str, str]:
    return {
        name: value
        for name, value in os.environ.items()
        if name in ALLOWED or name.startswith("LC_")
    }


def _path(search: str, shown: Sequence[str]) -> str:
    """What of the search path is there in a room."""
    roots = (*SYSTEM, *shown)
    folders = [
        folder
        for folder in search.split(":")
        if any(folder == root or folder.startswith(f"{root}/") for root in roots)
    ]
    return ":".join(dict.fromkeys((*folders, "/usr/local/bin", "/usr/bin", "/bin")))


def _hidden(hidden: Collection[Path]) -> list[str]:
    own = Path(opsdrill.__file__ or "").parent
    places = [os.path.realpath(place) for place in (*hidden, own)]
    return [place for place in dict.fromkeys(places) if place not in ("/", *SYSTEM)]


def _pattern(pattern: str, layout: Layout) -> str:
    if pattern.startswith("~/"):
        return f"{layout.home}/{pattern[2:]}"
    return f"{layout.work}/{pattern}"


def _ticket_program(python: str) -> str:
    text = Path(ticket_program.__file__).read_text(encoding="utf-8")
    return f"#!{python} -IS\n{text}"


def _wrappers(config: str, search: str) -> dict[str, str]:
    """Where there is no room, OpenSSH would take its settings from the user's real home."""
    folder = str(Path(config).parents[3])
    found = {}
    for name in _WRAPPED:
        if (path := shutil.which(name, path=search)) is not None:
            text = f'#!/bin/sh\nexec {shlex.quote(path)} -F {shlex.quote(config)} "$@"\n'
            found[f"{folder}{_OWN}/bin/{name}"] = text
    return found
