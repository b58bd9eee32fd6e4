"""OD021: an unescaped dot in an address, a host, a path or a file's name.

`10.0.0.1` also matches `10x0.0.1`. A dot between words (`log.level`) may well be meant as any
separator, so only what has the shape of a name is told.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from opsdrill.errors import Severity
from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.lint.check import Finding
from opsdrill.scenarios.lint.replacement import insert, replaced
from opsdrill.scenarios.lint.skeleton import DOT, skeleton
from opsdrill.scenarios.lint.sought import Sought, sought

_D = rf"[.{DOT}]"
_ADDRESS = re.compile(
    rf"(?<![\w{DOT}.])(?:[0-9]{{1,3}}{_D}){{3}}[0-9]{{1,3}}(?![\w])"
    rf"|(?<![\w{DOT}.])(?:192{_D}168|169{_D}254|127{_D}0{_D}0|172{_D}(?:1[6-9]|2[0-9]|3[01]))"
    rf"(?:{_D}[0-9]{{0,3}})*"
)
_PATH = re.compile(rf"(?<![\w.{DOT}/-])[~.]?/[\w.{DOT}/@+~:-]+|https?://[\w.{DOT}/@+~:-]+")
_IN_PATH = re.compile(rf"(?<=[\w/-]){DOT}(?=[A-Za-z0-9_])")
_FILE = re.compile(
    rf"(?<![\w{DOT}.-])[\w-]{{2,}}(?:{_D}[\w-]+)*{_D}(?:conf|cfg|cnf|ini|py|sh|json|ya?ml|toml|gz|"
    r"tgz|bz2|xz|zip|tar|sql|pem|crt|csr|html?|php|css|xml|txt|deb|rpm|jar|whl|bashrc)(?![\w-])"
)
_PERHAPS_FILE = re.compile(
    rf"(?<![\w{DOT}.-])[\w-]{{2,}}{_D}(?:log|service|socket|timer|target|mount|pid|sock|bak|key|env|"
    r"lock|repo|rules)(?![\w-])"
)
_HOST = re.compile(
    rf"(?<![\w{DOT}.-])(?:[a-z0-9-]+{_D})+(?:com|org|net|edu|gov|localdomain)(?![\w-])"
    rf"|(?<![\w{DOT}.-])(?:[a-z0-9-]+{_D}){{2,}}(?:io|dev|local|internal|lan|corp|home|test|example|"
    rf"invalid|svc|cluster|cloud|de|eu|uk)(?![\w-])"
    rf"|(?<![\w{DOT}.-])[a-z0-9-]*[0-9-][a-z0-9-]*{_D}(?:io|dev|local|internal|lan|corp|home|test|"
    r"example|invalid|svc|cluster|cloud)(?![\w-])",
    re.IGNORECASE,
)
_VERSION = re.compile(rf"(?<![\w{DOT}.])[0-9]+(?:{_D}[0-9]+){{2,}}(?![\w])")


class UnescapedDot:
    code = "OD021"

    def __call__(self, scenario: Scenario) -> Iterator[Finding]:
        for pattern in sought(scenario):
            sure, unsure = _dots(pattern, scenario.host_names)
            if sure:
                yield _finding(pattern, sure, "warning")
            if unsure - sure:
                yield _finding(pattern, sure | unsure, "note")


def _dots(pattern: Sought, hosts: Iterable[str]) -> tuple[set[int], set[int]]:
    """Where in the pattern the dots of names stand: those that surely are, and the others."""
    expression = pattern.expression
    sure, unsure = set[int](), set[int]()
    for sequence in expression.sequences() if expression else ():
        shape = skeleton(sequence)
        if DOT in shape.text:
            by_sure, by_unsure = _in_text(shape.text, hosts, in_prose=pattern.in_prose)
            sure |= {shape.items[at].start for at in by_sure}
            unsure |= {shape.items[at].start for at in by_unsure}
    return sure, unsure


def _in_text(text: str, hosts: Iterable[str], *, in_prose: bool) -> tuple[set[int], set[int]]:
    sure, unsure = set(_all(_ADDRESS, text)), set(_all(_VERSION, text))
    for path in _PATH.finditer(text):
        whole = path.group()
        # The names of devices differ in one character, and /x/ is how sed and awk search.
        if not (whole.startswith("/dev/") or (whole.endswith("/") and whole.count("/") == 2)):
            sure |= {path.start() + found.start() for found in _IN_PATH.finditer(whole)}
    sure |= set(_all(_HOST, text))
    for host in hosts:
        named = re.compile(rf"(?<![\w.-]){re.escape(host)}{DOT}(?=[a-z])", re.IGNORECASE)
        sure |= set(_all(named, text))
    (unsure if in_prose else sure).update(_all(_FILE, text))
    unsure |= set(_all(_PERHAPS_FILE, text))
    return sure, unsure


def _all(shape: re.Pattern[str], text: str) -> Iterator[int]:
    for found in shape.finditer(text):
        yield from (at for at in range(*found.span()) if text[at] == DOT)


def _finding(pattern: Sought, dots: set[int], severity: Severity) -> Finding:
    first = min(dots)
    around = re.compile(r"[\w./@~-]*")
    begin = first - len((around.match(pattern.text[:first][::-1]) or [""])[0])
    name = (around.match(pattern.text, begin) or [""])[0]
    return Finding(
        pattern.location,
        f"has an unescaped dot in `{name}`, for which any character will do",
        severity=severity,
        better=(replaced(pattern.text, (insert(at, "\\") for at in dots)),),
    )
