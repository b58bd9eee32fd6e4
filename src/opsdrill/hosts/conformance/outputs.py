"""Output: two streams, bounded, whatever is in them."""

from __future__ import annotations

from opsdrill.hosts.conformance.asking import (
    FOLDER,
    expect,
    expect_equal,
    expect_printed,
    expect_status,
    outcome,
    printed,
    ran,
)
from opsdrill.hosts.conformance.check import on_host
from opsdrill.hosts.driver import Host
from opsdrill.model.host import OUTPUT_LIMIT, Command

_REPLACED = "\ufffd"


@on_host(scripted=True)
async def streams_apart(host: Host) -> None:
    """Standard output and standard error are two things."""
    answer = await host.run(Command(run="echo out; echo err >&2"))
    seen = (answer.exit_code, answer.stdout, answer.stderr)
    expect_equal(seen, (0, "out\n", "err\n"), "status, output and error")


@on_host(scripted=True)
async def past_the_limit(host: Host) -> None:
    """Of a stream one MiB is kept; more is read and dropped, and the full size is told."""
    answer = await host.run(Command(run="head -c 3000000 /dev/zero | tr '\\0' x"))
    expect(answer.exit_code == 0, outcome(answer))
    expect(answer.truncated, "it is not marked as cut")
    expect(answer.stdout == "x" * OUTPUT_LIMIT, f"{len(answer.stdout)} characters are kept")
    expect_equal(answer.stdout_bytes, 3_000_000, "the full size")


@on_host()
async def error_past_the_limit(host: Host) -> None:
    """The bound holds for standard error by itself, and leaves a short standard output whole."""
    answer = await ran(host, "echo whole; head -c 2000000 /dev/zero | tr '\\0' e >&2")
    expect(answer.stderr == "e" * OUTPUT_LIMIT, f"{len(answer.stderr)} characters are kept")
    expect_equal((answer.stdout, answer.stdout_bytes), ("whole\n", None), "standard output")
    expect_equal(answer.stderr_bytes, 2_000_000, "the full size")


@on_host()
async def at_the_limit(host: Host) -> None:
    """Output of exactly one MiB is whole and not marked; one byte more is cut."""
    answer = await ran(host, f"head -c {OUTPUT_LIMIT} /dev/zero | tr '\\0' x")
    expect_equal(len(answer.stdout), OUTPUT_LIMIT, "what is kept")
    expect(not answer.truncated, "it is marked as cut")
    answer = await ran(host, f"head -c {OUTPUT_LIMIT + 1} /dev/zero | tr '\\0' x")
    expect_equal(len(answer.stdout), OUTPUT_LIMIT, "what is kept of one byte more")
    expect_equal(answer.stdout_bytes, OUTPUT_LIMIT + 1, "the full size of one byte more")


@on_host(seconds=180)
async def ten_megabytes_on_both(host: Host) -> None:
    """Ten megabytes on both streams at once do not block, and both sizes are told."""
    error = "(head -c 10000000 /dev/zero | tr '\\0' e >&2)"
    output = "head -c 10000000 /dev/zero | tr '\\0' o"
    answer = await ran(host, f"{error} & {output}; wait", seconds=120)
    seen = (answer.exit_code, answer.stdout_bytes, answer.stderr_bytes)
    expect_equal(seen, (0, 10_000_000, 10_000_000), "status and sizes")
    expect(set(answer.stdout) == {"o"}, "standard output has something else in it")
    expect(set(answer.stderr) == {"e"}, "standard error has something else in it")


@on_host()
async def invalid_bytes(host: Host) -> None:
    """Bytes that are no UTF-8 are replaced, on both streams, and everything else is kept."""
    answer = await expect_status(host, r"printf '\355\240\200\377 OK\0end'; printf 'a\200b' >&2", 0)
    expect(answer.stdout.endswith(" OK\0end"), f"standard output is {answer.stdout!r}")
    expect(_REPLACED in answer.stdout, f"standard output is {answer.stdout!r}")
    expect_equal(answer.stderr, f"a{_REPLACED}b", "standard error")


@on_host()
async def invalid_bytes_in_names(host: Host) -> None:
    """A file whose name is no UTF-8 can be made, listed and removed."""
    await expect_status(host, f"cd {FOLDER}; >\"$(printf 'a\\377b')\"", 0)
    out = await printed(host, f"ls {FOLDER} | cat")
    expect("a" in out and "b" in out and len(out) < 20, f"it is listed as {out!r}")
    await expect_printed(host, f"cd {FOLDER}; rm *; ls", "")


@on_host()
async def control_characters(host: Host) -> None:
    """Escape sequences, NULs and tabs come back as they were printed."""
    await expect_printed(host, r"printf 'a\033[31mb\0c\td\007'", "a\x1b[31mb\0c\td\x07")


@on_host()
async def line_ends_are_kept(host: Host) -> None:
    """A last line without a line break stays one, blank lines stay, and nothing is nothing."""
    await expect_printed(host, "printf 'a\\nb'", "a\nb")
    await expect_printed(host, "printf '\\n a \\n\\n'", "\n a \n\n")
    await expect_printed(host, ":", "")


@on_host()
async def closed_streams(host: Host) -> None:
    """A command that closes its own streams still has its status."""
    await expect_status(host, "exec >&- 2>&-; exit 4", 4)
    await expect_status(host, "exec <&- >&- 2>&-; sleep 0.2; exit 6", 6)
