"""The text on the command line of a login over SSH, and what the shells behind it read.

Nothing stands between a command's shell and the SSH server: the login's own shell becomes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from opsdrill.hosts.command import (
    BOOT,
    SHELLS,
    Account,
    environment,
    in_a_line,
    limit,
    prefix,
    quote,
)

# The launchers of `SHELLS` for a shell that reads how the text ends and what to set up before it. A
# text without its end was cut off with its connection, and is not run.
_DIRECT = (
    (
        "bash",
        " --norc",
        'read -r l<&3;IFS= read -r l<&3;IFS= read -rd "" BASH_EXECUTION_STRING<&3||exit 127;'
        'exec 3<&-;eval "$l";eval -- "$BASH_EXECUTION_STRING"',
    ),
    (
        "sh",
        "",
        "t= n=${IFS#??};IFS= read -r e<&3;IFS= read -r l<&3;while IFS= read -r m||exit 127;do "
        'case $m in *"$e")t="$t${m%"$e"}$n";break;;esac;t="$t$m$n";done<&3;'
        'exec 3<&-;eval "$l";eval "unset t m e;$t"',
    ),
)


@dataclass(frozen=True, slots=True)
class Login:
    """How a login over SSH is spoken to: by one command line, run by the user's login shell.

    Attributes:
        shell: what that shell is; one that is not POSIX's is only asked to start `sh`.
        sudo: everything is done by way of `sudo -n`.
    """

    shell: Literal["bash", "posix", "other"] = "other"
    sudo: bool = False

    def for_lines(self) -> str:
        """The command line for the lines of `hosts.command`."""
        return self.around(BOOT)

    def for_command(self, account: Account) -> tuple[str, bytes]:
        """The command line for a command, and what its standard input begins with.

        Nothing stays between the command's shell and the SSH server, which tells the exit status.
        What comes next on standard input is made by `direct_input`.
        """
        plain = self.shell == "bash" and not self.sudo and account.become != "su"
        shells = _exec("exec -c " if plain else "exec env -i ", prefix(account))
        text = f"cd {quote(account.home)} 2>/dev/null||cd /;{shells}"
        if account.become == "su":
            su = f"exec su -s /bin/sh -c {quote(BOOT)} {quote(account.name)}"
            return self.for_lines(), f"{su}\n{text}\n".encode()
        if self.sudo or self.shell == "other":
            return self.for_lines(), f"{text}\n".encode()
        return text, b""

    def around(self, text: str) -> str:
        """The command line for one line of text for a POSIX shell."""
        if self.sudo:
            return f"exec sudo -n sh -c {quote(text)}"
        return f"exec sh -c {quote(text)}" if self.shell == "other" else text

    def around_line(self, line: bytes) -> bytes:
        """The same for bytes, which may be any."""
        return self.around(line.decode(errors="surrogatepass")).encode(errors="surrogatepass")


def direct_input(nonce: str, mark: int, account: Account, text: bytes) -> bytes:
    """What a shell started by `Login.for_command` reads: its environment, then the command.

    The text ends with a NUL for bash; other shells do not see it, and look for the nonce after it.
    Once all of it was read, and before the command, the shell writes the nonce and its name on both
    output streams. Arguments as of `hosts.command.run_line`.
    """
    variables = environment(account.name, account.home, "")
    words = " ".join(
        in_a_line(f"{name}={value}") for name, value in variables.items() if name != "SHELL"
    )
    line = (
        f"{nonce}\nn=${{IFS#??}};{limit(mark)};umask 022;export {words} SHELL=${{BASH:-/bin/sh}};"
        f"unset l n;echo {nonce} $0;echo {nonce} $0 >&2\n"
    )
    return line.encode(errors="surrogatepass") + (text or b"\n") + f"\0{nonce}\n".encode()


def _exec(start: str, become: str) -> str:
    tries = [
        f"for p in {' '.join(shell.paths)};do [ -x $p ]&&"
        f"{start}{become}$p{option} -c {quote(launcher)} {name} 3<&0 </dev/null;done;"
        for (name, option, launcher), shell in zip(_DIRECT, SHELLS, strict=True)
    ]
    return f"{''.join(tries)}echo 'no shell can be started' >&2;exit 127"
