"""No secret reaches the disk or the terminal: not from any place that lets text into a run.

Whole runs by the command line on sandbox hosts; then every byte of the data folder, of the folder
for temporary files and of what was printed is searched, also inside of what is packed.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from opsdrill.evidence.forms import forms
from opsdrill.hosts.driver import DRIVERS, DriverContext

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

pytestmark = pytest.mark.sandbox

PROGRAM = Path(sys.executable).with_name("opsdrill")

OF_ENV = "env-Secret/7+x"
OF_FILE = "file Secr'et\"9$y"
OF_COMMAND = "cmdSecretK3"
OF_SETTINGS = "settings&Secret=1"
TOKEN = "ghp_" + "Zq8W" * 9
URL_PASSWORD = "url-P4ssw0rd-zz"
KEY_LINE = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw" + "Qq7" * 9
KEY = "-----BEGIN {0}-----\n{1}\n{1}\n-----END {0}-----".format("PRIVATE KEY", KEY_LINE)
ALL = f"{OF_ENV} {OF_FILE} {OF_COMMAND} {OF_SETTINGS} {TOKEN} postgres://app:{URL_PASSWORD}@db/x"
NAMED = (OF_ENV, OF_FILE, OF_COMMAND, OF_SETTINGS)


def needles() -> set[bytes]:
    """Every secret in every way of writing it."""
    found = {TOKEN, URL_PASSWORD, KEY_LINE}
    for value in NAMED:
        found |= {form for form in forms(value) if len(form) >= 8}
    return {text.encode() for text in found}


def encoded(value: str) -> str:
    """The value as programs pass it on, all in one text."""
    return " ".join(
        [
            base64.b64encode(value.encode()).decode(),
            base64.b64encode(f"user:{value}\n".encode()).decode(),
            quote(value, safe=""),
            json.dumps(value),
            shlex.quote(value),
            value.encode().hex(),
        ]
    )


def scenario() -> dict[str, object]:
    say = f"printf '%s\\n' {shlex.quote(ALL)}"
    return {
        "key": "leaky",
        "title": f"Title {OF_ENV}",
        "description": f"Description {ALL}",
        "tags": ["tag", OF_COMMAND],
        "ticket_title": f"Ticket {OF_FILE}",
        "ticket_body": f"Body {ALL}\n{KEY}",
        "hosts": ["app-01"],
        "operational_rules": [f"Use {ALL}"],
        "files": [
            {"from": "files/conf.txt", "to": f"/etc/{OF_COMMAND}.conf"},
            {"from": f"files/{OF_COMMAND}.bin", "to": "/opt/data.bin"},
        ],
        "setup": [
            {"run": f"{say} | tee /etc/app.secret; {say} >&2"},
            {"run": f"head -c 3000000 /dev/zero | tr '\\0' x; echo {OF_COMMAND}"},
            {"run": f"head -c {1024 * 1024 - 8} /dev/zero | tr '\\0' y; echo {OF_COMMAND}"},
        ],
        "ready": [{"run": f"{say}; grep -q {OF_COMMAND} /etc/app.secret"}],
        "reference": [{"run": say}],
        "restore": [{"run": say}],
        "validation": [
            {
                "label": f"Rule {OF_SETTINGS}",
                "validator": "host_state",
                "run": f"{say}; cat /etc/*.secret; grep -q {OF_COMMAND} /etc/{OF_COMMAND}.conf",
            },
            {
                "label": "the agent used it",
                "validator": "pattern_match",
                "pattern": f"echo.*{OF_COMMAND}",
                "where": "executed_commands",
            },
            {
                "label": "masked",
                "validator": "pattern_match",
                "pattern": r"\[masked:OF_ENV\]",
                "where": "agent_messages",
            },
            {
                "label": "no token",
                "validator": "pattern_match",
                "pattern": TOKEN,
                "where": "gateway_summary",
                "negate": True,
                "required": False,
            },
        ],
    }


def script(*last: dict[str, object]) -> dict[str, object]:
    do: list[dict[str, object]] = [
        {"run": f"echo {shlex.quote(ALL)}; cat /etc/app.secret /opt/data.bin; env"},
        {"run": f"test -e /etc/{OF_COMMAND}.conf && cat /etc/{OF_COMMAND}.conf | base64 -w0"},
        {"run": "base64 -w0 /etc/app.secret; od -An -v -tx1 /etc/app.secret | tr -d ' \\n'"},
        {"run": "ls /nowhere/" + OF_COMMAND},
        {"write": {"path": f"/srv/{OF_COMMAND}/a.txt", "content": f"{ALL}\n{KEY}"}},
        {"write": {"path": f"/proc/{OF_COMMAND}/a.txt", "content": ALL}},
        {"update": {"path": f"/srv/{OF_COMMAND}/a.txt", "old": OF_ENV, "new": OF_FILE}},
        {"mcp": {"server": "s", "tool": "t", "arguments": {OF_SETTINGS: [ALL, {"a": KEY}]}}},
        {"say": f"I saw {ALL}"},
        {"claim": f"mysql -p{OF_COMMAND}"},
        {"run": f"touch /root/{OF_COMMAND}.txt"},
    ]
    do += [{"say": encoded(value)} for value in NAMED]
    do += last
    return {
        "format": "opsdrill.script/1",
        "plan": f"Plan {ALL}",
        "turns": [
            {
                "post": f"Post {ALL}",
                "tasks": [
                    {
                        "host": "app-01",
                        "description": f"Task {ALL}",
                        "operational_rules": [f"Rule {KEY}"],
                        "agent": f"agent {OF_ENV}",
                        "do": do,
                        "end": {"status": "completed", "stop_reason": OF_ENV, "summary": ALL},
                    }
                ],
            }
        ],
        "post": f"Last {ALL}",
        "resolve": {"resolution": "success", "reasoning": f"Because {ALL}"},
    }


class Place:
    """A data folder, a folder with a leaky scenario, and what was printed so far."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.work = folder / "work"
        self.temporary = folder / "tmp"
        self.printed = b""
        self.status: int | None = None
        for part in (self.work / "files", self.temporary):
            part.mkdir(parents=True)
        files = self.work / "files"
        (files / "conf.txt").write_text(f"password = {ALL}\n{KEY}\n")
        (files / f"{OF_COMMAND}.bin").write_bytes(b"\xff\x00\xfe" + OF_COMMAND.encode() + b"\xff")
        (self.work / "scenario.yaml").write_text(json.dumps(scenario()))
        (self.work / f"agent-{OF_COMMAND}.yaml").write_text(json.dumps(script()))
        (self.work / "secret.txt").write_text(OF_FILE + "\n")
        (self.work / "secret.txt").chmod(0o600)
        lab = {
            "driver": "sandbox",
            "secrets": {
                "OF_ENV": {"env": "OF_ENV"},
                "OF_FILE": {"file": "secret.txt"},
                "OF_COMMAND": {"command": f"printf {OF_COMMAND[:5]}; echo {OF_COMMAND[5:]}"},
            },
        }
        (self.work / "lab.yaml").write_text(json.dumps(lab))
        (self.work / "opsdrill.toml").write_text('[secrets]\nOF_SETTINGS = {env = "OF_SETTINGS"}\n')
        self.environment = {
            **os.environ,
            "OF_ENV": OF_ENV,
            "OF_SETTINGS": OF_SETTINGS,
            "TMPDIR": str(self.temporary),
            "NO_COLOR": "1",
        }

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [str(PROGRAM), "--home", str(self.home), "--debug", *words],
            cwd=self.work,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def run(self, *words: str) -> str:
        with self.start(*words) as process:
            printed, _ = process.communicate(timeout=120)
        self.printed += printed
        self.status = process.returncode
        return printed.decode()

    def kept(self) -> Iterator[tuple[str, bytes]]:
        """Everything that was kept or printed, by a name for it; packed bodies unpacked too."""
        for folder in (self.home, self.temporary):
            for path in folder.rglob("*"):
                yield "a file's name", str(path.relative_to(folder)).encode()
                if path.is_file() and not path.is_symlink():
                    yield str(path), path.read_bytes()
        with contextlib.closing(sqlite3.connect(self.home / "store.db")) as database:
            names = database.execute("select name from sqlite_master where type = 'table'")
            for (table,) in names.fetchall():
                for row in database.execute(f"select * from {table}"):
                    for value in row:
                        if isinstance(value, bytes):
                            with contextlib.suppress(zlib.error):
                                yield f"{table}, unpacked", zlib.decompress(value)
                            with contextlib.suppress(zstd.ZstdError):
                                yield f"{table}, unpacked", zstd.decompress(value)
        yield "what was printed", self.printed

    def leaks(self) -> list[tuple[str, bytes, bytes]]:
        """Every place where a secret stands, and what is around it."""
        found = []
        wanted = needles()
        for name, content in self.kept():
            for needle in wanted:
                if (start := content.find(needle)) >= 0:
                    found.append((name, needle, content[max(0, start - 60) : start + 80]))
        return found


