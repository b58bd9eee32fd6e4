"""Whole models masked: every text in them, and what cannot be masked stays valid and is told."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from opsdrill.errors import UsageError
from opsdrill.evidence.mask import Mask
from opsdrill.evidence.masked_spec import MaskedSpecs, masked_scenario, masked_spec
from opsdrill.evidence.masking import Masking, masked
from opsdrill.evidence.recorder import Recorder
from opsdrill.model.event import (
    JobCreated,
    JobEvent,
    Said,
    TaskCreated,
    TaskStarted,
    ToolCalled,
    ToolReturned,
)
from opsdrill.model.host import HostAnswer
from opsdrill.model.lab import Lab
from opsdrill.model.run import AgentChoice, LabChoice, RunSpec, StoredFile
from opsdrill.model.scenario import Scenario
from opsdrill.model.ticket import Ticket

VALUE = "hunter2-x9"
SHOWN = "[masked:PW]"
MASK = Mask([("PW", VALUE)])


def scenario(**fields: object) -> Scenario:
    return Scenario.model_validate(
        {"key": "drill", "title": "t", "ticket_title": "t", "hosts": ["web-01"], **fields}
    )


def spec(made: Scenario, **fields: Any) -> RunSpec:
    return RunSpec(
        **{
            "id": "r1",
            "scenario": made,
            "scenario_version": made.version(),
            "agent": AgentChoice(adapter="script", argument="a.yaml"),
            "lab": LabChoice(name="sandbox", driver="sandbox"),
            "created_at": datetime(2026, 1, 31, tzinfo=UTC),
            **fields,
        }
    )


def test_a_model_without_a_secret_is_the_very_same_object() -> None:
    event = ToolCalled(task="t", call="c", kind="shell", arguments={"command": "ls"})
    assert masked(MASK, event) is event


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": f"mysql -p{VALUE}"},
        {"command": "x", "env": {"A": [VALUE, 1, None, {"deep": VALUE}]}},
        {"command": "x", VALUE: 1},
    ],
)
def test_arguments_are_masked_however_deep(arguments: JsonValue) -> None:
    event = ToolCalled(task="t", call="c", kind="shell", arguments=arguments)
    told = masked(MASK, event)
    assert VALUE not in told.model_dump_json()
    assert SHOWN in told.model_dump_json()


def test_two_keys_that_look_alike_when_masked_both_stay() -> None:
    mask = Mask([("PW", VALUE), ("PW", "the-other-one")])
    arguments: JsonValue = {"command": "", VALUE: 1, "the-other-one": 2}
    event = ToolCalled(task="t", call="c", kind="shell", arguments=arguments)
    assert masked(mask, event).arguments == {"command": "", SHOWN: 1, f"{SHOWN} (2)": 2}


def test_words_of_the_format_are_no_text() -> None:
    """A secret that is `shell` or `completed` does not break the record."""
    mask = Mask([("A", "shell"), ("B", "timed_out"), ("C", "tool_called")])
    called = ToolCalled(task="t", call="c", kind="shell", arguments={"command": "a shell"})
    told = masked(mask, called)
    assert (told.event, told.kind, told.arguments) == (
        "tool_called",
        "shell",
        {"command": "a [masked:A]"},
    )
    returned = ToolReturned(task="t", call="c", outcome="timed_out", output="timed_out")
    told_too = masked(mask, returned)
    assert (told_too.outcome, told_too.output) == ("timed_out", "[masked:B]")


PIECES = st.lists(st.sampled_from([VALUE, "a", " ", "\n", "hunter", "[masked:PW]"])).map("".join)
JSON: st.SearchStrategy[JsonValue] = st.recursive(
    PIECES | st.integers() | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PIECES, inner, max_size=3),
    max_leaves=8,
)


@given(PIECES, JSON)
def test_masked_models_are_valid_hold_no_secret_and_stay_so(text: str, value: JsonValue) -> None:
    for model in (
        Said(task=text, text=text),
        ToolCalled(task="t", call=text, kind="mcp", tool=text, arguments=value),
        HostAnswer(on=text, run=text, exit_code=0, stdout=text, stderr=text, reason=text),
    ):
        told = masked(MASK, model)
        assert VALUE not in told.model_dump_json()
        assert type(model).model_validate_json(told.model_dump_json()) == told
        assert masked(MASK, told) == told


# the planned run

FULL = {
    "title": f"t {VALUE}",
    "description": VALUE,
    "tags": [VALUE],
    "ticket_title": VALUE,
    "ticket_body": f"log in with {VALUE}",
    "operational_rules": [f"never print {VALUE}"],
    "files": [{"from": f"files/{VALUE}.txt", "to": f"/etc/{VALUE}.txt"}],
    "setup": [{"run": f"echo {VALUE} >/etc/pw"}],
    "ready": [{"run": f"grep {VALUE} /etc/pw"}],
    "reference": [{"run": f"sed -i s/{VALUE}// /etc/pw"}],
    "restore": [{"run": f"echo {VALUE}"}],
    "replies": [{"when": f"is it {VALUE}", "body": VALUE}],
    "validation": [
        {"label": f"no {VALUE}", "validator": "host_state", "run": f"! grep {VALUE} /etc/pw"},
        {"label": "said", "validator": "pattern_match", "pattern": r"hunter2\-x9",
         "where": "executed_commands"},
    ],
}  # fmt: skip


def test_runs_in_a_row_are_kept_as_each_of_them_alone() -> None:
    """Runs of one scenario are masked once; another agent, label, lab or scenario is not taken for
    the same."""
    made, same = scenario(**FULL), scenario(**FULL)
    alone = [
        spec(made, id="r1"),
        spec(made, id="r2", repeat=2, created_at=datetime(2026, 2, 1, tzinfo=UTC)),
        spec(same, id="r3"),
        spec(made, id="r4", agent=AgentChoice(adapter="script", argument=f"{VALUE}.yaml")),
        spec(made, id="r5", labels={"a": VALUE}),
        spec(made, id="r6", labels={"b": VALUE}),
        spec(scenario(), id="r7"),
        spec(scenario(title=VALUE), id="r8", lab=LabChoice(name=VALUE, driver="sandbox")),
    ]
    masked = MaskedSpecs(lambda _lab: MASK)
    kept = [masked.of(one) for one in alone]
    assert [one.spec for one in kept] == [masked_spec(MASK, one).spec for one in alone]
    assert [one.warnings for one in kept] == [masked_spec(MASK, one).warnings for one in alone]
    again = masked.of(spec(made, id="r9"))
    assert masked.of(spec(made, id="r10", repeat=2)).spec.scenario is again.spec.scenario


def test_a_secret_that_is_learned_between_two_runs_is_masked_in_the_second() -> None:
    masks = [Mask(()), MASK]
    masked = MaskedSpecs(lambda _lab: masks[0])
    made = scenario(title=VALUE)
    assert masked.of(spec(made, id="r1")).spec.scenario.title == VALUE
    del masks[0]
    assert VALUE not in masked.of(spec(made, id="r2")).spec.model_dump_json()


def test_a_run_is_kept_without_any_secret_and_can_be_read_back() -> None:
    true = spec(
        scenario(**FULL),
        agent=AgentChoice(adapter="script", argument=f"{VALUE}.yaml", folder=f"/a/{VALUE}"),
        labels={VALUE: VALUE},
        scenario_folder=f"/b/{VALUE}",
        lab=LabChoice(name=VALUE, driver="sandbox", options={"a": VALUE}, folder=f"/{VALUE}"),
    )
    kept = masked_spec(MASK, true)
    stored = kept.spec.model_dump_json(by_alias=True)
    assert VALUE not in stored
    assert r"hunter2\\-x9" not in stored
    assert RunSpec.model_validate_json(stored) == kept.spec
    assert kept.spec.masked == ("PW",)
    assert kept.spec.scenario_version == true.scenario_version


def test_a_rule_is_kept_as_it_meets_the_evidence() -> None:
    """In a rule's `run` too, so that kept answers still match; a pattern finds what is masked."""
    rules = masked_spec(MASK, spec(scenario(**FULL))).spec.scenario.validation
    assert rules[0].run == f"! grep {SHOWN} /etc/pw"  # type: ignore[union-attr]
    assert rules[1].pattern == r"\[masked:PW\]"  # type: ignore[union-attr]
    assert masked_scenario(MASK, scenario(**FULL))[0].validation == rules


