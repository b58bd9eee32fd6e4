"""The command line as a user has it: the real program in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

DATA = Path(__file__).parent / "data"
PROGRAM = Path(sys.executable).parent / "opsdrill"
HANGS = 60.0
"""Seconds after which a command counts as hanging."""


@dataclass
class Cli:
    """Runs the program in a folder of its own with a data folder of its own."""

    folder: Path
    home: Path
    environment: dict[str, str] = field(default_factory=dict)

    def command(self, *words: str) -> list[str]:
        return [str(PROGRAM), "--home", str(self.home), *words]

    def start(self, *words: str, **environment: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self.command(*words),
            cwd=self.folder,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def __call__(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            self.command(*words),
            cwd=self.folder,
            env={**self.environment, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=HANGS,
            check=False,
        )
        out, err = done.stdout.decode(), done.stderr.decode()
        assert "Traceback" not in err, err
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    def shell(self, text: str) -> subprocess.CompletedProcess[bytes]:
        """A line for bash, in which `opsdrill` is the program."""
        words = " ".join(f"'{word}'" for word in self.command())
        return subprocess.run(
            ["bash", "-c", f'set -o pipefail; opsdrill() {{ {words} "$@"; }}; {text}'],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=HANGS,
            check=False,
        )


QUEUE = str(DATA / "stuck-queue")
RIGHT: Mapping[str, object] = json.loads((DATA / "answers.json").read_text())


def lab(cli: Cli, *first: Mapping[str, object], silent: Sequence[str] = ()) -> str:
    """A lab of scripted hosts; the answers in `first` go before the right ones."""
    answers = RIGHT["answers"]
    assert isinstance(answers, list)
    script = {**RIGHT, "answers": [*first, *answers], "silent": list(silent)}
    (cli.folder / "answers.json").write_text(json.dumps(script))
    path = cli.folder / "fake-lab.yaml"
    path.write_text("driver: fake\noptions: {answers: answers.json}\n")
    return str(path)
