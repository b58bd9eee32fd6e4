"""The fields of a scenario, number by number of docs/reference/scenario.md."""

from __future__ import annotations

from typing import Any

import pytest

from opsdrill.errors import InvalidInput
from opsdrill.model.scenario import Scenario
from opsdrill.scenarios.load import parse_scenario

BASE: dict[str, Any] = {"key": "a", "title": "t", "ticket_title": "t", "hosts": ["web-01", "db-01"]}
NO_HOST = "needs a host, but the scenario has no `hosts`"


def parsed(**more: object) -> Scenario:
    return parse_scenario({**BASE, **more})


def refused(**more: object) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        parsed(**more)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("key", ["a", "0", "web-01", "a-", "a" * 100, "9--9"])
def test_key(key: str) -> None:
    """[S5.1]"""
    assert parsed(key=key).key == key


@pytest.mark.parametrize(
    "key", ["", "-a", "A", "a_b", "a b", "a/b", "a.b", "a\n", "ä", "a" * 101, 5, None]
)
def test_no_key(key: object) -> None:
    """[S5.1] Anything else is refused, by the path `key`."""
    (problem,) = refused(key=key)
    assert problem.startswith("key must ")


def test_hosts() -> None:
    """[S5.2] Both ways of writing one, mixed; the first is the default."""
    scenario = parsed(hosts=["web-01", {"name": "db-01", "image": "debian-12"}, {"name": "x"}])
    assert scenario.host_names == ("web-01", "db-01", "x")
    assert [host.image for host in scenario.hosts] == [None, "debian-12", None]
    assert scenario.host_of(None) == "web-01"
    assert scenario.host_of("x") == "x"


@pytest.mark.parametrize(
    "name", ["", "-a", "a-", "A", "a.b", "a_b", "a b", "a" * 64, "a\n", "ä", "*"]
)
def test_no_dns_label(name: str) -> None:
    """[S5.2] What is no DNS label is refused, in both ways of writing."""
    for host, path in ((name, "hosts[1]"), ({"name": name}, "hosts[1].name")):
        (problem,) = refused(hosts=["ok", host])
        assert problem.startswith(f"{path} must be a host name")


def test_number_and_sameness_of_hosts() -> None:
    """[S5.2] 64 hosts, no more, and none twice."""
    names = [f"h{number}" for number in range(64)]
    assert len(parsed(hosts=[*names]).hosts) == 64
    assert refused(hosts=[*names, "h64"]) == ["hosts must have at most 64 items, not 65"]
    assert refused(hosts=["a", "b", {"name": "a"}]) == ["hosts[2] names the host 'a' a second time"]
    assert parsed(hosts=["a" * 63, "a"]).hosts


STEP = {"run": "true"}


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"setup": [STEP]}, "setup[0]"),
        ({"ready": [STEP]}, "ready[0]"),
        ({"reference": [STEP]}, "reference[0]"),
        ({"restore": [STEP]}, "restore[0]"),
        ({"files": [{"from": "a", "to": "/a"}]}, "files[0]"),
        ({"requires": ["sh"]}, "requires"),
        ({"requires": {"systemd": True}}, "requires"),
    ],
)
def test_without_hosts(more: dict[str, Any], path: str) -> None:
    """[S5.3] No hosts are fine until something needs one."""
    assert refused(hosts=[], **more) == [f"{path} {NO_HOST}"]
    without = {key: value for key, value in BASE.items() if key != "hosts"}
    assert parse_scenario(without).hosts == ()


def test_strangers() -> None:
    """[S5.3] Every place that names a host is checked, and all of them are told."""
    step = {"run": "true", "on": "zz"}
    found = refused(
        setup=[STEP, step],
        ready=[step],
        reference=[step],
        restore=[step],
        files=[{"from": "a", "to": "/a", "on": "zz"}],
        requires={"by_host": {"zz": ["sh"]}},
        validation=[
            {"label": "l", "validator": "host_state", **step},
            {"label": "l", "validator": "turns", "turns": [{"hosts": ["web-01", "zz"]}]},
        ],
    )
    stranger = "'zz' is no host of the scenario; its hosts: web-01, db-01"
    paths = [problem.removesuffix(stranger).strip() for problem in found]
    assert paths == [
        "files[0].on", "setup[1].on", "ready[0].on", "reference[0].on", "restore[0].on",
        "requires.by_host.zz" if "requires.by_host.zz" in paths else "requires.zz",
        "validation[0].on", "validation[1].turns[0].hosts[1]",
    ]  # fmt: skip


