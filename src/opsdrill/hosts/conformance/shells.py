"""The shell of a command: which it is, who it runs as, and what it finds around itself."""

from __future__ import annotations

from opsdrill.hosts.conformance.asking import (
    FOLDER,
    expect,
    expect_equal,
    expect_printed,
    expect_status,
    other_user,
    outcome,
    printed,
    ran,
)
from opsdrill.hosts.conformance.check import on_host
from opsdrill.hosts.driver import Host
from opsdrill.model.host import Command

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@on_host()
async def bash_or_else_sh(host: Host) -> None:
    """Commands are run by bash where the host has it, else by sh; answer and facts say which."""
    answer = await ran(host, 'printf %s "${BASH_VERSION:+bash}"')
    expect_equal(answer.shell, host.facts.shell, "the shell that the answer names")
    expect(answer.shell in ("bash", "sh"), f"the shell is called {answer.shell!r}")
    expect_equal(answer.stdout, "bash" if answer.shell == "bash" else "", "what the shell is")
    has_bash = (await ran(host, "[ -x /bin/bash ] || [ -x /usr/bin/bash ]")).exit_code == 0
    expect_equal(answer.shell, "bash" if has_bash else "sh", "the shell")


@on_host()
async def nothing_is_carried_over(host: Host) -> None:
    """Each command has a shell of its own, and finds no folder, variable or option of another."""
    await ran(host, "cd /tmp; word=1; export OTHER=2; set -f; umask 077; alias echo=false")
    out = await printed(host, 'echo "$PWD:$word:$OTHER:$(umask)"; case $- in *f*) echo f ;; esac')
    expect_equal(out, "/root:::0022\n", "what the next command finds")


@on_host("throw-away")
async def profiles_are_not_read(host: Host) -> None:
    """A shell is no login shell: what stands in profiles and bashrc files is not run."""
    await host.put("/etc/profile", b"echo profile\n")
    await host.put("/root/.bashrc", b"echo bashrc\n")
    await host.put("/root/.profile", b"echo dot-profile\n")
    await expect_printed(host, "echo x", "x\n")


@on_host()
async def not_interactive(host: Host) -> None:
    """A shell is neither a login shell nor interactive, and has no arguments."""
    await expect_printed(host, 'case $0 in -*) echo login ;; esac; echo "$# $*"', "0 \n")
    await expect_printed(host, "case $- in *[im]*) echo $- ;; esac", "")


@on_host()
async def no_pipefail(host: Host) -> None:
    """A pipe ends as its last command did, whatever the others did."""
    await expect_status(host, "false | true", 0)
    await expect_status(host, "true | false", 1)


@on_host()
async def unknown_option_is_visible(host: Host) -> None:
    """An option that the host's shell does not have is a failure with the shell's own words."""
    answer = await ran(host, "sh -c 'set -o nosuchoption; echo on'")
    expect(answer.exit_code != 0, "the status is 0")
    expect("nosuchoption" in answer.stderr, f"standard error is {answer.stderr!r}")


@on_host()
async def root_in_its_home(host: Host) -> None:
    """A command runs as root in root's home, unless somebody says otherwise."""
    await expect_printed(host, "id -u; id -g; pwd", "0\n0\n/root\n")


@on_host("users")
async def other_users(host: Host) -> None:
    """As another user a command has that user's numbers, groups, home and variables."""
    name, home = await other_user(host)
    await expect_printed(host, "id -un; id -Gn", f"{name}\n{name}\n", user=name)
    asked = "echo $HOME $USER $LOGNAME; pwd"
    folder = (await ran(host, f"cd {home} && pwd", user=name)).stdout.strip() or "/"
    await expect_printed(host, asked, f"{home} {name} {name}\n{folder}\n", user=name)


@on_host("users")
async def other_users_have_no_more_rights(host: Host) -> None:
    """A command of another user cannot write what is root's, nor become root."""
    name, _ = await other_user(host)
    await host.put(f"{FOLDER}/file", b"x")
    writes = f"(echo y > {FOLDER}/file) 2>/dev/null && exit 1; exit 0"
    await expect_status(host, writes, 0, user=name)
    await expect_printed(host, f"cat {FOLDER}/file", "x")
    lines = await printed(host, "grep -e ^CapEff -e ^Uid /proc/self/status", user=name)
    words = lines.split()
    expect("0" not in words and int(words[-1], 16) == 0, f"its rights are {' '.join(words)}")


