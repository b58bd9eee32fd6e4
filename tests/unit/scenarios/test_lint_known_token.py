"""OD060: tokens in a scenario, and rules that look for what is masked."""

from __future__ import annotations

import re

import pytest

from opsdrill.patterns import compile_pattern
from opsdrill.patterns.tokens import SHAPES, sought_token
from opsdrill.scenarios.catalogue import PACKS, Catalogue
from opsdrill.scenarios.lint import CHECKS
from opsdrill.scenarios.lint.check import Finding
from opsdrill.scenarios.lint.known_token import TokenInScenario
from opsdrill.scenarios.load import parse_scenario

TOKEN = "ghp_" + "A1b2C3d4E5f6" * 3
MASKED = r"\[masked:{}\]"


def findings(**fields: object) -> list[Finding]:
    made = parse_scenario(
        {"key": "a", "title": "t", "ticket_title": "t", "hosts": ["web-01"], **fields}
    )
    return list(TokenInScenario()(made))


def rule(pattern: str, *, negate: bool = True) -> dict[str, object]:
    return {
        "validation": [
            {
                "label": "no keys",
                "validator": "pattern_match",
                "pattern": pattern,
                "where": "agent_messages",
                "negate": negate,
            }
        ]
    }


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"ticket_body": f"use {TOKEN}"}, ("ticket_body",)),
        ({"setup": [{"run": f"echo {TOKEN} >/etc/token"}]}, ("setup", 0, "run")),
        ({"operational_rules": ["a", TOKEN]}, ("operational_rules", 1)),
        (rule(TOKEN), ("validation", 0, "pattern")),
    ],
)
def test_a_token_in_a_scenario(fields: dict[str, object], place: tuple[str | int, ...]) -> None:
    """With its place and its kind; never the token itself."""
    [finding] = findings(**fields)
    assert finding.location == place
    assert (finding.severity, "github-token" in finding.message) == ("warning", True)
    assert TOKEN not in f"{finding.message} {finding.suggestion}"


LOOKS = [
    ("AKIA[0-9A-Z]{16}", "aws-access-key"),
    (r"\b(AKIA|ASIA)[A-Z0-9]+", "aws-access-key"),
    (r"gh[pousr]_[A-Za-z0-9]{36}", "github-token"),
    ("ghp_", "github-token"),
    (r"-----BEGIN (RSA |OPENSSH |EC )?PRIVATE KEY-----", "private-key"),
    ("BEGIN.*PRIVATE KEY", "private-key"),
    (r"xox[baprs]-", "slack-token"),
    (r"glpat-\S+", "gitlab-token"),
    (r"eyJ[\w-]+\.eyJ[\w-]+\.[\w-]+", "jwt"),
    (r"sk_live_\w+", "stripe-key"),
    (r"hvs\.[\w-]+", "vault-token"),
]


@pytest.mark.parametrize(("pattern", "name"), LOOKS)
def test_a_rule_that_looks_for_what_is_masked(pattern: str, name: str) -> None:
    """The better pattern compiles, finds what is masked, and still what it found before."""
    [finding] = findings(**rule(pattern))
    assert finding.location == ("validation", 0, "pattern")
    assert f"looks for a {name}, which is masked" in finding.message
    assert "always passes" in finding.message
    [better] = finding.better
    compile_pattern(better)
    sample = next(shape.sample for shape in SHAPES if shape.name == name)
    found = re.compile(better, re.IGNORECASE)
    assert found.search(f"I saw [masked:{name}] there")
    assert found.search(sample)
    assert not found.search("systemctl restart nginx")
    assert findings(**rule(better)) == []


def test_a_rule_that_wants_one_never_finds_it() -> None:
    [finding] = findings(**rule("AKIA[0-9A-Z]{16}", negate=False))
    assert "never finds one" in finding.message


QUIET = [
    r"\[masked:github-token\]",
    r"\[masked:",
    "masked",
    r".*",
    r"\S+",
    r"\w{20,}",
    r"[A-Za-z0-9+/]{40,}={0,2}",
    r"[0-9a-f]{32}",
    r"\b[A-Z0-9]{20}\b",
    "password|passwd|secret|token",
    r"(api|private)[_-]?key",
    r"authorization:\s*(bearer|basic)",
    r"Bearer \S+",
    r"https?://\S+",
    r"https?://[^/\s:]+:[^@\s]+@",
    r"PRIVATE|PUBLIC",
    r"\.pem\b|id_rsa|id_ed25519",
    "cat /etc/ssl/private",
    r"\$AWS_SECRET_ACCESS_KEY",
    r"(?!x)(?<=a)b",
    "sk|hf|SG",
    "a" * 500,
]


@pytest.mark.parametrize("pattern", QUIET, ids=range(len(QUIET)))
def test_a_rule_that_looks_for_something_else_is_left(pattern: str) -> None:
    assert findings(**rule(pattern)) == []


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer $TOKEN",
        "curl https://user:$PASS@example.org",
        "grep -r 'BEGIN PRIVATE KEY' /etc",
        "postgres://app:password@db/x",
        "the key begins with AKIA",
        "sha256sum -c SUMS  # " + "0123456789abcdef" * 4,
    ],
)
def test_places_for_tokens_are_none(text: str) -> None:
    assert findings(ticket_body=text, setup=[{"run": text}]) == []


def test_the_packs_hold_none() -> None:
    loaded = Catalogue([PACKS]).select(["tag:basics"])
    assert loaded
    assert [finding for one in loaded for finding in TokenInScenario()(one.scenario)] == []


def test_a_pattern_without_end_costs_little() -> None:
    """Searched by an engine that cannot be led astray."""
    assert findings(**rule(r"(\w+)+$|(a|aa)+!|(ghp_\w*)*~")) == []


def test_it_is_among_all_checks() -> None:
    assert any(isinstance(check, TokenInScenario) for check in CHECKS)


def test_of_a_long_pattern_nothing_is_said() -> None:
    """[S7.1] The engine that is asked takes long for some of those."""
    assert sought_token("ghp_[A-Za-z0-9]{36}") == "github-token"
    assert sought_token("ghp_[A-Za-z0-9]{36}" + "|zzz" * 1000) is None


@pytest.mark.parametrize("pattern", ["^a|b$", "^.", "^(a|s)", "^gh"])
def test_a_letter_or_two_are_no_search_for_a_token(pattern: str) -> None:
    assert sought_token(pattern) is None
