"""`ssh HOST COMMAND` is taken for a command of that host, and nothing else is touched."""

from __future__ import annotations

import getopt
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from opsdrill.evidence.transcripts.imported import Placing
from opsdrill.evidence.transcripts.split_ssh import over_ssh
from opsdrill.evidence.transcripts.transcript import Transcript
from opsdrill.model.job import ToolCall


def _call(command: str, **more: object) -> ToolCall:
    arguments = {"command": command, "description": "d"}
    return ToolCall.model_validate(
        {"kind": "shell", "tool": "bash", "arguments": arguments, "outcome": "ran", **more}
    )


def _split(command: str) -> tuple[str, str] | None:
    host, call = over_ssh(_call(command), None)
    return None if host is None else (host, call.command)


@pytest.mark.parametrize(
    ("command", "host", "inner"),
    [
        ("ssh web-01 uptime", "web-01", "uptime"),
        ("ssh root@web-01 uptime", "web-01", "uptime"),
        ("ssh a@b@web-01 uptime", "web-01", "uptime"),
        ("/usr/bin/ssh web-01 uptime", "web-01", "uptime"),
        ("ssh 10.0.0.7 uptime", "10.0.0.7", "uptime"),
        ("ssh fe80::1%eth0 uptime", "fe80::1%eth0", "uptime"),
        ("ssh ssh://root@web-01:2222 uptime", "web-01", "uptime"),
        ("ssh ssh://web-01/ uptime", "web-01", "uptime"),
        # options, with and without values, apart and together, before and behind the host
        ("ssh -p 22 -i ~root web-01 id", None, ""),
        ("ssh -p 22 -i /k -tt -oBatchMode=yes web-01 id", "web-01", "id"),
        ("ssh -tp22 web-01 id", "web-01", "id"),
        ("ssh -o 'ConnectTimeout 5' -J jump,other -l bob web-01 id", "web-01", "id"),
        ("ssh web-01 -t -p 22 id -u", "web-01", "id -u"),
        ("ssh -- web-01 -t id", "web-01", "-t id"),
        ("ssh web-01 -- ls -la", "web-01", "ls -la"),
        # words are joined by one space after the local shell took the quotes away
        ("ssh web-01 ls   -la", "web-01", "ls -la"),
        ("ssh web-01 'systemctl restart nginx'", "web-01", "systemctl restart nginx"),
        ("ssh web-01 'echo \"$HOME\" | wc'", "web-01", 'echo "$HOME" | wc'),
        ('ssh web-01 "grep \\"a b\\" \\$F"', "web-01", 'grep "a b" $F'),
        ("ssh web-01 bash -c 'rm -rf /x'", "web-01", "bash -c rm -rf /x"),
        ("ssh web-01 a\\ b 'c'\"d\"e", "web-01", "a b cde"),
        ("ssh web-01 $'one\\ntwo\\x41'", "web-01", "one\ntwoA"),
        ("ssh web-01 find / -exec ls {} \\;", "web-01", "find / -exec ls {} ;"),
        ("ssh web-01 \\\n  uptime", "web-01", "uptime"),
        # behind other words
        ("sudo ssh web-01 id", "web-01", "id"),
        ("sudo -n -u deploy ssh web-01 id", "web-01", "id"),
        ("SSH_AUTH_SOCK=/run/a LANG=C ssh web-01 id", "web-01", "id"),
        ("env LANG=C ssh web-01 id", "web-01", "id"),
        ("timeout 10 ssh web-01 id", "web-01", "id"),
        ("timeout --foreground -k 5 1.5m ssh web-01 id", "web-01", "id"),
        ("sudo LANG=C timeout 5s ssh web-01 id", "web-01", "id"),
        # redirections that change nothing elsewhere, comments
        ("ssh web-01 id 2>&1", "web-01", "id"),
        ("ssh web-01 id </dev/null >/dev/null 2>&1", "web-01", "id"),
        ("ssh web-01 id # look", "web-01", "id"),
        # documents
        ("ssh web-01 bash -s <<'EOF'\nls $X\nid\nEOF", "web-01", "ls $X\nid"),
        ("ssh web-01 <<'EOF'\nid\nEOF\n", "web-01", "id"),
        ("ssh web-01 'sudo -n bash -se' << \"E\"\nid\nE", None, ""),
        ('ssh web-01 sudo -n bash -se << "E"\nid\nE', "web-01", "id"),
        ("ssh web-01 sh -s <<EOF\necho \\$X \\\\\nEOF", "web-01", "echo $X \\"),
        ("ssh web-01 bash -s <<-EOF\n\t\tid\n\tEOF", "web-01", "id"),
        ("ssh web-01 bash -s <<< 'id -u'", "web-01", "id -u"),
        # one behind another
        ("ssh jump ssh web-01 id", "web-01", "id"),
        ("ssh jump \"ssh web-01 'echo \\$A'\"", "web-01", "echo $A"),
        # left alone: expansions
        ("ssh $HOST id", None, ""),
        ("ssh web-$N id", None, ""),
        ("ssh `hostname` id", None, ""),
        ("ssh web-01 ls $X", None, ""),
        ('ssh web-01 "ls $X"', None, ""),
        ('ssh web-01 "ls $(date)"', None, ""),
        ("ssh web-01 ls *.log", None, ""),
        ("ssh web-01 ls ~/x", None, ""),
        ("ssh web-01 ls {a,b}", None, ""),
        ("ssh web-0{1,2} id", None, ""),
        ("A=$(id) ssh web-01 id", None, ""),
        ("ssh web-01 bash -s <<EOF\nls $X\nEOF", None, ""),
        ("ssh web-01 bash -s <<EOF\n`id`\nEOF", None, ""),
        ("ssh web-01 bash -s <<EOF\nid \\\nEOF\nEOF", None, ""),
        # left alone: more than one command, or none
        ("ssh web-01", None, ""),
        ("ssh -t web-01", None, ""),
        ("ssh", None, ""),
        ("ssh web-01 ''", None, ""),
        ("ssh web-01 id; ls", None, ""),
        ("ssh web-01 id\nls", None, ""),
        ("ssh web-01 id && ls", None, ""),
        ("ssh web-01 id | head", None, ""),
        ("ssh web-01 id &", None, ""),
        ("ssh web-01 id > out.txt", None, ""),
        ("ssh web-01 id > 5", None, ""),
        ("ssh web-01 ls 2>&1 -la", None, ""),
        ("ssh web-01 cat < in.txt", None, ""),
        ("cat x | ssh web-01 bash", None, ""),
        ("ssh web-01 cat <<EOF\nid\nEOF", None, ""),
        ("ssh web-01 bash -s <<EOF </dev/null\nid\nEOF", None, ""),
        ("ssh web-01 bash -s <<< a <<< b", None, ""),
        ("ssh -n web-01 bash -s <<EOF\nid\nEOF", None, ""),
        ("ssh web-01 bash -s x <<'EOF'\nid\nEOF", None, ""),
        ("(ssh web-01 id)", None, ""),
        ("! ssh web-01 id", None, ""),
        ("for h in a b; do ssh web-01 id; done", None, ""),
        ("ssh web-01 'id", None, ""),
        ("ssh web-01 a\\\n#", None, ""),
        ("ssh web-01 -p\\\n <<EOF\na\nEOF", None, ""),
        ("ssh web-01 $'\\\\'$X'", None, ""),
        # left alone: another machine, another program, no command
        ("ssh -o HostName=db-01 web-01 id", None, ""),
        ("ssh -oProxyCommand=id web-01 id", None, ""),
        ("ssh -o 'remotecommand id' web-01 id", None, ""),
        ("ssh -N web-01 id", None, ""),
        ("ssh -L 1:a:2 web-01 id", None, ""),
        ("ssh -Z web-01 id", None, ""),
        ("ssh -p", None, ""),
        ("ssh ssh://web-01/path id", None, ""),
        ("ssh 'web 01' id", None, ""),
        ("scp a web-01:b", None, ""),
        ("sshpass -p x ssh web-01 id", None, ""),
        ("echo ssh web-01 id", None, ""),
        ("timeout ssh web-01 id", None, ""),
        ("sudo -i ssh web-01 id", None, ""),
        ("uptime", None, ""),
        ("", None, ""),
    ],
)
def test_only_a_command_that_is_one_ssh_is_taken_apart(
    command: str, host: str | None, inner: str
) -> None:
    """Exactly one simple command `ssh [options] [user@]HOST command`; nothing is guessed."""
    assert _split(command) == (None if host is None else (host, inner))