def test_strangers_beside_other_mistakes() -> None:
    """[S5.3] A mistake elsewhere hides no stranger; wrong hosts themselves come first."""
    step = {"run": "true", "on": "zz"}
    assert len(refused(title="", setup=[step], limits={"job_seconds": 0})) == 3
    assert [p.split()[0] for p in refused(hosts=["A"], setup=[step])] == ["hosts[0]"]


def test_files() -> None:
    """[S5.4]"""
    (file,) = parsed(files=[{"from": "files/a b", "to": "/opt/x"}]).files
    assert (file.source, file.to, file.on, file.mode, file.owner) == (
        "files/a b", "/opt/x", None, "0644", "root",
    )  # fmt: skip
    more = {"from": "a", "to": "/a", "on": "db-01", "mode": "0755", "owner": "www-data:adm"}
    assert parsed(files=[more]).files[0].owner == "www-data:adm"


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"from": "/etc/passwd"}, "from"),
        ({"from": "../x"}, "from"),
        ({"from": "a/../../x"}, "from"),
        ({"from": ""}, "from"),
        ({"from": "a\0"}, "from"),
        ({"from": "a\\b"}, "from"),
        ({"to": "opt/x"}, "to"),
        ({"to": "/"}, "to"),
        ({"to": "//"}, "to"),
        ({"to": "/x\0"}, "to"),
        ({"to": "/opt/../.."}, "to"),
        ({"to": "/opt/"}, "to"),
        ({"mode": 644}, "mode"),
        ({"mode": "0999"}, "mode"),
        ({"mode": "rw"}, "mode"),
        ({"owner": "a b"}, "owner"),
        ({"owner": "root;x"}, "owner"),
        ({"user": "x"}, "user"),
    ],
)
def test_no_file(more: dict[str, Any], path: str) -> None:
    """[S5.4] Paths that lead out of the folder, no absolute target, no octal mode."""
    (problem,) = refused(files=[{"from": "a", "to": "/a", **more}])
    assert problem.startswith(f"files[0].{path} ")


@pytest.mark.parametrize(
    "written",
    [
        ["curl", "users"],
        {"commands": ["curl"], "users": True},
        {"commands": ["curl"], "users": True, "systemd": None, "by_host": None},
    ],
)
def test_requires_of_all_hosts(written: object) -> None:
    """[S5.6]"""
    requires = parsed(requires=written).requires
    assert (requires.commands, requires.by_host, requires.users, requires.systemd) == (
        ("curl",), {}, True, False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "written",
    [{"web-01": ["sh"], "systemd": True}, {"by_host": {"web-01": ["sh"]}, "systemd": True}],
)
def test_requires_by_host(written: object) -> None:
    """[S5.6]"""
    requires = parsed(requires=written).requires
    assert (requires.by_host, requires.systemd) == ({"web-01": ("sh",)}, True)


@pytest.mark.parametrize(
    ("written", "says"),
    [
        (["a b"], "requires[0] must be the name of a command, without a path, not 'a b'"),
        (["/bin/sh"], "requires[0] must be the name of a command"),
        (["$(x)"], "requires[0] must be the name of a command"),
        (["-x"], "requires[0] must be the name of a command"),
        (["sh\n"], "requires[0] must be the name of a command"),
        ([7], "requires[0] must be a text, not 7; put it in quotes"),
        ({"web-01": "sh"}, "requires.web-01 must be a list, not 'sh'"),
        ({"web-01": ["users"]}, "requires.web-01[0] is asked of all hosts; write `users: true`"),
        ({"users": "yes"}, "requires.users must be true or false, not 'yes'"),
        ({"comands": ["sh"]}, "requires.comands 'comands' is no host of the scenario"),
        ("sh", "requires must be an object, not 'sh'"),
    ],
)
def test_no_requirement(written: object, says: str) -> None:
    """[S5.6] The path is that of the value as it was written."""
    assert refused(requires=written)[0].startswith(says)


