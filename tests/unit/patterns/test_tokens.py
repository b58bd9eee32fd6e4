"""Token shapes: each finds its own tokens, and nothing of what people and programs write."""

from __future__ import annotations

import secrets
import string

import pytest

from opsdrill.patterns.tokens import SHAPES, Tokens, TokenShape

# Put together here, so that no file of the project holds anything that a scanner would report.
HEX = "0123456789abcdef" * 8
MIXED = "aB3dE5gH7jK9mN1pQ2sT4vW6xY8z" * 8
UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567" * 4
BODY = "\n".join([MIXED[:64]] * 3)
PEM = "-----{} {}PRIVATE KEY{}-----"

TOKENS = Tokens()

FOUND = [
    ("private-key", f"{PEM.format('BEGIN', '', '')}\n{BODY}\nabc=\n{PEM.format('END', '', '')}"),
    ("private-key", f"{PEM.format('BEGIN', 'OPENSSH ', '')}\n{BODY}"),
    ("private-key", f"{PEM.format('BEGIN', 'RSA ', '')}\nProc-Type: 4,ENCRYPTED\n\n{BODY}\n"),
    ("private-key", f"{PEM.format('BEGIN', 'EC ', '')}\\n{MIXED[:64]}\\n{MIXED[:64]}\\n"),
    ("private-key", f"{PEM.format('BEGIN', 'PGP ', ' BLOCK')}\n\n{BODY}\n"),
    ("jwt", f"token=eyJ{MIXED[:30]}.eyJ{MIXED[:60]}.{MIXED[:43]};"),
    ("aws-access-key", f"AWS_ACCESS_KEY_ID=AKIA{UPPER[:16]}"),
    ("aws-access-key", f"ASIA{UPPER[3:19]}/20260131/eu-west-1"),
    ("aws-secret-key", f"aws_secret_access_key = {MIXED[:40]}"),
    ("aws-secret-key", f'"AWSSecretAccessKey": "{MIXED[:38]}/+"'),
    ("google-api-key", f"?key=AIza{MIXED[:35]}"),
    ("google-client-secret", f"GOCSPX-{MIXED[:28]}"),
    ("google-access-token", f"ya29.{MIXED[:100]}"),
    ("azure-storage-key", f"DefaultEndpointsProtocol=https;AccountKey={MIXED[:86]}=="),
    ("azure-client-secret", f"secret: abc8Q~{MIXED[:34]}"),
    ("digitalocean-token", f"dop_v1_{HEX[:64]}"),
    ("github-token", f"https://ghp_{MIXED[:36]}@github.com/a/b"),
    ("github-token", f"gho_{MIXED[:36]}"),
    ("github-token", f"ghs_{MIXED[:100]}"),
    ("github-token", f"github_pat_{MIXED[:22]}_{MIXED[:59]}"),
    ("gitlab-token", f"PRIVATE-TOKEN: glpat-{MIXED[:20]}"),
    ("gitlab-token", f"glrt-{MIXED[:27]}.01.{'a1' * 4}a"),
    ("slack-token", f"xoxb-123456789012-1234567890123-{MIXED[:24]}"),
    ("slack-token", f"xapp-1-A0123-123456789-{HEX[:64]}"),
    ("slack-webhook", f"https://hooks.slack.com/services/T01234567/B01234567/{MIXED[:24]}"),
    ("telegram-token", f"123456789:AA{MIXED[:33]}"),
    ("stripe-key", f"sk_live_{MIXED[:24]}"),
    ("stripe-key", f"rk_test_{MIXED[:99]}"),
    ("twilio-key", f"SK{HEX[:32]}"),
    ("sendgrid-key", f"SG.{MIXED[:22]}.{MIXED[:43]}"),
    ("openai-key", f"OPENAI_API_KEY=sk-proj-{MIXED[:60]}T3BlbkFJ{MIXED[:60]}"),
    ("openai-key", f"sk-{MIXED[:20]}T3BlbkFJ{MIXED[:20]}"),
    ("anthropic-key", f"sk-ant-api03-{MIXED[:93]}AA"),
    ("huggingface-token", f"hf_{string.ascii_letters[:34]}"),
    ("opsdrill-token", f"admin token: od_5f3a9c0d1e_{MIXED[:43]}"),
    ("npm-token", f"//registry/:_authToken=npm_{MIXED[:36]}"),
    ("pypi-token", f"pypi-AgEIcHlwaS5vcmc{MIXED[:100]}"),
    ("docker-token", f"dckr_pat_{MIXED[:27]}"),
    ("vault-token", f"VAULT_TOKEN=hvs.{MIXED[:90]}"),
    ("terraform-token", f"{MIXED[:14]}.atlasv1.{MIXED[:67]}"),
    ("pulumi-token", f"pul-{HEX[:40]}"),
    ("doppler-token", f"dp.st.prd.{MIXED[:40]}"),
    ("databricks-token", f"dapi{HEX[:32]}-2"),
    ("grafana-token", f"glsa_{MIXED[:32]}_{HEX[:8]}"),
    ("new-relic-key", f"NRAK-{UPPER[4:31]}"),
    ("sentry-token", f"sntryu_{HEX[:64]}"),
    ("atlassian-token", f"ATATT3{MIXED[:186]}=0A1B2C3D"),
    ("shopify-token", f"shpat_{HEX[:32]}"),
    ("tailscale-key", f"tskey-auth-{MIXED[:12]}-{MIXED[:32]}"),
    ("age-key", "AGE-SECRET-KEY-1" + ("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L" * 2)[:58]),
    ("authorization", "curl -H 'Authorization: Bearer abcd1234efgh' x"),
    ("authorization", f"authorization: Basic {MIXED[:24]}=="),
    ("authorization", f'{{"Authorization": "token {MIXED[:30]}"}}'),
    ("authorization", f"Bearer {MIXED[:40]}"),
    ("url-password", "postgres://app:s3cr3t-pw@db-01:5432/shop"),
    ("url-password", "redis://:pa55w0rd!@cache/0"),
    ("url-password", "https://user:p%40ss1@[::1]/"),
]