def test_the_command_as_it_was_given_is_kept() -> None:
    """The original text stands under `via`, whatever else the arguments hold."""
    _, call = over_ssh(_call("ssh jump ssh web-01 id"), "bastion")
    assert call.arguments == {
        "command": "id",
        "description": "d",
        "via": "ssh jump ssh web-01 id",
    }


def test_a_connection_that_failed_is_no_command_of_that_host() -> None:
    """ssh ends with 255 where it could not connect; the command may never have run."""
    call = _call("ssh web-01 id", exit_code=255)
    assert over_ssh(call, "bastion") == ("bastion", call)


def test_a_huge_command_is_left_alone() -> None:
    """What is parsed is bounded."""
    assert _split("ssh web-01 echo " + "x" * 300_000) is None
    assert _split("ssh web-01 " + "(" * 5_000) is None
    assert _split("ssh web-01 '" + "$(" * 5_000 + "'") is not None


def test_a_task_for_each_host() -> None:
    """With split_ssh a transcript becomes one task for each host; without it one."""

    def tasks(split: bool) -> list[tuple[str, list[str]]]:
        told = Transcript("codex", "Codex", Placing("bastion", split_ssh=split))
        for id, command in (("1", "ssh web-01 id"), ("2", "uptime"), ("3", "ssh web-02 id")):
            told.main.call(id, "shell", "bash", {"command": command})
            told.main.returned(id)
        record = told.imported().record
        return [(task.host, [call.command for call in task.tool_calls]) for task in record.tasks]

    assert tasks(False) == [("bastion", ["ssh web-01 id", "uptime", "ssh web-02 id"])]
    assert tasks(True) == [("bastion", ["uptime"]), ("web-01", ["id"]), ("web-02", ["id"])]


