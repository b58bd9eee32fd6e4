r"""Token shapes: keys and tokens that give themselves away by how they are written.

Each shape is what the one who issues such tokens documents, or what secret scanners have found to
give few false alarms (gitleaks' and GitHub's public lists of formats were compared). Shapes that
any word could have, such as `password = word`, are not here.

To add one: an entry in `SHAPES` with a sample; the tests ask for lines that must and must not
match.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import re2

from opsdrill.patterns.literals import Place

MEMORY = 64 * 1024**2
"""Bytes that the engine may take with all it remembers while it searches."""

_TAIL = 4096
_BEGUN = 8
"""Bytes of a token's beginning that tell it."""
_RESTS = (b"Ab3" * 100, b"ab3" * 100, b"QZ2" * 100, b"Ab3" * 30 + b"@a")
"""What may have followed where a text was cut: by one of these a token is completed."""

_BORDER = (
    r"(?:\x1b|\\(?:u001[bB]|x1[bB]|033|e))\[[0-9;]*[A-Za-z]"
    r"|\\[abefnrtv]|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|%[0-9A-Fa-f]{2}"
)
"""What ends with a letter or a digit and yet is no part of a word: colours, line breaks and other
characters as a terminal, JSON, a shell or a URL writes them."""
_BORDER_AT = re.compile(_BORDER.encode("ascii"))
_WORD = frozenset(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")


@dataclass(frozen=True, slots=True)
class TokenShape:
    """One shape.

    Args:
        name: what stands in a token's place, `[masked:NAME]`.
        pattern: in the syntax that `re` and RE2 share, with at most one group: the secret part;
            without a group it is the whole.
        sample: a made-up token of this shape.
        real: whether the secret part can be a secret, and not a place for one.
        apart: no letter, digit or `_` may stand right before it, but for the end of an escape.
    """

    name: str
    pattern: str
    sample: str
    real: Callable[[str], bool] = lambda _token: True
    apart: bool = True


_PLACES = frozenset(
    ("pass", "password", "passwd", "pwd", "secret", "token", "user", "username", "changeme",
     "example", "redacted", "none", "null")
)  # fmt: skip


def _filled(token: str) -> bool:
    """No word that stands for a password, no `xxxx`, no `****`."""
    return len(set(token)) > 2 and token.casefold() not in _PLACES


def _mixed(token: str) -> bool:
    """Letters and digits, as random text of this length has them and prose has not."""
    return (
        _filled(token)
        and any(letter.isdigit() for letter in token)
        and any(letter.isalpha() for letter in token)
    )


_TAG = re.compile(r"v?\d+(?:\.\d+)+[A-Za-z0-9.-]*|latest|stable")


def _password(token: str) -> bool:
    """No place for one, and no tag of an image, as in `docker://nginx:1.27@sha256:...`."""
    return _filled(token) and _TAG.fullmatch(token) is None


def _a(times: int, letters: str = "Ab3") -> str:
    return (letters * times)[:times]


_KEY = r"PRIVATE KEY(?: BLOCK)?-----"
_BREAK = r"(?:\s|\\+[nrt])"
"""A line break, as it is or escaped as in JSON."""

SHAPES: tuple[TokenShape, ...] = (
    TokenShape(
        "private-key",
        rf"-----BEGIN (?:[A-Z0-9]+ ){{0,3}}{_KEY}{_BREAK}+"
        rf"(?:[A-Za-z-]+: [^\n\\]*{_BREAK}+)*"
        rf"[A-Za-z0-9+/=]{{16,}}(?:{_BREAK}+[A-Za-z0-9+/=]{{20,}})*"
        rf"(?:(?:{_BREAK}+[A-Za-z0-9+/=]+)?{_BREAK}*-----END (?:[A-Z0-9]+ ){{0,3}}{_KEY})?",
        f"-----BEGIN PRIVATE KEY-----\n{_a(64)}\n{_a(64)}\n{_a(20)}==\n-----END PRIVATE KEY-----",
        apart=False,
    ),
    TokenShape(
        "jwt",
        r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
        f"eyJ{_a(20)}.eyJ{_a(40)}.{_a(43)}",
    ),
    TokenShape("aws-access-key", r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}", f"AKIA{_a(16, 'QZ2')}"),
    TokenShape(
        "aws-secret-key",
        r"(?i:aws_?secret_?access_?key)[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?([A-Za-z0-9/+]{40})",
        f"aws_secret_access_key = {_a(40)}",
        real=_mixed,
        apart=False,
    ),
    TokenShape("google-api-key", r"AIza[A-Za-z0-9_-]{35}", f"AIza{_a(35)}"),
    TokenShape("google-client-secret", r"GOCSPX-[A-Za-z0-9_-]{28}", f"GOCSPX-{_a(28)}"),
    TokenShape("google-access-token", r"ya29\.[A-Za-z0-9_-]{30,}", f"ya29.{_a(60)}"),
    TokenShape("azure-storage-key", r"AccountKey=([A-Za-z0-9+/]{86}==)", f"AccountKey={_a(86)}=="),
    TokenShape("azure-client-secret", r"[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}",
               f"abc8Q~{_a(34)}"),
    TokenShape("digitalocean-token", r"do[opr]_v1_[a-f0-9]{64}", f"dop_v1_{_a(64, 'ab3')}"),
    TokenShape("github-token", r"gh[pousr]_[A-Za-z0-9]{36,255}", f"ghp_{_a(36)}"),
    TokenShape("github-token", r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
               f"github_pat_{_a(22)}_{_a(59)}"),
    TokenShape(
        "gitlab-token",
        r"gl(?:pat|ptt|dt|rt|cbt|ft|soat|agent|imt|oas|ffct)-[A-Za-z0-9_-]{20,300}"
        r"(?:\.[a-z0-9]{2}\.[a-z0-9]{9})?",
        f"glpat-{_a(20)}",
        real=_mixed,
    ),
    TokenShape(
        "slack-token",
        r"xox[abeoprs](?:\.xox[bp])?-(?:[0-9]+-)+[A-Za-z0-9-]{10,}",
        f"xoxb-{_a(12, '123')}-{_a(12, '123')}-{_a(24)}",
    ),
    TokenShape(
        "slack-token",
        r"xapp-[0-9]-[A-Z0-9]+-[0-9]+-[a-z0-9]{30,}",
        f"xapp-1-A01B-{_a(12, '123')}-{_a(64, 'ab3')}",
    ),
    TokenShape(
        "slack-webhook",
        r"https://hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/([A-Za-z0-9+/]{40,80})",
        f"https://hooks.slack.com/services/T{_a(10, 'A1')}/B{_a(10, 'A1')}/{_a(24)}",
    ),
    TokenShape("telegram-token", r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}", f"1234567890:AA{_a(33)}"),
    TokenShape("stripe-key", r"(?:sk|rk)_(?:live|test|prod)_[A-Za-z0-9]{16,247}",
               f"sk_live_{_a(24)}"),
    TokenShape("twilio-key", r"SK[0-9a-f]{32}", f"SK{_a(32, 'ab3')}", real=_mixed),
    TokenShape("sendgrid-key", r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}",
               f"SG.{_a(22)}.{_a(43)}"),
    TokenShape("openai-key", r"sk-(?:[a-z]+-)?[A-Za-z0-9_-]{20,100}T3BlbkFJ[A-Za-z0-9_-]{20,100}",
               f"sk-proj-{_a(40)}T3BlbkFJ{_a(40)}"),
    TokenShape("anthropic-key", r"sk-ant-[a-z]+[0-9]{2}-[A-Za-z0-9_-]{80,120}",
               f"sk-ant-api03-{_a(93)}AA"),
    TokenShape("huggingface-token", r"hf_[A-Za-z]{34}", f"hf_{_a(34, 'AbCd')}", real=_filled),
    TokenShape("npm-token", r"npm_[A-Za-z0-9]{36}", f"npm_{_a(36)}"),
    TokenShape("pypi-token", r"pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}",
               f"pypi-AgEIcHlwaS5vcmc{_a(120)}"),
    TokenShape("docker-token", r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{27,}", f"dckr_pat_{_a(27)}"),
    TokenShape("vault-token", r"hv[sbr]\.[A-Za-z0-9_-]{24,}", f"hvs.{_a(90)}", real=_mixed),
    TokenShape("terraform-token", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,70}",
               f"{_a(14)}.atlasv1.{_a(67)}"),
    TokenShape("opsdrill-token", r"od_[0-9a-f]{10}_[A-Za-z0-9_-]{43}", f"od_5f3a9c0d1e_{_a(43)}"),
    TokenShape("pulumi-token", r"pul-[a-f0-9]{40}", f"pul-{_a(40, 'ab3')}"),
    TokenShape("doppler-token", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9._-]{40,80}",
               f"dp.pt.{_a(43)}"),
    TokenShape("databricks-token", r"dapi[a-f0-9]{32}(?:-[0-9])?", f"dapi{_a(32, 'ab3')}",
               real=_mixed),
    TokenShape("grafana-token", r"glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}", f"glsa_{_a(32)}_0a1b2c3d"),
    TokenShape("new-relic-key", r"NRAK-[A-Z0-9]{27}", f"NRAK-{_a(27, 'AB3')}", real=_mixed),
    TokenShape("sentry-token", r"sntry[su]_[A-Za-z0-9+/=_]{40,}", f"sntryu_{_a(64, 'ab3')}",
               real=_mixed),
    TokenShape("atlassian-token", r"ATATT3[A-Za-z0-9_=-]{180,}", f"ATATT3{_a(186)}"),
    TokenShape("shopify-token", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}", f"shpat_{_a(32, 'ab3')}"),
    TokenShape("tailscale-key", r"tskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{20,}",
               f"tskey-auth-{_a(12)}-{_a(32)}"),
    TokenShape("age-key", r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}",
               f"AGE-SECRET-KEY-1{_a(58, 'QPZ')}"),
    TokenShape(
        "authorization",
        r"(?i:authorization)[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?(?i:bearer|basic|token)[ \t]{1,4}"
        r"([A-Za-z0-9._~+/-]{8,}={0,2})",
        f"Authorization: Basic {_a(24)}==",
        real=_filled,
        apart=False,
    ),
    TokenShape("authorization", r"(?i:bearer)[ \t]{1,4}([A-Za-z0-9._~+/-]{20,}={0,2})",
               f"Bearer {_a(32)}", real=_mixed),
    TokenShape(
        "url-password",
        r"[A-Za-z][A-Za-z0-9+.-]{1,30}://[A-Za-z0-9%._~+-]{0,100}:"
        r"([A-Za-z0-9%._~!*,;=+-]{3,200})@(?:[A-Za-z0-9]|\[)",
        f"postgres://app:{_a(12)}@db-01/shop",
        real=_password,
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Reader:
    """What is done once the engine found a shape somewhere."""

    shape: TokenShape
    pattern: re.Pattern[bytes]


class Tokens:
    """Finds the tokens in a text, in one pass over its bytes."""

    def __init__(self, shapes: tuple[TokenShape, ...] = SHAPES) -> None:
        self._readers = tuple(
            _Reader(shape, re.compile(shape.pattern.encode("ascii"))) for shape in shapes
        )
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.never_capture = True
        options.log_errors = False
        options.max_mem = MEMORY
        whole = "|".join(
            rf"(?:\b|{_BORDER})(?:{shape.pattern})" if shape.apart else f"(?:{shape.pattern})"
            for shape in shapes
        )
        program = re2.compile(whole.encode("ascii"), options)
        self._match = program._regexp.Match
        self._anywhere = re2._Anchor.UNANCHORED

    def places(self, data: bytes) -> list[Place]:
        """The secret parts of all tokens in `data`, in order and apart from each other."""
        found: list[Place] = []
        position, size = 0, len(data)
        while True:
            start = self._match(self._anywhere, data, position, size)[0][0]
            if start < 0:
                return found
            place = self._read(data, start)
            if place is not None:
                found.append(place)
            position = max(place.end if place else 0, start + 1)

    def begun(self, data: bytes) -> Place | None:
        """A token that begins in the last word of `data` and does not end in it."""
        size = len(data)
        tail = data[-_TAIL:]
        word = tail[len(tail) - len(tail.split()[-1]) :] if tail[-1:].strip() else b""
        for rest in _RESTS:
            for place in self.places(word + rest) if len(word) >= _BEGUN else ():
                if place.start <= len(word) - _BEGUN and place.end > len(word):
                    return Place(size - len(word) + place.start, size, place.name)
        return None

    def _read(self, data: bytes, start: int) -> Place | None:
        """The token that begins here; None where what stands here is only a place for one."""
        if start == 0 or data[start - 1] not in _WORD:
            place = self._read_at(data, start, apart=True)
        else:
            place = self._read_at(data, start, apart=False)
        if place is None and (border := _BORDER_AT.match(data, start)):
            place = self._read_at(data, border.end(), apart=True)
        return place

    def _read_at(self, data: bytes, start: int, *, apart: bool) -> Place | None:
        for reader in self._readers:
            if reader.shape.apart and not apart:
                continue
            read = reader.pattern.match(data, start)
            if read is None:
                continue
            first, last = read.span(reader.pattern.groups)
            if reader.shape.real(data[first:last].decode("latin-1")):
                return Place(first, last, reader.shape.name)
        return None


_SOUGHT_LONGEST = 4000
"""Characters of a pattern that is looked at; nobody writes a longer one by hand."""
_SPOKEN = "the secret, the password; age of a client's access token: a private key-pair, api_key"


@cache
def all_tokens() -> Tokens:
    """What finds the tokens of all `SHAPES`; made once."""
    return Tokens()


def tokens_in(text: str) -> tuple[str, ...]:
    """The names of the tokens in a text, each once, in their order."""
    places = all_tokens().places(text.encode("utf-8", "surrogatepass"))
    return tuple(dict.fromkeys(place.name for place in places))


_SOUGHT_SHORTEST = 3
"""Characters of the shortest beginning by which a token is known (`sk-`)."""


def sought_token(pattern: str) -> str | None:
    """The shape of token that a regular expression is made to find; None: of none.

    That is so where it finds more than a letter or two of the sample of a shape, but neither the
    same letters in another order, nor words that such tokens are spoken of with, nor what stands
    in a masked token's place. Of a long pattern nothing is said.
    """
    if len(pattern) > _SOUGHT_LONGEST:
        return None
    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    options.never_capture = True
    try:
        program = re2.compile(pattern, options)
    except (re2.error, UnicodeError):
        return None  # nothing that this engine knows: nothing is said
    for shape in SHAPES:
        whole = re.compile(shape.pattern)
        found = program.search(shape.sample) if whole.groups == 0 else None
        if found is not None and found.end() - found.start() >= _SOUGHT_SHORTEST:
            others = (shape.sample[::-1], _SPOKEN, f"[masked:{shape.name}]")
            if not any(program.search(other) for other in others):
                return shape.name
    return None