def test_steps() -> None:
    """[S5.7]"""
    for part in ("setup", "reference", "restore"):
        (step,) = getattr(parsed(**{part: [STEP]}), part)
        assert (step.on, step.user, step.timeout, step.exit_code) == (None, None, None, 0)
        full = {**STEP, "on": "db-01", "user": "www-data", "timeout": 5, "exit_code": 255}
        (step,) = getattr(parsed(**{part: [full]}), part)
        assert (step.on, step.user, step.timeout, step.exit_code) == ("db-01", "www-data", 5.0, 255)


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"run": ""}, "run"),
        ({"run": None}, "run"),
        ({"user": "a b"}, "user"),
        ({"user": "-x"}, "user"),
        ({"user": "Root"}, "user"),
        ({"timeout": 0}, "timeout"),
        ({"timeout": "5s"}, "timeout"),
        ({"exit_code": 256}, "exit_code"),
        ({"fails": True}, "fails"),
    ],
)
def test_no_step(more: dict[str, Any], path: str) -> None:
    """[S5.7]"""
    (problem,) = refused(setup=[{**STEP, **more}])
    assert problem.startswith(f"setup[0].{path} ")


def test_ready() -> None:
    """[S5.8] One expectation, an exit status or any failure."""
    (check,) = parsed(ready=[STEP]).ready
    assert (check.exit_code, check.fails, check.within) == (None, False, 10.0)
    assert parsed(ready=[{**STEP, "fails": True, "within": 2.5}]).ready[0].fails
    assert parsed(ready=[{**STEP, "exit_code": 3, "fails": False}]).ready[0].exit_code == 3
    assert refused(ready=[{**STEP, "exit_code": 3, "fails": True}]) == [
        "ready[0] has both `exit_code` and `fails`"
    ]
    assert refused(ready=[{**STEP, "timeout": 3}])[0].startswith(
        "ready[0].timeout is not a known key"
    )


def test_limits() -> None:
    """[S5.9]"""
    limits = parsed().limits
    assert (limits.job_seconds, limits.command_seconds, limits.setup_seconds) == (1800, 60, 300)
    assert (
        parsed(limits={"job_seconds": 604800, "command_seconds": 0.5}).limits.setup_seconds == 300
    )
    assert refused(limits={"job_seconds": float("nan")})[0].startswith("limits.job_seconds must")
    assert refused(limits={"setup_seconds": float("inf")})[0].startswith(
        "limits.setup_seconds must"
    )


def test_replies() -> None:
    """[S5.10]"""
    (reply,) = parsed(replies=[{"when": "may I", "body": "yes"}]).replies
    assert (reply.when, reply.after, reply.body) == ("may I", None, "yes")
    assert refused(replies=[{"when": "a(", "body": "x"}])[0].startswith(
        "replies[0].when is no valid pattern: missing )"
    )
    assert refused(replies=[{"when": "", "body": "x"}]) == ["replies[0].when must not be blank"]


def test_a_number_is_shown_as_it_was_written() -> None:
    """[S1.4] Whoever looks for `-1.0` in a file with `-3` in it finds nothing."""
    assert refused(
        setup=[{"run": "true", "timeout": -3}],
        limits={"job_seconds": 0, "command_seconds": 604801, "setup_seconds": -0.5},
    ) == [
        "setup[0].timeout must be more than 0, not -3",
        "limits.job_seconds must be more than 0, not 0",
        "limits.command_seconds must be at most 604800, not 604801",
        "limits.setup_seconds must be more than 0, not -0.5",
    ]


def test_unknown_keys_everywhere() -> None:
    """[S4.1] At every level, with the known key that comes close, else with all of them."""
    step = {"run": "true", "usr": "x"}
    assert refused(
        tilte="x",
        hosts=[{"name": "web-01", "imag": "x"}],
        setup=[step],
        limits={"setup_second": 1},
        files=[{"from": "a", "to": "/a", "source": "a"}],
        zz=None,
    ) == [
        "hosts[0].imag is not a known key here; did you mean `image`?",
        "files[0].source is not a known key here; known: from, mode, on, owner, to",
        "setup[0].usr is not a known key here; did you mean `user`?",
        "limits.setup_second is not a known key here; did you mean `setup_seconds`?",
        "tilte is not a known key here; did you mean `title`?",
        "zz is not a known key here; known: description, files, hosts, key, limits, "
        "operational_rules, ready, reference, replies, requires, restore, setup, tags, "
        "ticket_body, ticket_title, title, validation",
    ]