@settings(deadline=None)
@given(st.text() | st.text(alphabet="ssh '\"\\$`<>&|;\n-@:/{}EOF0").map("ssh ".__add__))
def test_no_text_is_too_strange(command: str) -> None:
    """Nothing crashes, and what is not taken apart is the same call."""
    call = _call(command)
    host, after = over_ssh(call, None)
    assert after is call if host is None else after.command.strip()


@given(st.text())
def test_text_without_ssh_is_unchanged(command: str) -> None:
    """Text without ssh is unchanged."""
    assume("ssh" not in command)
    call = _call(command)
    assert over_ssh(call, "web-01") == ("web-01", call)


OPENSSH_OPTIONS = "1246ab:c:e:fgi:kl:m:no:p:qstvxAB:CD:E:F:GI:J:KL:MNO:P:Q:R:S:TVw:W:XYy"
"""Those of OpenSSH 9, as its `ssh.c` gives them to getopt."""
_PLAIN = [
    *("a", "x", "é", "-n", "--", "1", "b c", " ", "'a b'", '"c d"', "\\$X", "'$X'", "\\'", "=")
]
_STRANGE = [
    *(
        "\n",
        "\\\n",
        "%",
        ",",
        "'",
        '"',
        "\\",
        "\\\\",
        "\\t",
        "$'",
        "$X",
        '"$X"',
        "~",
        "*",
        "[",
        "{",
        "}",
    ),
    *("#", ";", "&", "|", ">", "<", "!", "(", ")", "2>&1", ">/dev/null", "-p"),
]
_WORDS = st.lists(st.sampled_from(_PLAIN * 3 + _STRANGE), max_size=6).map("".join)
_TAILS = st.sampled_from(
    ["", "", "", " bash -s <<'EOF'\n{}\nEOF", " <<EOF\n{}\nEOF", " sh -s <<-\\EOF\n\t{}\n\tEOF"]
)
_HEADS = st.sampled_from(
    ["ssh ", "A=b ssh ", "timeout 5 ssh ", "env A=b ssh ", "ssh -p 1 ", "ssh -tt -oA=b "]
)


@pytest.fixture(scope="module")
def recording_ssh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an `ssh` that writes down what it was given."""
    folder = tmp_path_factory.mktemp("bin")
    program = folder / "ssh"
    program.write_text(
        f"#!{shutil.which('python3')}\n"
        "import json, os, sys\n"
        "said = {'words': sys.argv[1:], 'stdin': sys.stdin.read()}\n"
        "with open(os.environ['SAID'], 'a') as out: out.write(json.dumps(said) + '\\n')\n"
    )
    program.chmod(0o755)
    return folder


@settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(head=_HEADS, words=_WORDS, tail=_TAILS, inside=_WORDS)
def test_the_shell_agrees(
    recording_ssh: Path, tmp_path: Path, head: str, words: str, tail: str, inside: str
) -> None:
    """What is taken apart is what bash hands to ssh, word for word and document for document."""
    command = f"{head}web-01 {words}{tail.format(inside)}"
    found = _split(command)
    assume(found is not None and found[0] == "web-01")
    assert found is not None
    said = tmp_path / "said"
    said.unlink(missing_ok=True)
    environment = {"PATH": f"{recording_ssh}:{os.environ['PATH']}", "SAID": str(said), "X": "!x"}
    subprocess.run(
        ["bash", "-c", command], env=environment, cwd=recording_ssh, stdin=subprocess.DEVNULL,
        capture_output=True, timeout=30, check=False,
    )  # fmt: skip
    runs = [json.loads(line) for line in said.read_text().splitlines()]
    assert len(runs) == 1
    given_words = runs[0]["words"]
    rest = given_words[given_words.index("web-01") + 1 :]
    rest = getopt.getopt(rest, OPENSSH_OPTIONS)[1]
    assert found[1] in (" ".join(rest), runs[0]["stdin"].removesuffix("\n"))


@pytest.mark.skipif(shutil.which("ssh") is None, reason="no ssh on this machine")
@pytest.mark.parametrize(
    "words",
    [
        ["web-01", "id"],
        ["-p", "22", "-l", "bob", "web-01", "id"],
        ["-oBatchMode=yes", "-tt", "bob@web-01", "-v", "id"],
        ["--", "a@b@web-01", "id"],
        ["ssh://bob@web-01:2222", "id"],
        ["-4Cp22", "web-01", "--", "id"],
        ["-E/dev/null", "-S", "none", "-J", "jump", "web-01", "id"],
    ],
)
def test_openssh_agrees_on_the_host(words: list[str]) -> None:
    """The host is the one that OpenSSH would connect to."""
    shown = subprocess.run(
        ["ssh", "-G", "-F", "none", *words], capture_output=True, text=True, check=True, timeout=30
    ).stdout
    host = next(line.split()[1] for line in shown.splitlines() if line.startswith("hostname "))
    assert _split(" ".join(["ssh", *words])) == (host, " ".join(words[words.index("id") :]))
