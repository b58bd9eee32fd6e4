"""The lab's options for the sandbox, and what the facts say about them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsdrill.errors import UsageError
from opsdrill.hosts.drivers.sandbox.facts import host_facts
from opsdrill.hosts.drivers.sandbox.findings import findings
from opsdrill.hosts.drivers.sandbox.options import Options, parse_options

ROOT = {"root": "yes", "users": "yes", "pids": "yes", "memory": "yes", "filter": "yes"}
USER = {"root": "no", "users": "no", "pids": "no", "memory": "no", "filter": "yes"}


def test_defaults() -> None:
    """128 MiB of files, 512 processes unless the lab says otherwise."""
    assert parse_options({}) == Options(size=128 << 20, processes=512, memory=1 << 30)


@pytest.mark.parametrize(
    ("text", "size"), [("64M", 64 << 20), ("1g", 1 << 30), ("8192K", 8 << 20), ("5000000", 5000000)]
)
def test_sizes(text: str, size: int) -> None:
    """A size is a number of bytes, or of K, M or G."""
    assert parse_options({"size": text}).size == size


@pytest.mark.parametrize(
    "given_options",
    [
        {"size": "big"},
        {"size": "1"},
        {"size": "-64M"},
        {"size": "1.5G"},
        {"size": "1T"},
        {"memory": ""},
        {"processes": "0"},
        {"processes": "many"},
        {"processes": "٣٣"},
        {"colour": "red"},
    ],
)
def test_wrong_options_are_named(given_options: dict[str, str]) -> None:
    """What cannot be is refused in one sentence that names the option."""
    with pytest.raises(UsageError, match=next(iter(given_options))):
        parse_options(given_options)


@given(st.text())
def test_any_text_is_a_size_or_refused(text: str) -> None:
    """No text ends in anything but a size or a UsageError."""
    try:
        assert parse_options({"size": text}).size >= 4 << 20
    except UsageError as error:
        assert "size" in error.message


def test_facts_say_what_the_host_is_made_of() -> None:
    """Distribution, kernel, shell, and a digest of the package list where there is one."""
    facts = host_facts("web-01", Options(), ROOT)
    assert facts.driver == "sandbox"
    assert facts.kernel
    assert facts.users is True
    assert facts.packages_digest is None or len(facts.packages_digest) == 64
    assert facts == host_facts("web-01", Options(), ROOT)


def test_facts_say_what_is_not_bounded() -> None:
    """What is not bounded here is said in words."""
    limits = host_facts("web-01", Options(), USER).limits
    assert "not bounded" in limits["memory"]
    assert "uidmap" in limits["users"]
    assert "read-only" in limits["usr"]
    assert "not bounded" in host_facts("x", Options(), {**USER, "root": "yes"}).limits["processes"]


def test_findings_name_remedies() -> None:
    """Preflight says what differs here and how to get the rest."""
    found = {finding.what: finding for finding in findings(USER, Options())}
    assert found["users other than root"].remedy == "apt-get install uidmap"
    assert not any(finding.blocks for finding in found.values())
    blocked = findings(None, Options(), "unshare: Operation not permitted")
    assert blocked[0].blocks
    assert blocked[0].remedy
    assert "not permitted" in blocked[0].detail
