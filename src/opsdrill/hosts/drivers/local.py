"""The `local` driver: this very machine, only when asked for by name and confirmed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from functools import partial

from opsdrill.errors import DriverUnavailable, ProvisionFailed, UsageError
from opsdrill.hosts.command import BOOT, SEARCH_PATH, ask_line, next_mark, next_nonce
from opsdrill.hosts.driver import DriverContext, Finding
from opsdrill.hosts.fleet import EndingFleet
from opsdrill.hosts.look import PACKAGES, UNMARKED, Look, look_text, packages_digest, parse_look
from opsdrill.hosts.process_link import ProcessLink
from opsdrill.hosts.shell_host import ShellHost
from opsdrill.hosts.shell_link import NoAnswer
from opsdrill.model.host import HostFacts
from opsdrill.model.scenario import HostSpec

_NAMES = ("confirm", "sudo")
_PACKAGE_BYTES = 4 * 1024 * 1024
_LAB_LINE = "options: {confirm: yes}"
_CONFIRM = f"on a machine that can be thrown away: `{_LAB_LINE}` in lab.yaml"
_SHELL = ("/bin/sh", "-c", BOOT)


class LocalDriver:
    """Gives this machine as the one host of a run.

    Nothing is made and nothing is removed: what a run does to the machine stays. A background
    process that writes to the output of its command can do so until the run ends.

    Args:
        context: its options are `confirm`, without which nothing is run, and `sudo`: whoever
            started this becomes root by `sudo -n`.
        shell: the argument list of the shell that runs a line.

    Raises:
        UsageError: an option that does not exist, or a value that cannot be.
    """

    name = "local"
    throw_away = False

    def __init__(self, context: DriverContext, shell: Sequence[str] = _SHELL) -> None:
        self._confirmed, sudo = (_yes_or_no(name, context.options) for name in _NAMES)
        for name in sorted(context.options):
            if name not in _NAMES:
                raise UsageError(
                    f"the local driver has no option {name!r}", hint=f"it has: {', '.join(_NAMES)}"
                )
        self._sudo = sudo and os.geteuid() != 0
        self._shell = ("sudo", "-n", *shell) if self._sudo else tuple(shell)

    async def preflight(self, hosts: Sequence[HostSpec] = ()) -> list[Finding]:
        found = [
            Finding(
                "this machine may be drilled",
                self._confirmed,
                "confirmed" if self._confirmed else "not confirmed: what a run does to it stays",
                None if self._confirmed else _CONFIRM,
                blocks=not self._confirmed,
                lab_line=None if self._confirmed else _LAB_LINE,
            )
        ]
        if len(hosts) > 1:
            found.append(Finding("one host", False, _many(hosts), _OTHERS, blocks=True))
        link = self._link()
        try:
            found += self._seen(await _look(link))
        except NoAnswer as error:
            found.append(Finding("commands", False, error.reason, blocks=True))
        finally:
            await link.close()
        return found

    async def provision(self, run: str, hosts: Sequence[HostSpec]) -> EndingFleet[ShellHost]:  # noqa: ARG002
        if not self._confirmed:
            raise DriverUnavailable(
                "the local driver would break this very machine, and that was not confirmed",
                hint=_CONFIRM,
            )
        if len(hosts) != 1:
            raise DriverUnavailable(_many(hosts), hint=_OTHERS)
        link = self._link()
        try:
            host = await self._host(hosts[0].name, link)
        except BaseException:
            await asyncio.shield(link.close())
            raise
        return EndingFleet({hosts[0].name: host}, partial(_end, host, link))

    async def reap(self) -> list[str]:
        return []

    async def close(self) -> None:
        """There is nothing of its own that runs."""

    def _link(self) -> ProcessLink:
        return ProcessLink(self._shell, environment={"PATH": SEARCH_PATH})

    async def _host(self, name: str, link: ProcessLink) -> ShellHost:
        try:
            look = await _look(link)
            nonce = next_nonce()
            asked = await link.talk(
                nonce, ask_line(nonce, PACKAGES).encode(), seconds=60.0, limit=_PACKAGE_BYTES
            )
        except NoAnswer as error:
            raise ProvisionFailed(name, f"this machine does not answer: {error.reason}") from None
        if look.shell is None:
            raise ProvisionFailed(name, "this machine has neither bash nor sh where they belong")
        limits = {
            "changed files": "not known on machines that exist",
            "disk, memory, processes": "not bounded: it is this very machine",
        }
        if not look.marks:
            limits |= UNMARKED
        facts = HostFacts(
            name=name,
            driver=self.name,
            shell=look.shell,
            distribution=look.distribution,
            kernel=look.kernel,
            packages_digest=packages_digest(asked.out.text),
            users=look.uid == 0,
            limits=limits,
        )
        return ShellHost(facts, link, look.uid)

    def _seen(self, look: Look) -> list[Finding]:
        root = look.uid == 0
        remedy = "run as root, or `options: {sudo: yes}` where sudo asks for no password"
        return [
            Finding("commands", look.shell is not None, f"run by {look.shell or 'no shell'}"),
            Finding(
                "root and other users",
                root,
                ("by sudo" if self._sudo else "as root") if root else "only as who started this",
                None if root else remedy,
            ),
            Finding(
                "time limits",
                look.marks,
                "end everything that a command started"
                if look.marks
                else "what a command started cannot be told apart and is not killed",
                None if look.marks else "install bash or dash, mount /proc",
            ),
            Finding("changed files", False, "not known on machines that exist"),
        ]


async def _end(host: ShellHost, link: ProcessLink) -> None:
    await host.release()
    await link.close()


_OTHERS = "use `--lab sandbox` or `--lab container`"


def _many(hosts: Sequence[HostSpec]) -> str:
    names = ", ".join(spec.name for spec in hosts)
    return f"the local driver has one host, this machine; the scenario wants {names or 'none'}"


async def _look(link: ProcessLink) -> Look:
    """What this machine says about itself.

    Raises:
        NoAnswer: it has no shell.
    """
    nonce = next_nonce()
    told = await link.talk(nonce, ask_line(nonce, look_text(next_mark())).encode())
    look = parse_look(told.out.text)
    if look is None:
        raise NoAnswer("it does not say who runs commands here")
    return look


def _yes_or_no(name: str, given: Mapping[str, str]) -> bool:
    text = given.get(name, "no").strip().lower()
    if text not in ("yes", "true", "no", "false"):
        raise UsageError(f"local option {name}: {given[name]!r} is neither yes nor no")
    return text in ("yes", "true")
