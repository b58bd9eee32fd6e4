"""Who logs in with what, and whether it is the right machine."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import asyncssh
import pytest
from tests.integration.sshd import PASSWORD, Machine, Rig, driver_for, host_of, make_key

from opsdrill.errors import DriverUnavailable, ProvisionFailed
from opsdrill.hosts.driver import Finding, Host
from opsdrill.model.host import Command
from opsdrill.model.lab import LabHost
from opsdrill.model.scenario import HostSpec

WEB = [HostSpec(name="web-01")]


async def printed(host: Host, run: str, user: str = "root") -> str:
    answer = await host.run(Command(run=run, user=user, timeout=20))
    assert answer.exit_code == 0, answer
    return answer.stdout


async def findings(entry: LabHost) -> dict[str, Finding]:
    found = await driver_for(web_01=entry).preflight(WEB)
    assert {finding.host for finding in found} == {"web-01"}
    return {finding.what: finding for finding in found}


async def refused(entry: LabHost) -> tuple[str, str]:
    """Why the driver cannot give this host, and what to do; preflight says the same."""
    with pytest.raises(ProvisionFailed) as caught:
        await driver_for(web_01=entry).provision("run", WEB)
    found = (await findings(entry))["connection"]
    assert found.blocks
    assert found.detail in str(caught.value)
    assert found.remedy == caught.value.hint
    return str(caught.value), caught.value.hint or ""


async def test_preflight_of_a_good_machine(machine: Machine) -> None:
    """Reach, login, shell and clock difference, and nothing is missing."""
    found = await findings(machine.lab())
    assert list(found) == ["connection", "login", "shell", "clock"]
    assert all(finding.good for finding in found.values())
    assert found["shell"].detail == "bash"


async def test_password(machine: Machine) -> None:
    """A password from the lab's secrets lets in."""
    async with host_of(machine.lab(key=None, password=PASSWORD)) as host:
        assert await printed(host, "id -un") == "root\n"


async def test_wrong_password(machine: Machine) -> None:
    """The reason names the user and that it was the password; never the password."""
    message, hint = await refused(machine.lab(key=None, password="not-this"))
    assert "login refused" in message
    assert "root" in message
    assert "the password" in message
    assert "not-this" not in message + hint


async def test_locked_key(machine: Machine, rig: Rig, tmp_path: Path) -> None:
    """A key with a passphrase is unlocked by `password`; without it the reason says so."""
    locked = tmp_path / "locked"
    key = asyncssh.read_private_key(str(rig.key))
    locked.write_bytes(key.export_private_key("pkcs8-pem", "pass phrase"))
    async with host_of(machine.lab(key=str(locked), password="pass phrase")) as host:
        assert await printed(host, "id -u") == "0\n"
    message, _ = await refused(machine.lab(key=str(locked)))
    assert str(locked) in message


async def test_key_that_is_refused(machine: Machine, tmp_path: Path) -> None:
    """The reason names the key and the user that were tried."""
    other = make_key(tmp_path / "other")
    message, hint = await refused(machine.lab(key=str(other)))
    assert "login refused" in message
    assert str(other) in message
    assert "authorized_keys" in hint


async def test_key_that_is_not_there(machine: Machine) -> None:
    """A key file that cannot be read is the operator's, and named."""
    message, _ = await refused(machine.lab(key="/nowhere/id"))
    assert "/nowhere/id" in message


@pytest.fixture
def agent(rig: Rig, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    socket = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL)
    while not socket.exists():
        assert process.poll() is None
    monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
    monkeypatch.setenv("HOME", str(tmp_path))
    subprocess.run(["ssh-add", "-q", rig.key], check=True, stderr=subprocess.DEVNULL)
    yield
    process.terminate()
    process.wait()


@pytest.mark.usefixtures("agent")
async def test_agent(machine: Machine) -> None:
    """Without a key in the lab the user's agent is asked."""
    async with host_of(machine.lab(key=None)) as host:
        assert await printed(host, "id -u") == "0\n"


@pytest.fixture
def empty_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    return tmp_path


async def test_unknown_host_key(machine: Machine, empty_home: Path) -> None:
    """A machine that nobody knows is never accepted; the hint is the line to add."""
    message, hint = await refused(machine.lab(known_host=None))
    assert "host key not known" in message
    assert " ".join(machine.host_key.split()[:2]) in hint