OPTIONAL = [
    name for name, field in Scenario.model_fields.items() if not field.is_required()
]  # the keys that may be left out


@pytest.mark.parametrize("key", OPTIONAL)
def test_null_is_absent(key: str) -> None:
    """[S4.2]"""
    assert parsed(**{"hosts": None, key: None}) == parse_scenario(
        {k: v for k, v in BASE.items() if k != "hosts"}
    )


def test_null_further_down() -> None:
    """[S4.2] Likewise inside; not for a required key, and not in a list."""
    step = {"run": "true", "on": None, "user": None, "timeout": None, "exit_code": None}
    assert parsed(setup=[step]) == parsed(setup=[STEP])
    assert parsed(limits={"job_seconds": None}) == parsed(limits=None) == parsed()
    assert parsed(hosts=[{"name": "web-01", "image": None}]).hosts == parsed(hosts=["web-01"]).hosts
    assert refused(title=None) == ["title must be a text, not null"]
    assert refused(tags=[None]) == ["tags[0] must be a text, not null"]
    assert refused(setup=[None]) == ["setup[0] must be an object, not null"]


def test_missing_keys() -> None:
    """[S4.3]"""
    with pytest.raises(InvalidInput) as caught:
        parse_scenario({"files": [{}], "setup": [{"on": "x"}], "replies": [{}]})
    assert {str(p) for p in caught.value.problems if "missing" in str(p)} == {
        f"{path} is missing"
        for path in ("key", "title", "ticket_title", "files[0].from", "files[0].to", "setup[0].run",
                     "replies[0].when", "replies[0].body")
    }  # fmt: skip


@pytest.mark.parametrize("data", [None, [], "x", 5, True])
def test_no_object(data: object) -> None:
    """[S4.4]"""
    with pytest.raises(InvalidInput, match="must be an object"):
        parse_scenario(data)


def test_types() -> None:
    """[S4.4] Nothing is taken for what it is not."""
    assert refused(title=2026) == ["title must be a text, not 2026; put it in quotes"]
    assert refused(tags="a") == ["tags must be a list, not 'a'"]
    assert refused(setup=[{**STEP, "exit_code": 1.0}]) == [
        "setup[0].exit_code must be a whole number, not 1.0"
    ]
    assert refused(setup=[{**STEP, "exit_code": True}]) == [
        "setup[0].exit_code must be a whole number, not true"
    ]
    assert refused(validation={"gateway": []}) == ["validation must be a list, not an object"]


def test_blank_texts() -> None:
    """[S4.5] Blank where nothing may be blank; the ticket's texts may be empty."""
    assert refused(title=" \n") == ["title must not be blank"]
    assert refused(setup=[{"run": "\r\n "}]) == ["setup[0].run must not be blank"]
    assert parsed(ticket_title="", ticket_body="", description="").ticket_title == ""


def test_crlf_in_commands_alone() -> None:
    """[S4.6]"""
    scenario = parsed(
        setup=[{"run": "a\r\nb\rc"}],
        validation=[{"label": "l", "validator": "host_state", "run": "a\r\nb"}],
        ticket_body="a\r\nb",
    )
    assert scenario.setup[0].run == "a\nb\rc"
    assert getattr(scenario.validation[0], "run", None) == "a\nb"
    assert scenario.ticket_body == "a\r\nb"


def test_a_command_that_no_shell_can_be_given() -> None:
    """[S4.7]"""
    nul = "holds a NUL character, which no shell can be given"
    rule = {"label": "l", "validator": "host_state", "run": "a\0b"}
    assert refused(setup=[{"run": "\0"}], validation=[rule]) == [
        f"setup[0].run {nul}",
        f"validation[0].run {nul}",
    ]


def test_long_and_hostile_values_are_cut_and_shown_plainly() -> None:
    """A sentence stays one line, whatever the value holds."""
    for problem in (
        *refused(key="\x1b[2J" * 1000),
        *refused(**{"\x1b]0;x\x07\n" * 50: 1}),
        *refused(limits={"job_seconds": 10**5000}),
        *refused(requires={"\u202e\n": ["x"]}),
    ):
        assert problem.isprintable()
        assert len(problem) < 600