def test_commands_and_patterns_with_a_secret_are_warned_of() -> None:
    """At the start of a run, with the place, the name and what to write; never the value."""
    warnings = masked_spec(MASK, spec(scenario(**FULL))).warnings
    places = [warning.split()[0] for warning in warnings]
    assert places == [
        "setup[0].run", "ready[0].run", "reference[0].run", "restore[0].run", "replies[0].when",
        "validation[0].run", "validation[1].pattern",
    ]  # fmt: skip
    assert r"look for \[masked:PW\]" in warnings[-1]
    assert VALUE not in " ".join(warnings)


def test_a_run_without_a_secret_is_kept_as_it_is() -> None:
    true = spec(scenario())
    kept = masked_spec(MASK, true)
    assert kept.spec is true
    assert kept.warnings == ()


def test_names_that_a_run_cannot_do_without_stay_and_are_warned_of() -> None:
    """`vagrant` may be password, host, user and image at once: the run still works."""
    mask = Mask([("PW", "vagrant")])
    lab = Lab.model_validate(
        {
            "driver": "ssh",
            "defaults": {"user": "vagrant", "image": "vagrant", "password": "PW"},
            "images": {"vagrant": {"container": "debian:12"}},
            "hosts": {"vagrant": {"address": "vagrant", "key": "/home/vagrant/.ssh/id"}},
            "secrets": {"PW": {"env": "VAGRANT_PW"}},
        }
    )
    made = scenario(
        hosts=["vagrant"], setup=[{"run": "id vagrant", "on": "vagrant", "user": "vagrant"}]
    )
    choice = LabChoice(name="lab", driver="ssh", lab=lab)
    kept = masked_spec(mask, spec(made, lab=choice))
    told = kept.spec
    assert told.scenario.host_names == ("vagrant",)
    assert (told.scenario.setup[0].on, told.scenario.setup[0].user) == ("vagrant", "vagrant")
    assert told.scenario.setup[0].run == "id [masked:PW]"
    assert told.lab.lab is not None
    assert told.lab.lab.hosts["vagrant"].key == "/home/[masked:PW]/.ssh/id"
    assert RunSpec.model_validate_json(told.model_dump_json(by_alias=True)) == told
    assert any("'PW' is part of a name" in warning for warning in kept.warnings)
    answer = HostAnswer(on="vagrant", run="id vagrant", exit_code=0, user="vagrant")
    kept_answer = masked(kept.mask, answer)
    assert (kept_answer.on, kept_answer.user, kept_answer.run) == (
        "vagrant",
        "vagrant",
        "id [masked:PW]",
    )


