"""The log of a process that stays: lines on standard error, safe to show, with no token in them."""

from __future__ import annotations

import logging
import re
import sys

from opsdrill.app.safe_text import shown_block

TOKEN = re.compile(r"\bod_[0-9a-f]{10}_[A-Za-z0-9_-]+")
"""A secret of `opsdrill.app.access`."""


class Plain(logging.Formatter):
    """What a record says, errors' traces too, without anything that a terminal acts on."""

    def format(self, record: logging.LogRecord) -> str:
        return shown_block(TOKEN.sub("[masked:token]", super().format(record)))


def log_to_stderr(debug: bool) -> None:
    """Write our own log, and what the server warns of, to standard error.

    Args:
        debug: everything, of ours and of the server.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Plain("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root = logging.getLogger()
    for known in list(root.handlers):
        root.removeHandler(known)
    root.addHandler(handler)
    ours, theirs = (logging.DEBUG, logging.INFO) if debug else (logging.INFO, logging.ERROR)
    logging.getLogger("opsdrill").setLevel(ours)
    logging.getLogger("uvicorn").setLevel(theirs)
