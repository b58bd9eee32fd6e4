"""The lab file: what is refused, what holds for a host, and that no secret is ever repeated."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from ruamel.yaml import YAML

from opsdrill.errors import InvalidInput
from opsdrill.model.lab import Lab, LabHost, LabMachine
from opsdrill.scenarios.load import load_model
from opsdrill.schemas import schema_text

WHOLE = """
driver: ssh
defaults: {user: deploy, via: bastion, image: debian-12}
options: {size: 256M, systemd: true, count: 3, container: {engine: podman, size: 1G}}
images: {debian-12: {sandbox: ./tree, container: "debian:12"}, alpine: {container: alpine}}
hosts:
  bastion: {address: bastion.example.org, port: 2222}
  web-01: 10.0.0.2
  db-01: {key: ~/.ssh/db, sudo: true, password: DB_PASSWORD, user: admin}
groups:
  web: {hosts: [web-01], user: www, known_host: keys/web.pub}
pools:
  staging: {hosts: [web-01, db-01], size: 1}
secrets:
  DB_PASSWORD: {env: DB_PW}
  FROM_FILE: {file: ./pw}
  FROM_WORDS: {command: [pass, show, db]}
  FROM_LINE: {command: "pass show db | head -1"}
"""


def lab(text: str, folder: Path) -> Lab:
    path = folder / "lab.yaml"
    path.write_text(text)
    return load_model(path, Lab, noun="lab")


def refusal(text: str, folder: Path) -> list[str]:
    """The problems of a file that must be refused, without the file's name."""
    with pytest.raises(InvalidInput) as caught:
        lab(text, folder)
    return [str(problem).removeprefix(f"{folder}/lab.yaml:") for problem in caught.value.problems]


@pytest.fixture
def whole(tmp_path: Path) -> Lab:
    return lab(WHOLE, tmp_path)


def test_a_host_has_its_own_values_then_its_groups_then_the_defaults(whole: Lab) -> None:
    assert whole.machine("web-01") == LabHost(
        "10.0.0.2", user="www", known_host="keys/web.pub", via="bastion"
    )
    assert whole.machine("db-01", "pw") == LabHost(
        "db-01", user="admin", key="~/.ssh/db", password="pw", via="bastion", sudo=True
    )


def test_a_bastion_for_all_hosts_is_not_reached_through_itself(whole: Lab) -> None:
    assert whole.machine("bastion").via is None
    assert list(whole.way("web-01")) == ["web-01", "bastion"]


@pytest.mark.parametrize(
    ("host", "user"),
    [("web-01", "www"), ("db-01", "root"), ("bastion", "deploy"), ("made", "deploy")],
)
def test_commands_run_as_root_unless_the_lab_says_otherwise(
    whole: Lab, host: str, user: str
) -> None:
    """Commands run as root where nobody names a user; `sudo` makes root of anybody."""
    assert whole.user_of(host) == user
    assert Lab().user_of("web-01") == "root"


def test_options_are_for_all_drivers_or_for_one(whole: Lab) -> None:
    every = {"size": "256M", "systemd": "true", "count": "3"}
    assert whole.options_for("sandbox") == every
    assert whole.options_for("container") == {**every, "size": "1G", "engine": "podman"}


def test_images_are_what_a_driver_makes_of_a_name(whole: Lab) -> None:
    assert whole.images_for("container") == {"debian-12": "debian:12", "alpine": "alpine"}
    assert whole.images_for("sandbox") == {"debian-12": "./tree"}
    assert whole.images_for("ssh") == {}


def test_a_lab_survives_being_stored(whole: Lab) -> None:
    again = Lab.model_validate_json(whole.model_dump_json())
    assert again == whole
    assert again.digest == whole.digest


def test_the_digest_is_of_what_the_file_means(whole: Lab, tmp_path: Path) -> None:
    assert lab(WHOLE + "\n# a comment\n", tmp_path).digest == whole.digest
    assert lab(WHOLE.replace("2222", "2223"), tmp_path).digest != whole.digest