@pytest.fixture
async def place(tmp_path: Path) -> Place:
    driver = DRIVERS.get("sandbox")(DriverContext(tmp_path / "probe"))
    try:
        blocked = [f for f in await driver.preflight() if f.blocks and not f.good]
    finally:
        await driver.close()
    if blocked:
        pytest.skip(f"no sandbox hosts here: {blocked[0].detail}")
    return Place(tmp_path)


def wait_for(what: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it did not come to that in time"
        time.sleep(0.05)


def test_a_whole_run_keeps_and_tells_no_secret(place: Place) -> None:
    """Hosts had the true values all the same, and rules that name secrets are judged right."""
    printed = place.run(
        "run", "scenario.yaml", "--agent", f"script:agent-{OF_COMMAND}.yaml", "--format", "json"
    )
    result = json.loads(printed[printed.index("{\n") : printed.rindex("}") + 1])
    assert result["verdict"] == "passed", result
    assert [rule["status"] for rule in result["rules"]] == ["passed"] * 3 + ["failed"]
    run = result["run"]
    for words in (
        ("runs", "show", run),
        ("runs", "evidence", run),
        ("runs", "evidence", run, "--format", "json"),
        ("runs", "list"),
        ("regrade", run),
        ("regrade", run, "--scenario", "scenario.yaml"),
        ("runs", "list", "--format", "json"),
    ):
        place.run(*words)
        assert place.status == 0, place.printed[-2000:]
    assert b"[masked:OF_COMMAND]" in place.printed
    assert b"[masked:private-key]" in place.printed
    assert b"0 flips" in place.printed
    assert place.leaks() == []

    # Where the secrets are not at hand, kept rules can still be graded by, edited ones cannot.
    del place.environment["OF_ENV"]
    assert "0 flips" in place.run("regrade", run)
    said = place.run("regrade", run, "--scenario", "scenario.yaml")
    assert "holds secrets that cannot be had here (OF_ENV), left out" in said
    assert place.leaks() == []


def test_a_setup_that_fails_tells_no_secret(place: Place) -> None:
    """The reason of a stop holds what the host printed last."""
    broken = {**scenario(), "setup": [{"run": f"echo {shlex.quote(ALL)} >&2; exit 3"}]}
    (place.work / "scenario.yaml").write_text(json.dumps(broken))
    printed = place.run("run", "scenario.yaml", "--agent", f"script:agent-{OF_COMMAND}.yaml")
    assert "ended with exit status 3" in printed
    assert "[masked:OF_COMMAND]" in printed
    assert place.leaks() == []


def test_a_run_that_is_killed_half_way_leaves_no_secret(place: Place) -> None:
    """Neither before nor after the next start found it."""
    (place.work / f"agent-{OF_COMMAND}.yaml").write_text(
        json.dumps(script({"run": f"echo {OF_COMMAND}; sleep 300"}))
    )

    def events() -> int:
        if not (place.home / "store.db").exists():
            return 0
        try:
            with contextlib.closing(sqlite3.connect(place.home / "store.db")) as database:
                return int(database.execute("select count(*) from events").fetchone()[0])
        except sqlite3.OperationalError:
            return 0  # not made yet

    with place.start(
        "run", "scenario.yaml", "--agent", f"script:agent-{OF_COMMAND}.yaml"
    ) as process:
        wait_for(lambda: events() >= 30 or process.poll() is not None)
        assert process.poll() is None, process.stdout and process.stdout.read()
        os.kill(process.pid, signal.SIGKILL)
        place.printed += process.communicate(timeout=60)[0]
    assert place.leaks() == []
    assert "interrupted" in place.run("runs", "list")
    place.run("runs", "list")
    assert place.leaks() == []


def test_the_search_finds_what_is_not_masked(place: Place) -> None:
    """Without the lab and the settings nobody knows the values: the search must see them then."""
    (place.work / "lab.yaml").write_text("{driver: sandbox}")
    (place.work / "opsdrill.toml").unlink()
    place.run("run", "scenario.yaml", "--agent", f"script:agent-{OF_COMMAND}.yaml")
    names = {needle for _, needle, _ in place.leaks()}
    assert {value.encode() for value in (OF_COMMAND, OF_ENV)} <= names
    assert TOKEN.encode() not in names
    assert KEY_LINE.encode() not in names
