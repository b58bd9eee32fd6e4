"""Masking two thousand secrets in a log, beside a `str.replace` for each of them in the same run.

The peer knows each value as it is and nothing else; the mask also knows it quoted, escaped and
encoded, and the shapes of tokens. Prints seconds for both, and for twice the text. Fails when the
mask is not at least ten times the peer, when either leaves a secret, or when twice the text takes
more than three times as long. Usage: `python benchmarks/mask.py [MEGABYTES]`.
"""

from __future__ import annotations

import random
import string
import sys
import time
from collections.abc import Sequence

from opsdrill.evidence.mask import Mask

SECRETS = 2000
EVERY = 200
"""Lines from one secret to the next."""
LINE = "Jan 31 12:00:{:02} web-01 sshd[{}]: Accepted publickey for root from 10.0.0.{} port {}\n"
ROUNDS = 3


def secrets(chance: random.Random) -> list[tuple[str, str]]:
    letters = string.ascii_letters + string.digits + "-_.!"
    return [
        (f"SECRET_{number}", "".join(chance.choices(letters, k=chance.randint(12, 40))))
        for number in range(SECRETS)
    ]


def log(chance: random.Random, known: Sequence[tuple[str, str]], size: int) -> str:
    parts: list[str] = []
    length = 0
    while length < size:
        line = LINE.format(*(chance.randrange(60) for _ in range(4)))
        if len(parts) % EVERY == 0:
            line = f"login with {chance.choice(known)[1]}\n"
        parts.append(line)
        length += len(line)
    return "".join(parts)


def plainly(text: str, known: Sequence[tuple[str, str]]) -> str:
    for name, value in sorted(known, key=lambda item: -len(item[1])):
        text = text.replace(value, f"[masked:{name}]")
    return text


def seconds(text: str, mask: Mask) -> float:
    """The median of some rounds."""
    took = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        mask.text(text)
        took.append(time.perf_counter() - begin)
    return sorted(took)[ROUNDS // 2]


def main() -> int:
    size = int(float(sys.argv[1]) * 1e6) if len(sys.argv) > 1 else 5_000_000
    chance = random.Random(2601)
    known = secrets(chance)
    begin = time.perf_counter()
    mask = Mask(known)
    mask.text(known[0][1])
    made = time.perf_counter() - begin
    text = log(chance, known, size)
    begin = time.perf_counter()
    expected = plainly(text, known)
    peer = time.perf_counter() - begin
    ours, twice = seconds(text, mask), seconds(text + text, mask)
    print(f"{SECRETS} secrets, {size / 1e6:g} MB, made in {made:.2f} s")
    print(f"str.replace {peer:.2f} s, mask {ours:.2f} s, ratio {peer / ours:.1f}")
    print(f"twice the text {twice:.2f} s, {twice / ours:.2f} times as long")
    masked = mask.text(text)
    if masked != expected or any(value in masked for _, value in known):
        print("the mask left a secret, or took something else for one")
        return 1
    return 0 if peer / ours >= 10 and twice / ours <= 3 else 1


if __name__ == "__main__":
    sys.exit(main())