@on_host()
async def unknown_user_is_no_status(host: Host) -> None:
    """For a user that the host does not have there is no status, and the reason names the user."""
    for user in ("nosuchuser", "-x", "no such", "$(id -un)"):
        answer = await host.run(Command(run="true", user=user))
        expect(answer.unreachable is True, f"as {user}: {outcome(answer)}")
        expect(user in (answer.reason or ""), f"as {user}: the reason is {answer.reason!r}")


@on_host()
async def environment_is_exact(host: Host) -> None:
    """The environment is PATH, HOME, USER, LOGNAME, SHELL, LANG and TERM, and nothing further."""
    lines = (await printed(host, "env")).splitlines()
    found = dict(line.partition("=")[::2] for line in lines)
    for own in ("PWD", "OLDPWD", "SHLVL", "_"):
        found.pop(own, None)
    shell = found.pop("SHELL", "")
    expect(shell.startswith("/") and shell.endswith("sh"), f"SHELL is {shell!r}")
    expected = {
        "PATH": PATH,
        "HOME": "/root",
        "USER": "root",
        "LOGNAME": "root",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
    }
    expect_equal(found, expected, "the environment")


@on_host()
async def no_variable_of_ours(host: Host) -> None:
    """Handing the text over leaves no variable in the shell that a command could stumble on."""
    names = "$l$t$n$m$p$q$r$s$u$x"
    out = await printed(host, f"set | grep -i -e '[o]psdrill' -e '[n]once'; echo \"{names}\"")
    expect_equal(out, "\n", "what is left")


@on_host()
async def umask_is_022(host: Host) -> None:
    """Files that a command makes can be read by all and written by their owner."""
    await expect_printed(host, f"umask; cd {FOLDER}; >f; stat -c %a f", "0022\n644\n")


@on_host()
async def standard_input_is_empty(host: Host) -> None:
    """Standard input is empty: whatever reads it comes to its end at once."""
    await expect_printed(host, "cat; read x || echo end; wc -c", "end\n0\n")


@on_host()
async def no_terminal(host: Host) -> None:
    """There is no terminal to ask a question on: a program that tries goes on at once."""
    await expect_printed(host, "(read x </dev/tty) 2>/dev/null && echo asked; :", "")
    await expect_printed(host, "for n in 0 1 2; do test -t $n && echo $n; done; :", "")


@on_host()
async def no_other_descriptor(host: Host) -> None:
    """Nothing is open in a command but the three standard descriptors."""
    await expect_printed(host, "ls /proc/self/fd | wc -l", "4\n")


@on_host()
async def no_signal_is_ignored(host: Host) -> None:
    """Signals do what they do anywhere: none is ignored or blocked, and a broken pipe ends who
    writes to it."""
    out = await printed(host, "grep -e ^SigIgn -e ^SigBlk /proc/self/status")
    expect(not any(int(word, 16) for word in out.split()[1::2]), f"seen: {' '.join(out.split())}")
    answer = await expect_status(host, "yes | head -n 1", 0)
    expect_equal(answer.stderr, "", "what is said on standard error")


@on_host(programs=("pgrep",))
async def pgrep_does_not_find_its_shell(host: Host) -> None:
    """The text stands on no command line, so looking for a name does not find who looks."""
    await expect_status(host, "pgrep -f badlog.py", 1)
    await expect_status(host, "pgrep -f badlog.py && echo found; test $? = 1", 0)


@on_host("throw-away", programs=("pgrep",))
async def pgrep_does_not_find_us(host: Host) -> None:
    """On a host nobody touched nothing of OpsDrill's is found among the processes."""
    for word in ("python", "opsdrill", "sandbox"):
        await expect_status(host, f"pgrep -f {word}", 1)


@on_host()
async def text_is_on_no_command_line(host: Host) -> None:
    """No process there has the text of a running command on its command line."""
    await expect_status(host, ": marked-word; ! grep -ls 'marked-[w]ord' /proc/[0-9]*/cmdline", 0)