FREE = [
    # places for tokens, and how documentation writes them
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer <your-token>",
    "Authorization: Basic ${BASIC}",
    'curl -H "Authorization: Bearer $(cat /run/token)"',
    "Authorization: Bearer token",
    "bearer authentication is not configured for this server",
    "Bearer realm=registry, service=docker, error=invalid_token",
    "postgres://user:password@localhost/db",
    "postgres://$USER:$PASS@db/x",
    "postgres://app:<password>@db/x",
    "postgres://app:${PASSWORD}@db/x",
    "mysql://root:xxxx@db/x",
    "mysql://root:****@db/x",
    "amqp://guest:{password}@mq",
    "export AWS_SECRET_ACCESS_KEY=$(pass show aws)",
    "aws_secret_access_key = <40 characters>",
    "AKIA",
    "AKIAEXAMPLE",
    "ghp_xxx",
    "ghp_your_token_here",
    "glpat-your-token-goes-here-please",
    "xoxb-your-token-here",
    "sk-ant-...",
    "hvs.",
    "od_5f3a9c0d1e is the id of a token",
    "npm_config_registry=https://registry.example.org/some/very/long/path/for/packages",
    "npm_package_dependencies_something_very_long_name_of_a_package",
    "SKIPPED SKETCH SK",
    "eyJhbGciOi",
    "hf_transfer",
    "dapi",
    # keys in words and in commands that look for them
    "grep -rl -- '-----BEGIN RSA PRIVATE KEY-----' /etc/ssl",
    f"{PEM.format('BEGIN', '', '')}\n",
    "/etc/ssl/a.pem:-----BEGIN PRIVATE KEY-----\n/etc/ssl/b.pem:-----BEGIN PRIVATE KEY-----",
    f"-----BEGIN CERTIFICATE-----\n{BODY}\n-----END CERTIFICATE-----",
    f"-----BEGIN PUBLIC KEY-----\n{BODY}\n-----END PUBLIC KEY-----",
    f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{MIXED[:43]} ops@example",
    # URLs, images, addresses
    "https://example.org:8443/path?a=b",
    "http://[::1]:8080/",
    "https://user@example.org/",
    "docker://nginx:1.27@sha256:" + HEX[:64],
    "docker://nginx:1.27-alpine@sha256:" + HEX[:64],
    "git@github.com:acme/shop.git",
    "ssh://git@host:2222/repo",
    "rsync://mirror:873/debian",
    "mailto:ops@example.org",
    "time 12:30:45 user:group@host",
    # digests, ids, and what else is long and random
    HEX[:40],
    HEX[:64],
    "sha256:" + HEX[:64],
    f"commit {HEX[:40]}",
    "550e8400-e29b-41d4-a716-446655440000",
    f"etag: W/\"{HEX[:32]}\"",
    MIXED[:200],
    "$6$rounds=5000$" + MIXED[:16] + "$" + MIXED[:86],
    # regular expressions that look for tokens
    r"AKIA[0-9A-Z]{16}",
    r"gh[pousr]_[A-Za-z0-9]{36}",
    r"\w+://\w+:\w+@\w+",
    r"https?://[^:]+:[^@]+@",
    # already masked
    "Authorization: Bearer [masked:authorization]",
    "postgres://app:[masked:DB_PASSWORD]@db/x",
    # ordinary work
    "systemctl restart nginx && systemctl is-active nginx",
    "chown -R www-data:www-data /var/www; chmod 0640 /etc/app.conf",
    "journalctl -u app@shop.service --since '10 min ago'",
    "kubectl get secret app-token-x7k2p -o yaml",
    "Jan 31 12:00:01 web-01 sshd[1234]: Accepted publickey for root from 10.0.0.5 port 50022 ssh2",
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "line"), FOUND, ids=[f"{n}-{i}" for i, (n, _) in enumerate(FOUND)]
)
def test_a_token_is_found(name: str, line: str) -> None:
    """Whole: what stands outside of the place is no longer any token."""
    places = TOKENS.places(line.encode())
    assert [place.name for place in places] == [name], line
    rest = line[: places[0].start] + "#" + line[places[0].end :]
    assert TOKENS.places(rest.encode()) == []


