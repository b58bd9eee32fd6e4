"""The images that hosts are made from."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from opsdrill.errors import DriverUnavailable, ProvisionFailed
from opsdrill.hosts.drivers.container.engine import Engine
from opsdrill.model.scenario import HostSpec

EXAMPLE = "debian:12"
_PULL_SECONDS = 1800.0
_SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PLAIN = re.compile(r"[a-z0-9][A-Za-z0-9._/:-]*")
"""Names that a line of YAML and a shell take as they are."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image that is there.

    Attributes:
        name: what the lab calls it.
        id: what the engine calls it: of this very content.
    """

    name: str
    id: str


def image_name(spec: HostSpec, images: Mapping[str, str], default: str | None) -> str:
    """The engine's name of a host's image.

    Args:
        spec: the host.
        images: the engine's name for each of the lab's.
        default: for hosts that name none: one of the lab's names, or the engine's own.

    Raises:
        DriverUnavailable: there is none.
    """
    if spec.image is not None and spec.image not in images:
        raise DriverUnavailable(
            f"host {spec.name} wants the image {spec.image!r}, which the lab does not have",
            hint=f"add to lab.yaml: `images: {{{spec.image}: {{container: NAME}}}}`",
        )
    found = spec.image if spec.image is not None else default
    if found is None:
        raise DriverUnavailable(
            f"no image is named for host {spec.name}",
            hint=f"name one in lab.yaml: `{lab_line(EXAMPLE)}`",
        )
    name = images.get(found, found)
    if name.startswith("-") or not name.isprintable() or " " in name:
        raise DriverUnavailable(f"{name!r} is no name of a container image")
    return name


async def have_image(engine: Engine, host: str, name: str, waiting: Callable[[str], None]) -> Image:
    """The image of that name, fetched where it is missing.

    Args:
        engine: where it must be.
        host: who wants it.
        name: the engine's name of it.
        waiting: told what is waited for.

    Raises:
        ProvisionFailed: it cannot be had.
    """
    found = await _inspect(engine, name)
    if found is not None:
        return found
    waiting(f"waiting for the image {name} to be fetched")
    pulled = await engine.ask("pull", "--quiet", name, seconds=_PULL_SECONDS)
    found = await _inspect(engine, name)
    if found is None:
        raise ProvisionFailed(
            host,
            f"the image {name} is not there and cannot be fetched ({pulled.said})",
            hint=f"try `{engine.kind} pull {name}`",
        )
    return found


async def named_images(engine: Engine) -> list[str]:
    """The images that are there already, the newest first; those with common names only."""
    told = await engine.ask("images", "--format={{.Repository}}:{{.Tag}}")
    return [name for name in told.out.split() if _PLAIN.fullmatch(name)] if told.good else []


def lab_line(image: str) -> str:
    """What a lab's file says to have hosts made from an image."""
    return f"defaults: {{image: {image}}}"


def image_remedy(engine: Engine, *, root: bool) -> str:
    """The command that brings the example, and one that makes it where nothing can be fetched.

    Args:
        engine: where it must be.
        root: whoever asks is root.
    """
    client = engine.kind if shutil.which(engine.kind) == engine.program else engine.program
    fetch = f"{client} pull {EXAMPLE}"
    if shutil.which("apt-get") is None:
        return fetch
    sudo, tree = "" if root else "sudo ", "/var/tmp/opsdrill-debian-12"  # noqa: S108
    install = "" if shutil.which("debootstrap", path=_SYSTEM) else "apt-get install -y debootstrap"
    steps = [
        *([f"{sudo}{install}"] if install else []),
        f"{sudo}debootstrap --variant=minbase bookworm {tree}",
        f"{sudo}tar -C {tree} -c . | {client} import - {EXAMPLE}",
    ]
    return f"{fetch}, or, built here: {' && '.join(steps)}"


async def _inspect(engine: Engine, name: str) -> Image | None:
    reply = await engine.ask("image", "inspect", "--format={{.Id}}", name)
    return Image(name, reply.out.strip()) if reply.good and reply.out.strip() else None