def test_a_resolved_password_is_not_shown() -> None:
    assert "hunter2" not in repr(LabHost("web-01", password="hunter2"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("driver: ssh\nnonsense: 1", "2:1: nonsense is not a known key here"),
        (
            "driver: ssh\nhosts: {a: {via: zz}}",
            "2:18: hosts.a.via 'zz' is no host of the lab; its `hosts`: a",
        ),
        (
            "driver: ssh\nhosts: {a: {via: b}, b: {via: c}, c: {via: b}}",
            "2:31: hosts.b.via goes round in a ring: b -> c -> b",
        ),
        ("driver: ssh\nhosts: {a: {via: a, user: b}}", ""),
        (
            "driver: ssh\nhosts: {a: x}\npools: {p: {hosts: [a, q], size: 1}}",
            "3:24: pools.p.hosts[1] 'q' is no host of the lab; its `hosts`: a",
        ),
        (
            "driver: ssh\nhosts: {a: x}\npools: {p: {hosts: [a], size: 0}}",
            "pools.p.size must be at least 1, not 0",
        ),
        (
            "driver: ssh\nhosts: {a: x}\npools: {p: {hosts: [a, a], size: 1}}",
            "pools.p.hosts[1] names the host 'a' a second time",
        ),
        (
            "driver: ssh\nhosts: {a: x}\ngroups: {g: {hosts: []}}",
            "groups.g.hosts must not be empty",
        ),
        (
            "driver: ssh\nhosts: {a: x}\n"
            "groups: {g: {hosts: [a], port: 1}, h: {hosts: [a], port: 2}}",
            "groups.h.port differs from the one in the group 'g', and 'a' is in both",
        ),
        ("hosts: {a: x}", "driver is missing: with `hosts` it must be said who reaches them"),
        (
            "driver: ssh\nhosts: {a: {address: root@x}}",
            "hosts.a.address must be without a user; that one goes under `user`",
        ),
        (
            'driver: ssh\nhosts: {a: {address: "x:22"}}',
            "hosts.a.address must be without a port; that one goes under `port`",
        ),
        ("driver: ssh\nhosts: {a: {address: -oProxyCommand=x}}", "hosts.a.address must be a host"),
        ("driver: ssh\nhosts: {a: {user: -oProxyCommand=x}}", "hosts.a.user must be the name of"),
        ("driver: ssh\nhosts: {a: {port: 70000}}", "hosts.a.port must be at most 65535"),
        ("driver: ssh\nhosts: {WEB: x}", "must be a host name of small letters"),
        ("defaults: {image: b}\nimages: {a: {container: a}}", "'b' is no name of `images`: a"),
        ("options: {a: [1]}", "options.a must be a text, a number, true or false"),
        ("secrets: {A: {}}", "secrets.A needs exactly one of `env`, `file` and `command`"),
        ("secrets: {A: {env: X, file: y}}", "secrets.A needs exactly one of"),
        ("secrets: {A: {command: []}}", "secrets.A.command must be a list of words, or a line"),
    ],
    ids=lambda value: value.replace("\n", " ")[:60],
)
def test_what_cannot_be_is_refused_with_its_place(text: str, says: str, tmp_path: Path) -> None:
    if not says:
        assert lab(text, tmp_path).machine("a").via is None
        return
    (problem,) = refusal(text, tmp_path)
    assert says in problem


@pytest.mark.parametrize(
    "text",
    [
        "secrets: {A: hunter2}",
        "secrets: {A: [hunter2]}",
        "secrets: {A: {env: 'hunter2 '}}",
        "secrets: {A: {hunter: hunter2}}",
        "driver: ssh\nhosts: {a: {password: hunter2}}",
        "driver: ssh\nhosts: {a: {password: 'hunter2!'}}",
        "driver: ssh\nhosts: {a: {password: {value: hunter2}}}",
        "driver: ssh\nhosts: {a: {passwd: hunter2}}",
        "driver: ssh\ndefaults: {password: hunter2}\nhosts: {a: x}",
    ],
)
def test_a_secret_written_into_the_file_is_refused_and_never_repeated(
    text: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput) as caught:
        lab(text, tmp_path)
    said = " ".join([str(caught.value), *map(str, caught.value.problems)])
    assert "hunter2" not in said


def test_numbers_as_passwords_are_not_repeated_either(tmp_path: Path) -> None:
    (problem,) = refusal("driver: ssh\nhosts: {a: {password: 123456}}", tmp_path)
    assert "123456" not in problem


def test_every_key_is_in_the_reference_and_no_other() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "lab.md").read_text()
    _, keys, of_host = page.split("\n| key", 2)
    rows = [re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) for table in (keys, of_host)]
    assert rows[0] == list(Lab.model_fields)
    assert sorted(rows[1]) == sorted(LabMachine.model_fields)


def test_a_whole_file_fits_the_schema_and_a_wrong_one_does_not() -> None:
    schema = Draft202012Validator(json.loads(schema_text("lab")))
    data = YAML(typ="safe", pure=True).load(WHOLE)
    assert list(schema.iter_errors(data)) == []
    assert list(schema.iter_errors({**data, "secrets": {"A": "hunter2"}})) != []
    assert list(schema.iter_errors({**data, "nonsense": 1})) != []