def test_every_shape_is_tried() -> None:
    assert {name for name, _ in FOUND} == {shape.name for shape in SHAPES}


@pytest.mark.parametrize("line", FREE, ids=range(len(FREE)))
def test_what_is_no_token_is_left(line: str) -> None:
    found = [(p.name, line.encode()[p.start : p.end]) for p in TOKENS.places(line.encode())]
    assert found == []


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_sample_is_of_its_shape(shape: TokenShape) -> None:
    places = TOKENS.places(shape.sample.encode())
    assert [place.name for place in places] == [shape.name]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_token_inside_a_word_is_none(shape: TokenShape) -> None:
    """Only where the shape says so: `xghp_...` is a name of something."""
    if shape.apart:
        for before in ("x", "_", "7"):
            found = TOKENS.places(f"{before}{shape.sample}".encode())
            assert all(place.start > len(before) or place.name != shape.name for place in found)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
@pytest.mark.parametrize(
    "border",
    ["\x1b[32m", "\\n", "\\t", "\\u001b[0m", "\\x1b[1;31m", "\\033[0m", "\\u000a", "%20", "%3D"],
)
def test_an_escape_before_a_token_is_no_part_of_a_word(shape: TokenShape, border: str) -> None:
    """Colours and written line breaks end with a letter or a digit, and hide no token."""
    text = f"Got: xxx{border}{shape.sample}"
    start = len(text) - len(shape.sample)
    found = TOKENS.places(text.encode())
    assert any(place.name == shape.name and place.start >= start for place in found)


def test_only_the_secret_part_of_a_token_is_its_place() -> None:
    line = b"postgres://app:s3cr3t-pw@db-01/shop"
    [place] = TOKENS.places(line)
    assert line[place.start : place.end] == b"s3cr3t-pw"


def test_random_text_holds_no_token() -> None:
    """A megabyte of base64 and one of hexadecimal."""
    alphabet = string.ascii_letters + string.digits + "+/"
    text = "".join(secrets.choice(alphabet) for _ in range(1_000_000))
    assert TOKENS.places(text.encode()) == []
    assert TOKENS.places(secrets.token_hex(500_000).encode()) == []


@pytest.mark.parametrize(
    "piece",
    ["Bearer ", "-----BEGIN PRIVATE KEY-----\n", "a://a:a", "eyJ", "hvs.", "sntryu_", "xoxb-1-"],
)
def test_beginnings_of_tokens_without_end_cost_no_more_than_other_text(piece: str) -> None:
    """Ten megabytes of what looks like the start of a token again and again."""
    TOKENS.places((piece * (10_000_000 // len(piece))).encode())


def test_a_token_cut_off_at_the_end_is_seen() -> None:
    for text in (f"key ghp_{MIXED[:9]}", f"id AKIA{UPPER[:6]}", f"x dop_v1_{HEX[:20]}"):
        place = TOKENS.begun(text.encode())
        assert place is not None, text
        assert text[place.start :] == text.split()[-1]
    for text in ("ordinary words", "", "trailing space ", "ghp_", "a" * 5000, f"{HEX[:40]}"):
        assert TOKENS.begun(text.encode()) is None, text
