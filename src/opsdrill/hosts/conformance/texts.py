"""The text of a command: it arrives as it was written."""

from __future__ import annotations

from collections.abc import Mapping

from opsdrill.hosts.conformance.asking import (
    FOLDER,
    expect,
    expect_equal,
    expect_printed,
    expect_status,
    outcome,
    printed,
)
from opsdrill.hosts.conformance.check import on_host
from opsdrill.hosts.driver import Host
from opsdrill.model.host import Command


async def _each(host: Host, cases: Mapping[str, str]) -> None:
    for run, expected in cases.items():
        await expect_printed(host, run, expected)


@on_host()
async def quotes(host: Host) -> None:
    """Quotes of both kinds, within each other too, mean what they mean in a script."""
    file = f"{FOLDER}/it's a file"
    cases = {
        "echo 'a\"b'": 'a"b\n',
        'echo "it\'s"': "it's\n",
        f"touch \"{file}\"; ls '{FOLDER}/it'\\''s a file'": f"{file}\n",
        'sh -c "echo \'a \\"b\\" c\'"': 'a "b" c\n',
    }
    await _each(host, cases)


@on_host()
async def special_characters(host: Host) -> None:
    """Nothing is expanded on the way: dollars, backslashes, globs, braces, percents, marks."""
    cases = {
        r"printf '%s' 'a\nb'": r"a\nb",
        "x='$HOME'; echo \"$x\"": "$HOME\n",
        "echo '*' \"{a,b}\"": "* {a,b}\n",
        "printf '%s' '!! %s'": "!! %s",
        "echo '`id`' '$(id)' '~' '&' ';'": "`id` $(id) ~ & ;\n",
        "printf '%s' 'a\tb'": "a\tb",
    }
    await _each(host, cases)


@on_host()
async def line_breaks(host: Host) -> None:
    """Line breaks separate commands, blank lines and comments are nothing."""
    cases = {
        "echo a\necho b\n": "a\nb\n",
        "\n\n  echo a": "a\n",
        "echo a # end": "a\n",
        "#!/bin/sh\necho a": "a\n",
        "if true\nthen\n  echo a\nfi": "a\n",
        "echo a \\\n  b": "a b\n",
    }
    await _each(host, cases)


@on_host()
async def no_final_newline(host: Host) -> None:
    """A line break that is missing at the end changes nothing, nor do many of them."""
    cases = {"echo a": "a\n", "echo a\n": "a\n", "echo a\n\n\n": "a\n", "printf a": "a"}
    await _each(host, cases)


@on_host()
async def here_documents(host: Host) -> None:
    """Here-documents arrive whole, with and without quotes, and without a last line break."""
    cases = {
        "cat <<X\na $USER\nX\n": "a root\n",
        "cat <<'X'\na $USER\nX": "a $USER\n",
        "cat <<-X\n\ta\n\tX\necho b": "a\nb\n",
        "cat <<A; cat <<'B'\n1\nA\n2 'x\nB\n": "1\n2 'x\n",
    }
    await _each(host, cases)


@on_host()
async def unicode(host: Host) -> None:
    """Any Unicode arrives and comes back as it was."""
    for text in ("héllo 日本 🎉", "e\u0301 \u202e\u200b \u00a0", "\U0010ffff\ufffd"):
        await expect_printed(host, f"echo '{text}'", f"{text}\n")


@on_host()
async def carriage_returns(host: Host) -> None:
    """Carriage returns are neither taken out nor put in, on the way there or back."""
    await expect_printed(host, r"printf 'a\r\nb\r\n'", "a\r\nb\r\n")
    await expect_printed(host, "printf '%s' 'a\r\nb'", "a\r\nb")


@on_host()
async def dashes_first(host: Host) -> None:
    """A text that begins like an option, or like anything else, is still a text."""
    await expect_printed(host, "-n 2>/dev/null; echo a", "a\n")
    await expect_status(host, "-c 'exit 5'", 127)
    await expect_printed(host, "+x 2>/dev/null; echo a", "a\n")


@on_host()
async def empty_text(host: Host) -> None:
    """A text in which nothing is asked succeeds and prints nothing."""
    for run in ("", " ", "\n", "# nothing", ":"):
        answer = await expect_status(host, run, 0)
        expect_equal((answer.stdout, answer.stderr), ("", ""), f"what {run!r} prints")


@on_host()
async def long_text(host: Host) -> None:
    """A text far longer than a command line may be arrives whole."""
    await expect_printed(host, "x=" + "y" * 300_000 + "; echo ${#x}", "300000\n")


@on_host()
async def nul_is_not_run(host: Host) -> None:
    """A text that no shell can take as written is not run in part; there is no status."""
    answer = await host.run(Command(run=f"touch {FOLDER}/half; true\0; false"))
    expect(answer.exit_code is None, outcome(answer))
    expect("NUL" in (answer.reason or ""), f"the reason is {answer.reason!r}")
    expect_equal(await printed(host, f"ls {FOLDER}"), "", "what was run of it")
