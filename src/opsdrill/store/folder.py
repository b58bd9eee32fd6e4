"""The data folder: where everything that OpsDrill keeps lies.

    <home>/
      store.db           runs, evidence, grades (with store.db-wal and -shm while it is open)
      files/             large bodies and support files, by content: files/ab/cdef...
      agents/RUN/        what the agent of a run left behind that is no event: output, files
      labs/              the labs known by name, NAME.yaml or NAME/lab.yaml
      uploads/           what is being sent to `opsdrill serve`, as long as it is looked at
      drivers/NAME/      what a driver must find again after a crash
      opsdrill.toml      settings

It is `--home`, else `OPSDRILL_HOME`, else `$XDG_DATA_HOME/opsdrill`, else
`~/.local/share/opsdrill`; made on first use, for its owner only (0700).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from opsdrill.errors import UsageError

DATABASE = "store.db"
FILES = "files"


def left_behind(home: Path, run: str) -> Path:
    """Where what the agent of a run left behind lies; there may be none."""
    return home / "agents" / run


def data_folder(given: Path | None = None, environment: Mapping[str, str] = os.environ) -> Path:
    """The path of the data folder, absolute; the folder need not exist yet.

    Args:
        given: the value of `--home`; relative to the working folder.

    Raises:
        UsageError: nothing says where a home could be.
    """
    if given is not None:
        return given.absolute()
    if named := environment.get("OPSDRILL_HOME"):
        return Path(named).absolute()
    # XDG's base directory specification: a relative path there counts as not set.
    if (data := environment.get("XDG_DATA_HOME", "")).startswith("/"):
        return Path(data) / "opsdrill"
    try:
        return _user_home(environment) / ".local" / "share" / "opsdrill"
    except RuntimeError:
        raise UsageError(
            "this user has no home folder for OpsDrill's data",
            hint="name one with --home or OPSDRILL_HOME",
        ) from None


def _user_home(environment: Mapping[str, str]) -> Path:
    if (home := environment.get("HOME", "")).startswith("/"):
        return Path(home)
    return Path.home()
