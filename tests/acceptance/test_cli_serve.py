"""`opsdrill serve`: its first start, its end, its restart, and beside `opsdrill run`."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx
import pytest
from tests.acceptance.program import DATA, HANGS, QUEUE, Cli, lab
from tests.acceptance.test_cli_interrupt import SLOW, rows

SERVE = ("serve", "--bind", "127.0.0.1:0")


@dataclass
class Server:
    """A process that serves, with a client that has its token."""

    process: subprocess.Popen[bytes]
    client: httpx.Client
    said: list[str]
    """Its lines on standard output up to its address, and the admin's token if it made one."""

    def stop(self, number: signal.Signals, times: int = 1) -> tuple[int, str]:
        """Its exit status, and what it said on standard error."""
        for _ in range(times):
            self.process.send_signal(number)
            time.sleep(0.2)
        out, err = self.process.communicate(timeout=HANGS)
        assert out == b""
        assert b"Traceback" not in err, err.decode()
        return self.process.returncode, err.decode()

    def start(self, *agents: str, repeat: int = 1) -> list[str]:
        """The ids of runs that were started."""
        asked = {"scenarios": ["stuck-queue"], "agents": agents, "lab": "fake", "repeat": repeat}
        answer = self.client.post("/api/v1/runs", json=asked)
        assert answer.status_code in (201, 202), answer.text
        return [run["id"] for run in answer.json()["runs"]]

    def until(self, run: str, *states: str) -> dict[str, object]:
        """A run, once it is in one of these states."""
        end = time.monotonic() + HANGS
        while time.monotonic() < end:
            found: dict[str, object] = self.client.get(f"/api/v1/runs/{run}").json()
            if found["state"] in states:
                return found
            time.sleep(0.05)
        raise AssertionError(f"run {run} never got {states}: {found}")


@contextmanager
def serving(cli: Cli, *words: str, token: str | None = None) -> Iterator[Server]:
    """A server; killed in the end if it still lives."""
    process = cli.start(*SERVE, *words, OPSDRILL_SCENARIOS=str(DATA))
    assert process.stdout is not None
    said = [process.stdout.readline().decode().rstrip()]
    if token is None:
        said.append(process.stdout.readline().decode().rstrip())
        token = said[1].removeprefix("admin token: ")
    address = said[0].removeprefix("serving at ")
    headers = {"Authorization": f"Bearer {token}"}
    try:
        with httpx.Client(base_url=address, headers=headers, timeout=HANGS) as client:
            yield Server(process, client, said)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def with_lab(cli: Cli, *slow: dict[str, object]) -> None:
    """Give the data folder a lab `fake` of scripted hosts."""
    labs = cli.home / "labs"
    labs.mkdir(parents=True)
    lab(cli, *slow)
    text = f"driver: fake\noptions: {{answers: {cli.folder / 'answers.json'}}}\n"
    (labs / "fake.yaml").write_text(text)


def test_the_first_start_shows_the_admins_token_once(cli: Cli) -> None:
    """[A2.2] On standard output, and nowhere else; a later start has none to show."""
    with serving(cli) as server:
        assert re.fullmatch(r"serving at http://127\.0\.0\.1:\d+", server.said[0])
        assert server.client.get("/api/v1/session").json()["role"] == "admin"
        status, err = server.stop(signal.SIGTERM)
    secret = server.said[1].removeprefix("admin token: ")
    assert re.fullmatch(r"od_[0-9a-f]{10}_[A-Za-z0-9_-]{43}", secret)
    assert status == 0
    assert secret not in err
    assert "the admin token is shown this once" in err
    for path in cli.home.rglob("*"):
        assert not path.is_file() or secret.encode() not in path.read_bytes()
    with serving(cli, token=secret) as again:
        assert again.client.get("/api/v1/session").json()["name"] == "admin"
        _, err = again.stop(signal.SIGTERM)
    assert "admin token" not in err


def test_a_token_made_on_the_command_line_is_good_for_a_server_that_runs(cli: Cli) -> None:
    """[A2.4] And one revoked there is no more."""
    with serving(cli) as server:
        secret = cli("token", "create", "ci", "--role", "run", "--expires", "7").stdout.strip()
        headers = {"Authorization": f"Bearer {secret}"}
        assert server.client.get("/api/v1/session", headers=headers).json()["role"] == "run"
        id = secret.split("_")[1]
        assert cli("token", "revoke", id).returncode == 0
        assert server.client.get("/api/v1/session", headers=headers).status_code == 401


def test_tokens_on_the_command_line(cli: Cli) -> None:
    """[A2.1] The secret alone is data; what is said about it is not."""
    made = cli("token", "create", "night \u2603", "--role", "edit")
    assert re.fullmatch(r"od_[0-9a-f]{10}_[A-Za-z0-9_-]{43}\n", made.stdout)
    assert "with the role edit; it is shown this once" in made.stderr
    told = json.loads(cli("token", "create", "a", "--role", "read", "--format", "json").stdout)
    assert told["tokens"][0]["secret"].startswith("od_")
    listed = json.loads(cli("token", "list", "--format", "json").stdout)
    assert [token["name"] for token in listed["tokens"]] == ["night \u2603", "a"]
    assert "secret" not in listed["tokens"][0]
    table = cli("token", "list").stdout
    assert made.stdout.strip() not in table
    assert cli("token", "revoke", "0000000000").stderr == "error: there is no token '0000000000'\n"
    assert cli("token", "revoke", "0000000000").returncode == 2
    bad = cli("token", "create", "\x1b[31m", "--role", "read")
    assert bad.stderr == "error: token: name must have no control characters\n"
    assert cli("token", "create", "a", "--role", "root").returncode == 2