def test_support_files_are_told_by_the_digest_of_what_is_kept() -> None:
    content = f"password={VALUE}\n".encode()
    made = scenario(files=[{"from": "a.txt", "to": "/etc/a.txt"}])
    file = StoredFile(source="a.txt", digest="d" * 64, size=len(content))
    other = StoredFile(source="b.txt", digest="e" * 64, size=3)
    kept = masked_spec(MASK, spec(made, files=(file, other)), {"d" * 64: content}).spec
    assert kept.files[1] == other
    assert kept.files[0].size == len(f"password={SHOWN}\n")
    assert kept.files[0].digest != file.digest
    assert kept.masked == ("PW",)


def test_where_nothing_can_stand_in_its_place_the_run_is_refused() -> None:
    """Rather than kept with the secret, or so that it cannot be read back."""
    mask = Mask([("PW", "/opt/secret-place")])
    made = scenario(files=[{"from": "a.txt", "to": "/opt/secret-place"}])
    with pytest.raises(UsageError, match=r"a secret \(PW\) cannot be masked in a place") as caught:
        masked_spec(mask, spec(made))
    assert "secret-place" not in str(caught.value)


def test_what_walked_is_remembered() -> None:
    walk = Masking(Mask([("HOST", "web-01"), ("PW", VALUE)]))
    walk.of(scenario(title=VALUE))
    assert walk.names == {"HOST", "PW"}
    assert walk.left == {"web-01"}


def test_an_unfit_secret_is_a_warning_of_the_run() -> None:
    assert len(masked_spec(Mask([("PIN", "1")]), spec(scenario())).warnings) == 1


# the recorder


class Sink(list[JobEvent]):
    def append(self, seq: int, event: JobEvent) -> None:  # type: ignore[override]
        super().append(event)


def test_a_recorder_keeps_no_secret() -> None:
    """Events, the record's ticket, and what it refuses an event with."""
    sink = Sink()
    recorder = Recorder(sink, Ticket(title=VALUE, body=VALUE), mask=MASK)
    recorder.record(JobCreated(job=VALUE))
    recorder.record(TaskCreated(task="t", host="web-01", description=VALUE))
    recorder.record(TaskStarted(task="t"))
    arguments: JsonValue = {"path": f"/etc/{VALUE}", "content": VALUE}
    recorder.record(ToolCalled(task="t", call=VALUE, kind="write_file", arguments=arguments))
    recorder.record(ToolReturned(task="t", call=VALUE, outcome="ran", output=VALUE))
    with pytest.raises(Exception, match="no call '") as caught:
        recorder.record(ToolReturned(task="t", call=VALUE, outcome="ran"))
    assert VALUE not in str(caught.value)
    assert VALUE not in "".join(event.model_dump_json() for event in sink)
    assert VALUE not in recorder.job_record().model_dump_json()


def test_a_recorder_masks_before_it_cuts() -> None:
    """A secret where the middle is left out must not stay in halves."""
    half = 128 * 1024
    for shift in range(len(VALUE) + 1):
        sink = Sink()
        recorder = Recorder(sink, Ticket(), mask=MASK)
        recorder.record(JobCreated(job="j"))
        recorder.record(TaskCreated(task="t", host="web-01"))
        recorder.record(TaskStarted(task="t"))
        recorder.record(ToolCalled(task="t", call="c", kind="shell", arguments={"command": "cat"}))
        text = "a" * (half - shift) + VALUE + "b" * half * 2
        recorder.record(ToolReturned(task="t", call="c", outcome="ran", output=text))
        kept = sink[-1]
        assert isinstance(kept, ToolReturned)
        assert kept.output is not None
        assert not any(VALUE[:size] in kept.output for size in range(3, len(VALUE) + 1))
