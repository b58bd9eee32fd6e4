"""`opsdrill serve` as a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAM = Path(sys.executable).parent / "opsdrill"
HANGS = 60.0
"""Seconds after which whatever a test waits for counts as hanging."""


@contextmanager
def serving(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str, str, list[str]]]:
    """`opsdrill serve`, its address, the admin's token if it made one, and what it noted."""
    errors = folder / "errors.txt"
    with errors.open("w") as err:
        process = subprocess.Popen(
            [str(PROGRAM), "--home", str(folder / "home"), "serve", "--bind", "127.0.0.1:0",
             "--parallel", "1"],
            cwd=folder / "work", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err,
            text=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            address = process.stdout.readline().removeprefix("serving at ").strip()
            assert address, errors.read_text()
            secret = folder / "secret"
            if not secret.exists():
                line = process.stdout.readline()
                secret.write_text(line.removeprefix("admin token: ").strip())
            yield process, address, secret.read_text(), errors.read_text().splitlines()
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=HANGS)