def test_a_store_is_brought_up_to_date_by_itself(cli: Cli) -> None:
    done = cli("db", "upgrade")
    assert re.fullmatch(r"the store is up to date: version v\d{4}\n", done.stdout)


def test_without_the_extra_one_sentence_says_how_to_get_it(cli: Cli) -> None:
    """[A8.4]"""
    hidden = "import sys; sys.modules['uvicorn'] = None; sys.argv = ['opsdrill', 'serve'];"
    done = subprocess.run(
        [sys.executable, "-c", hidden + "from opsdrill.cli.main import main; main()"],
        cwd=cli.folder, env=cli.environment, capture_output=True, text=True, timeout=HANGS,
        check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == (
        "error: `opsdrill serve` needs the module uvicorn, which is not installed\n"
        "hint: install OpsDrill with its extra `serve`: pip install 'opsdrill[serve]'\n"
    )


def test_an_address_that_is_taken_is_told_in_a_sentence(cli: Cli) -> None:
    """[A8.4] And no token was made, that nobody would have seen."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = cli("serve", "--bind", address)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: nothing can listen at {address}: ")
    assert json.loads(cli("token", "list", "--format", "json").stdout)["tokens"] == []


def test_the_log_has_no_control_characters_and_no_tokens(cli: Cli) -> None:
    """[A6.4]"""
    with serving(cli, "--debug") as server:
        server.client.get("/%1b%5b31m/od_0123456789_secret")
        server.client.get("/api/v1/tokens", headers={"Authorization": "Bearer od_0123456789_x"})
        with socket.create_connection(("127.0.0.1", server.client.base_url.port or 0)) as raw:
            raw.sendall(b"\x1b[31m\r\n\r\n")
            raw.recv(100)
        _, err = server.stop(signal.SIGINT)
    assert "\x1b" not in err
    assert " 404 " in err
    assert "od_0123456789" not in err


def test_to_be_reached_by_others_unencrypted_is_warned_of(cli: Cli) -> None:
    """[A8.4]"""
    process = cli.start("serve", "--bind", "0.0.0.0:0")
    assert process.stderr is not None
    assert b"warning: tokens pass the network unencrypted" in process.stderr.readline()
    process.terminate()
    process.communicate(timeout=HANGS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_once_gives_hosts_back_and_ends(cli: Cli, number: signal.Signals) -> None:
    """[A8.1]"""
    with_lab(cli, SLOW["setup"])
    with serving(cli, "--parallel", "1") as server:
        run, waits = server.start("noop", repeat=2)
        server.until(run, "running")
        status, err = server.stop(number)
    assert status == 0
    assert "stopping: hosts are given back first" in err
    assert {row["id"]: row["state"] for row in rows(cli)} == {
        run: "cancelled",
        waits: "cancelled",
    }


def test_twice_ends_at_once(cli: Cli) -> None:
    """[A8.1] What is left is found at the next start."""
    with_lab(cli, SLOW["setup"])
    with serving(cli) as server:
        [run] = server.start("noop")
        server.until(run, "running")
        status, _ = server.stop(signal.SIGINT, times=2)
    assert status in (0, 130)
    assert [row["state"] for row in rows(cli)] in (["cancelled"], ["interrupted"])


def test_a_killed_server_starts_again_and_marks_what_it_left(cli: Cli) -> None:
    """[A8.2] Also what never began."""
    with_lab(cli, SLOW["setup"])
    with serving(cli, "--parallel", "1") as server:
        run, waits = server.start("noop", repeat=2)
        server.until(run, "running")
        server.process.kill()
        server.process.communicate()
    token = server.said[1].removeprefix("admin token: ")
    with serving(cli, token=token) as again:
        for left in (run, waits):
            assert again.until(left, "interrupted", "planned")["state"] == "interrupted"
        again.stop(signal.SIGINT)


def test_a_server_and_a_run_side_by_side(cli: Cli) -> None:
    """[A8.3] Neither takes the other for dead: each sees the other's runs, and leaves them."""
    with_lab(cli, SLOW["setup"])
    with serving(cli) as server:
        [served_run] = server.start("noop")
        server.until(served_run, "running")
        quick = lab(cli)
        done = cli("run", QUEUE, "--lab", quick, "--agent", "noop", "--format", "json")
        assert done.returncode == 0, done.stderr
        assert server.until(served_run, "running", "interrupted")["state"] == "running"
        listed = server.client.get("/api/v1/runs").json()["runs"]
        assert {run["state"] for run in listed} == {"running", "done"}
        answer = server.client.post(f"/api/v1/runs/{served_run}/cancel")
        assert answer.status_code == 200, answer.text
        server.stop(signal.SIGINT)


def test_a_server_starts_beside_a_run(cli: Cli) -> None:
    """[A8.3] A run under way in another process is no run that was left."""
    process = cli.start("run", QUEUE, "--lab", lab(cli, SLOW["setup"]), "--agent", "noop")
    assert process.stderr is not None
    for line in process.stderr:
        if line.endswith(b": setup\n"):
            break
    with serving(cli) as server:
        [row] = server.client.get("/api/v1/runs").json()["runs"]
        assert row["state"] == "running"
        answer = server.client.post(f"/api/v1/runs/{row['id']}/cancel")
        assert answer.status_code == 409, answer.text
        server.stop(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=HANGS)
    assert process.returncode == 130
