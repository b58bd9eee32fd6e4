"""Logging in to a machine: with what, and whether it is the machine it should be."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from opsdrill.hosts.drivers.ssh.reasons import NoConnection, short, why
from opsdrill.model.lab import LabHost

LOGIN_SECONDS = 10.0
"""Seconds from the first packet to the end of the login."""
# A connection without a sign of life for three of these is dead.
_KEEPALIVE_SECONDS = 4.0
_KEEPALIVES = 2

_SYSTEM_KNOWN_HOSTS = Path("/etc/ssh/ssh_known_hosts")


@dataclass(frozen=True, slots=True)
class KnownKeys:
    """The host keys that a machine may show.

    Attributes:
        source: where they stand, in words.
        given: keys that hold for this machine, wherever it is.
        listed: keys listed by host name.
    """

    source: str
    given: tuple[asyncssh.SSHKey, ...] = ()
    listed: asyncssh.SSHKnownHosts | None = None


def known_keys(host: LabHost, folder: Path) -> KnownKeys:
    """The keys of `known_host`, else those of the user's and the system's `known_hosts`.

    Args:
        host: the machine.
        folder: where a relative path starts.

    Raises:
        NoConnection: they cannot be read.
    """
    if host.known_host is None:
        own = Path("~/.ssh/known_hosts").expanduser()
        return KnownKeys("known_hosts", listed=_read([own, _SYSTEM_KNOWN_HOSTS]))
    given = _public_keys(host.known_host)
    if given:
        return KnownKeys("`known_host` of the lab", given)
    path = folder / Path(host.known_host).expanduser()
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise NoConnection(
            f"`known_host` is neither a public key nor a file that can be read: {short(error)}",
            passing=False,
            hint="write it as one line such as `ssh-ed25519 AAAA...`",
        ) from None
    return KnownKeys(str(path), _public_keys(text), _read([path]))


def _public_keys(text: str) -> tuple[asyncssh.SSHKey, ...]:
    """The keys in lines such as `ssh-ed25519 AAAA...`, also as ssh-keyscan(1) writes them."""
    found = []
    for line in text.splitlines():
        words = line.split()
        for rest in (words, words[1:]):
            try:
                found.append(asyncssh.import_public_key(" ".join(rest)))
            except asyncssh.KeyImportError:
                continue
            break
    return tuple(found)


def _read(paths: list[Path]) -> asyncssh.SSHKnownHosts | None:
    readable = [str(path) for path in paths if path.is_file()]
    try:
        return asyncssh.read_known_hosts(readable) if readable else None
    except (OSError, ValueError) as error:
        raise NoConnection(f"known_hosts cannot be read: {short(error)}", passing=False) from None


class _Watcher(asyncssh.SSHClient):
    """Remembers the host key that was not among the known ones."""

    def __init__(self) -> None:
        self.shown: asyncssh.SSHKey | None = None

    def validate_host_public_key(
        self,
        host: str,  # noqa: ARG002
        addr: str,  # noqa: ARG002
        port: int,  # noqa: ARG002
        key: asyncssh.SSHKey,
    ) -> bool:
        self.shown = key
        return False


async def log_in(
    host: LabHost, folder: Path, tunnel: asyncssh.SSHClientConnection | None
) -> asyncssh.SSHClientConnection:
    """A connection to a machine whose key is known.

    Args:
        host: the machine, and who logs in.
        folder: where relative paths of keys start.
        tunnel: the connection to the machine in `via`.

    Raises:
        NoConnection: says why.
    """
    known = known_keys(host, folder)
    keys = _Matched(known)
    watcher = _Watcher()
    try:
        async with asyncio.timeout(LOGIN_SECONDS):
            return await asyncssh.connect(
                host.address,
                host.port,
                tunnel=tunnel or (),
                config=[],
                client_factory=lambda: watcher,
                known_hosts=keys.match,
                x509_trusted_certs=[],
                username=host.user,
                client_keys=_client_keys(host, folder),
                agent_path=() if host.key is None and host.password is None else None,
                password=host.password,
                gss_host=None,
                host_based_auth=False,
                encryption_algs="^aes128-gcm@openssh.com",
                compression_algs=None,
                connect_timeout=None,
                login_timeout=2 * LOGIN_SECONDS,
                keepalive_interval=_KEEPALIVE_SECONDS,
                keepalive_count_max=_KEEPALIVES,
            )
    except asyncssh.HostKeyNotVerifiable as error:
        raise _wrong_key(host, known, keys, watcher.shown, error) from None
    except (OSError, TimeoutError, ValueError, asyncssh.Error) as error:
        raise why(error, host) from None


class _Matched:
    """The known keys that hold for the address and port of an attempt."""

    def __init__(self, known: KnownKeys) -> None:
        self._known = known
        self.trusted: list[asyncssh.SSHKey] = list(known.given)

    def match(
        self, host: str, addr: str, port: int | None
    ) -> tuple[list[asyncssh.SSHKey], list[asyncssh.SSHKey], list[asyncssh.SSHKey]]:
        authorities: list[asyncssh.SSHKey] = []
        revoked: list[asyncssh.SSHKey] = []
        if self._known.listed is not None:
            found = self._known.listed.match(host, addr, port)
            self.trusted += found[0]
            authorities, revoked = list(found[1]), list(found[2])
        return self.trusted, authorities, revoked


def _wrong_key(
    host: LabHost,
    known: KnownKeys,
    keys: _Matched,
    shown: asyncssh.SSHKey | None,
    error: asyncssh.Error,
) -> NoConnection:
    place = f"{host.address} port {host.port}"
    if shown is None:
        return NoConnection(f"the host key of {place} is refused: {short(error)}", passing=False)
    line = shown.export_public_key("openssh").decode("ascii").strip()
    line = " ".join(line.split()[:2])
    if keys.trusted:
        expected = ", ".join(sorted({key.get_fingerprint() for key in keys.trusted}))
        return NoConnection(
            f"host key changed: {place} shows {shown.get_fingerprint()}, {known.source} has"
            f" {expected}; it was set up anew, or another machine answers in its place",
            passing=False,
            hint=f"if it was set up anew: `known_host: {line}`",
        )
    return NoConnection(
        f"host key not known: {place} shows {shown.get_fingerprint()}, which is neither in"
        " `known_host` of the lab nor in known_hosts",
        passing=False,
        hint=f"compare it on the machine itself, then add to the lab: `known_host: {line}`",
    )


def _client_keys(host: LabHost, folder: Path) -> list[asyncssh.SSHKey] | tuple[()] | None:
    """The key in `key`; `()` leaves the choice to the agent and the user's usual keys."""
    if host.key is None:
        return None if host.password is not None else ()
    path = folder / Path(host.key).expanduser()
    try:
        return [asyncssh.read_private_key(str(path), host.password)]
    except (OSError, asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
        raise NoConnection(
            f"the key {path} cannot be used: {short(error)}",
            passing=False,
            hint="`key` names a private key that this user may read; `password` unlocks it, or"
            " leave `key` out and let ssh-agent(1) hold it",
        ) from None