async def test_changed_host_key(machine: Machine, rig: Rig) -> None:
    """Both fingerprints are named, and that it may be another machine."""
    other = rig.other_key.with_suffix(".pub").read_text()
    message, _ = await refused(machine.lab(known_host=other))
    assert "host key changed" in message
    for public in (other, machine.host_key):
        shown = subprocess.run(
            ["ssh-keygen", "-lf", "-"], input=public, capture_output=True, text=True, check=True
        )
        assert shown.stdout.split()[1] in message


async def test_known_hosts_of_the_user(machine: Machine, empty_home: Path) -> None:
    """Without `known_host` the user's known_hosts decides, for good and for bad."""
    known = empty_home / ".ssh/known_hosts"
    known.write_text(f"{machine.address} {machine.host_key}")
    async with host_of(machine.lab(known_host=None)) as host:
        assert await printed(host, "id -u") == "0\n"


@pytest.mark.parametrize("form", ["{key}", "# ours\n{key}", "{address} {key}", "other {key}"])
async def test_known_host_as_a_file(machine: Machine, tmp_path: Path, form: str) -> None:
    """`known_host` may be a file: of a public key, or as ssh-keyscan(1) writes it."""
    path = tmp_path / "host.pub"
    path.write_text(form.format(key=machine.host_key, address=machine.address))
    async with host_of(machine.lab(known_host=str(path))) as host:
        assert await printed(host, "id -u") == "0\n"


async def test_known_host_that_is_nothing(machine: Machine) -> None:
    """Neither a key nor a file: said, and nobody is let in."""
    message, _ = await refused(machine.lab(known_host="what is this"))
    assert "known_host" in message


async def test_host_that_the_lab_does_not_have(machine: Machine) -> None:
    """A name that is not in the lab lists those that are."""
    with pytest.raises(DriverUnavailable) as caught:
        await driver_for(db_01=machine.lab()).provision("run", WEB)
    assert "web-01" in str(caught.value)
    assert "db-01" in (caught.value.hint or "")


async def test_sudo(machine: Machine) -> None:
    """`sudo: true`: commands run as root, and as others, and end at their limit all the same."""
    async with host_of(machine.lab(user="deploy", sudo=True)) as host:
        assert await printed(host, "id -un; pwd; echo $HOME") == "root\n/root\n/root\n"
        assert await printed(host, "id -un", user="www-data") == "www-data\n"
        assert await printed(host, "grep -s -- '^root' '/etc/passwd' | head -c 4") == "root"
        for run, status in (("kill -9 $$", 137), ("exit 255", 255), ("exit 1", 1)):
            assert (await host.run(Command(run=run))).exit_code == status
        answer = await host.run(Command(run="setsid sleep 9999 & sleep 9999", timeout=0.5))
        assert answer.timed_out
        assert (await host.run(Command(run="pgrep -f 'sleep 9999'"))).exit_code == 1
        await host.put("/root/file", b"x", mode=0o600)
        assert await host.get("/root/file") == b"x"


async def test_sudo_in_the_background(machine: Machine) -> None:
    """What a command leaves behind lives on under sudo too."""
    async with host_of(machine.lab(user="deploy", sudo=True)) as host:
        await printed(host, "nohup sh -c 'while echo x; do sleep 0.05; done' &")
        await printed(host, "sleep 0.5; pgrep -f 'while echo'")


async def test_sudo_that_asks(machine: Machine) -> None:
    """sudo that wants a password is refused in words, with the line for sudoers."""
    message, hint = await refused(machine.lab(user="plain", sudo=True))
    assert "may not become root" in message
    assert "NOPASSWD" in hint


async def test_without_sudo(machine: Machine) -> None:
    """A login that is not root runs commands as itself and says why not as others."""
    async with host_of(machine.lab(user="plain")) as host:
        assert host.facts.users is False
        out = await printed(host, "id -un; pwd", user="plain")
        assert out == "plain\n/home/plain\n"
        answer = await host.run(Command(run="true"))
        assert answer.unreachable
        assert "sudo: true" in (answer.reason or "")
    assert not (await findings(machine.lab(user="plain")))["login"].good


