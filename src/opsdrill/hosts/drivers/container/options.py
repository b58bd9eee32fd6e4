"""The lab's options for containers."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from opsdrill.errors import UsageError

_NAMES = ("engine", "image", "internet", "run_options", "systemd")
_YES, _NO = ("yes", "true"), ("no", "false")


@dataclass(frozen=True, slots=True)
class Options:
    """How hosts are made.

    Attributes:
        engine: `docker`, `podman` or the path of one; None: whichever answers.
        image: for hosts that name none.
        internet: hosts reach what this machine reaches; otherwise only each other.
        run_options: more arguments for the engine's `run`.
        systemd: the image's init runs as the host's first process.
    """

    engine: str | None = None
    image: str | None = None
    internet: bool = False
    run_options: tuple[str, ...] = ()
    systemd: bool = False


def parse_options(given: Mapping[str, str], folder: Path) -> Options:
    """The options as values.

    Args:
        given: as the lab has them.
        folder: where the relative path of an engine starts.

    Raises:
        UsageError: an option that does not exist, or a value that cannot be.
    """
    for name in sorted(given):
        if name not in _NAMES:
            raise UsageError(
                f"the container driver has no option {name!r}", hint=f"it has: {', '.join(_NAMES)}"
            )
    try:
        run_options = tuple(shlex.split(given.get("run_options", "")))
    except ValueError as error:
        raise UsageError(
            f"container option run_options cannot be split into words: {error}",
            hint="quote it as for a shell",
        ) from None
    return Options(
        engine=_engine(given.get("engine", ""), folder),
        image=given.get("image") or None,
        internet=_yes_or_no("internet", given),
        run_options=run_options,
        systemd=_yes_or_no("systemd", given),
    )


def _engine(given: str, folder: Path) -> str | None:
    if "/" in given:
        return str((folder / Path(given).expanduser()).absolute())
    return given or None


def _yes_or_no(name: str, given: Mapping[str, str]) -> bool:
    text = given.get(name, "no").strip().lower()
    if text not in _YES + _NO:
        raise UsageError(f"container option {name}: {given[name]!r} is neither yes nor no")
    return text in _YES
