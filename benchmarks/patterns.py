"""Searching as grading does it, beside a plain `re` loop over the same values in the same run.

Twenty patterns over 50,000 commands, each value apart. Prints both times and their ratio for
every pattern, checks that both found the same, and fails when the whole is slower than plain
`re`. Usage: `python benchmarks/patterns.py [COMMANDS]`.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Sequence

from opsdrill.patterns import BoundedSearcher, Pattern, Span, compile_pattern

PATTERNS = (
    r"\b(reboot|shutdown|poweroff)\b",
    r"journalctl|/var/log/nginx",
    r"rm\s+-[a-z]*r[a-z]*f",
    r"systemctl\s+(restart|reload)\s+nginx",
    r"^\s*(sudo\s+)?(apt|apt-get|dnf|yum)\s+(-\S+\s+)*install\b",
    r"chmod\s+(-R\s+)?0?777",
    r"\bmkfs(\.\w+)?\b",
    r"dd\s+.*of=/dev/",
    r"nginx\s+-t",
    r"curl\s+.*https?://[^ ]+",
    r"/etc/(passwd|shadow|sudoers)",
    r"kill\s+-9\s+\d+",
    r">\s*/var/log/",
    r"\bdocker\s+(rm|kill|stop)\b",
    r"iptables\s+-F",
    r"crontab\s+-r",
    r"history\s+-c$",
    r"userdel|groupdel",
    r"tail\s+(-n\s*\d+\s+)?/var/log/\S+\.log",
    r"DROP\s+(TABLE|DATABASE)",
)
COMMANDS = (
    "systemctl status nginx",
    "sudo systemctl restart nginx && systemctl is-active nginx",
    "journalctl -u nginx -n 50 --no-pager",
    "tail -n 100 /var/log/nginx/error.log | grep -i emerg",
    "ps aux --sort=-%mem | head -n 15",
    "df -h / /var /tmp; du -xsh /var/* 2>/dev/null | sort -h",
    "cat /etc/nginx/sites-enabled/default",
    "ss -ltnp | grep -E ':(80|443)'",
    "cat > /etc/app.conf <<'EOF'\nport = 8080\nhost = web-01\nEOF\n",
    "find /srv -name '*.log' -mtime +7 -size +10M -print",
    "grep -rn 'worker_connections' /etc/nginx | sed 's/:.*//'",
    "echo 'Größe prüfen' && ls -la /var/lib/app",
)


def commands(count: int) -> tuple[str, ...]:
    chance = random.Random(2501)
    return tuple(f"{chance.choice(COMMANDS)} # {chance.randrange(10**6)}" for _ in range(count))


def plain(text: str, values: Sequence[str]) -> tuple[Span | None, ...]:
    pattern = re.compile(text, re.IGNORECASE)
    return tuple(found.span() if (found := pattern.search(value)) else None for value in values)


def main() -> int:
    values = commands(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
    total_plain = total_ours = 0.0
    print(f"{len(values)} commands; milliseconds with plain re, with OpsDrill, ratio")
    with BoundedSearcher() as searcher:
        searcher.search(Pattern("(?=a)"), ["a"])  # the search process is up
        for text in PATTERNS:
            begin = time.perf_counter()
            expected = plain(text, values)
            middle = time.perf_counter()
            searched = searcher.search(compile_pattern(text), values)
            end = time.perf_counter()
            if searched.spans != expected or searched.exhausted:
                print(f"different: {text}")
                return 1
            total_plain += middle - begin
            total_ours += end - middle
            print(_row(text, middle - begin, end - middle))
    print(_row("all", total_plain, total_ours))
    return 0 if total_ours <= total_plain else 1


def _row(name: str, plain_seconds: float, our_seconds: float) -> str:
    ratio = plain_seconds / our_seconds
    return f"{plain_seconds * 1000:8.1f} {our_seconds * 1000:8.1f} {ratio:7.1f}  {name}"


if __name__ == "__main__":
    sys.exit(main())
