"""The search process: Python's own `re`, alone in a process that the kernel can end.

Started by `search_process` as a script, with nothing but the standard library. It reads requests
from standard input and writes replies to standard output until the input ends.

    request:  header (pattern bytes, values, bytes of all values), the pattern,
              the length of each value in bytes, the values
    reply:    number of values searched, CPU seconds used, then per value start and end
              (-1, -1: no match; -2, -2: out of memory)

Texts are UTF-8 that lets lone surrogates pass. The kernel ends the process by SIGPROF when a
request takes more CPU seconds than the budget.
"""

import re
import resource
import signal
import struct
import sys
import time
import warnings

HEADER = struct.Struct("=QQQ")
DONE = struct.Struct("=Qd")
NO_MATCH = (-1, -1)
NO_MEMORY = (-2, -2)


def _read(size: int) -> bytes:
    data = sys.stdin.buffer.read(size)
    if len(data) < size:
        raise SystemExit(0)
    return data


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _search(pattern: "re.Pattern[str]", value: str) -> tuple[int, int]:
    try:
        found = pattern.search(value)
    except MemoryError:
        return NO_MEMORY
    return found.span() if found else NO_MATCH


def _serve(seconds: float) -> None:
    size, count, total = HEADER.unpack(_read(HEADER.size))
    pattern_text = _text(_read(size))
    lengths = struct.unpack(f"={count}Q", _read(8 * count))
    data = memoryview(_read(total))
    begin, begin_cpu = time.perf_counter(), time.process_time()
    signal.setitimer(signal.ITIMER_PROF, seconds)
    pattern = re.compile(pattern_text, re.IGNORECASE)
    spans: list[int] = []
    offset = done = 0
    for length in lengths:
        try:
            spans += _search(pattern, str(data[offset : offset + length], "utf-8", "surrogatepass"))
        except MemoryError:
            spans += NO_MEMORY
        offset += length
        done += 1
        # Stop early rather than let one value pay for those before it.
        if time.perf_counter() - begin > seconds / 4:
            break
    signal.setitimer(signal.ITIMER_PROF, 0)
    used = time.process_time() - begin_cpu
    sys.stdout.buffer.write(DONE.pack(done, used) + struct.pack(f"={len(spans)}q", *spans))
    sys.stdout.buffer.flush()


def main() -> None:
    seconds, memory = float(sys.argv[1]), int(sys.argv[2])
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGPROF])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us decides
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard != resource.RLIM_INFINITY:
        memory = min(memory, hard)
    resource.setrlimit(resource.RLIMIT_AS, (memory, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    warnings.simplefilter("ignore")
    while True:
        _serve(seconds)


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:
        sys.stdout = None  # nobody reads any more; say nothing at exit either
