"""The secrets of lab and settings together: what is masked, and what is said of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from opsdrill.app.secrets import known_secrets, mask_error
from opsdrill.app.settings import Settings
from opsdrill.app.wiring import Place
from opsdrill.errors import UsageError
from opsdrill.evidence.mask import Mask
from opsdrill.model.lab import Lab
from opsdrill.model.run import LabChoice
from opsdrill.model.secret import SecretSource


def choice(folder: Path, **secrets: dict[str, object]) -> LabChoice:
    lab = Lab.model_validate({"driver": "fake", "secrets": secrets})
    return LabChoice(name="lab", driver="fake", folder=str(folder), lab=lab)


def place(folder: Path, **secrets: SecretSource) -> Place:
    return Place(folder / "home", folder, Settings(secrets=secrets))


def test_secrets_of_lab_and_settings_are_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that no host needs: any of them may come out of a host."""
    monkeypatch.setenv("OF_LAB", "the-lab's-value")
    (tmp_path / "s.txt").write_text("the-settings-value\n")
    (tmp_path / "s.txt").chmod(0o600)
    found = known_secrets(
        place(tmp_path, SETTING=SecretSource(file="s.txt")),
        choice(tmp_path, LAB={"env": "OF_LAB"}, PRINTED={"command": "echo printed-value"}),
    )
    text = "the-lab's-value the-settings-value printed-value"
    assert found.mask.text(text) == "[masked:LAB] [masked:SETTING] [masked:PRINTED]"
    assert found.mask.warnings == ()
    assert found.lab.value("LAB") == "the-lab's-value"


def test_a_secret_that_cannot_be_had_is_a_warning(tmp_path: Path) -> None:
    """It says why and what follows, and the others are masked all the same."""
    found = known_secrets(
        place(tmp_path, GONE=SecretSource(env="NOT_SET_ANYWHERE")),
        choice(tmp_path, BAD={"command": "echo oops; exit 3"}, GOOD={"command": "echo a-value"}),
    )
    assert found.mask.text("a-value") == "[masked:GOOD]"
    warnings = " ".join(found.mask.warnings)
    assert len(found.mask.warnings) == 2
    assert "'GONE' cannot be had: the environment variable NOT_SET_ANYWHERE is not set" in warnings
    assert "'BAD' cannot be had: its command ended with status 3; so it is not masked" in warnings
    assert "oops" not in warnings


def test_a_reference_that_was_masked_itself_is_not_followed(tmp_path: Path) -> None:
    """A kept lab may have lost a token from a command: what that prints now is no secret."""
    kept = choice(tmp_path, A={"command": "echo [masked:vault-token]"})
    found = known_secrets(place(tmp_path), kept)
    assert "was a secret itself" in found.mask.warnings[0]
    assert found.mask.known.isdisjoint({"A"})


def test_an_error_is_told_without_a_secret() -> None:
    error = UsageError("cannot log in with hunter2x", hint="not with hunter2x")
    mask_error(Mask([("PW", "hunter2x")]), error)
    assert (str(error), error.message, error.hint) == (
        "cannot log in with [masked:PW]",
        "cannot log in with [masked:PW]",
        "not with [masked:PW]",
    )