async def test_bastion(rig: Rig) -> None:
    """`via`: a machine that only the bastion reaches."""
    bastion, inner = rig.machines(["bastion", "web-01"])
    here = rig.address
    inner.enter(f"ip route add blackhole {here}/32")
    entry = inner.lab(via="bastion")
    async with host_of(entry, bastion=bastion.lab(user="plain")) as host:
        assert await printed(host, "hostname") == "web-01\n"


async def test_bastion_that_is_down(rig: Rig) -> None:
    """The reason says which machine on the way does not answer."""
    bastion, inner = rig.machines(["bastion", "web-01"])
    down = bastion.lab(port=23)
    driver = driver_for(web_01=inner.lab(via="bastion"), bastion=down)
    with pytest.raises(ProvisionFailed, match=r"bastion.*refused"):
        await driver.provision("run", WEB)
    driver = driver_for(web_01=inner.lab(via="bastion", port=23), bastion=bastion.lab())
    with pytest.raises(ProvisionFailed, match="bastion cannot reach"):
        await driver.provision("run", WEB)


async def test_bastions_in_a_circle(machine: Machine) -> None:
    """A machine behind itself is refused, not looked for without end."""
    driver = driver_for(web_01=machine.lab(via="b"), b=machine.lab(via="web-01"))
    with pytest.raises(DriverUnavailable, match="through itself"):
        await driver.provision("run", WEB)


async def test_login_shell_of_another_kind(machine: Machine) -> None:
    """A login shell that does not speak like POSIX's is asked for `sh` only."""
    machine.enter(
        "printf '%s\\n' '#!/bin/sh' 'case $2 in \"exec sh -c \"*|\"exec sudo -n sh -c \"*)"
        ' exec /bin/sh -c "$2";; *) echo odd >&2; exit 9;; esac\' > /bin/odd;'
        " chmod 755 /bin/odd; sed -i 's|^root:.*|root:x:0:0::/root:/bin/odd|' /etc/passwd"
    )
    async with host_of(machine.lab()) as host:
        assert await printed(host, "echo \"a 'b' $HOME\"; pwd") == "a 'b' /root\n/root\n"
        assert await printed(host, "id -un", user="www-data") == "www-data\n"


async def test_login_scripts_that_talk(machine: Machine) -> None:
    """What login scripts print, set or change is not the command's."""
    machine.enter(
        "printf '%s\\n' 'echo out' 'echo err >&2' 'export LEAK=1' 'f() { :; }' 'export -f f'"
        " 'cd /tmp' 'umask 077' > /root/.bashrc"
    )
    async with host_of(machine.lab()) as host:
        answer = await host.run(Command(run="pwd; umask; env | grep -c -e LEAK -e FUNC"))
        assert (answer.stdout, answer.stderr) == ("/root\n0022\n0\n", "")


@pytest.mark.parametrize("shell", ["dash", "busybox"])
async def test_host_without_bash(rig: Rig, shell: str) -> None:
    """A host with `sh` alone: the record says so, users and files work."""
    machine = rig.machine(shell="dash" if shell == "dash" else "busybox")
    async with host_of(machine.lab()) as host:
        assert host.facts.shell == "sh"
        answer = await host.run(Command(run="kill -9 $$"))
        assert (answer.exit_code, answer.shell) == (137, "sh")
        assert await printed(host, "id -un", user="www-data") == "www-data\n"
        await host.put("/srv/a b", b"\0\xff", mode=0o640, owner="www-data")
        assert await host.get("/srv/a b") == b"\0\xff"
        assert await printed(host, "stat -c '%a %U' '/srv/a b'") == "640 www-data\n"
        assert (await host.run(Command(run="sleep 9999 & sleep 9999", timeout=0.4))).timed_out
        assert (await host.run(Command(run="ps -ef | grep '[s]leep 9999'"))).exit_code == 1


async def test_su_where_there_is_no_setpriv(machine: Machine) -> None:
    """Another user by `su`, where that is what the host has."""
    machine.enter("rm -f /usr/bin/setpriv")
    async with host_of(machine.lab()) as host:
        out = await printed(host, "id -un; pwd; env | wc -l", user="www-data")
        assert out.startswith("www-data\n/var/www\n")
        for run, status in (("exit 255", 255), ("kill -9 $$", 137)):
            answer = await host.run(Command(run=run, user="www-data"))
            assert answer.exit_code == status
        answer = await host.run(Command(run="sleep 9999", user="www-data", timeout=0.5))
        assert answer.timed_out
        assert not machine.processes("sleep 9999")
