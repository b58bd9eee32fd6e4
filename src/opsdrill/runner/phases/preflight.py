"""Preflight: what can be known to fail before anything is made."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from opsdrill.agents.adapter import Adapter, AdapterContext
from opsdrill.errors import DriverUnavailable, InvalidInput, InvalidPattern, Problem
from opsdrill.hosts.driver import Driver, Finding
from opsdrill.model.agent import AgentSettings
from opsdrill.model.rules import PatternMatch
from opsdrill.model.run import RunSpec
from opsdrill.model.scenario import Scenario
from opsdrill.patterns import compile_pattern
from opsdrill.store.folder import left_behind


def context_of(spec: RunSpec, home: Path | None = None) -> AdapterContext:
    """What the run's adapter is told when it is made.

    Args:
        home: the data folder.
    """
    folders = (home, Path(spec.lab.folder) if spec.lab.folder else None)
    return AdapterContext(
        argument=spec.agent.argument,
        folder=Path(spec.agent.folder) if spec.agent.folder else None,
        scenario_folder=Path(spec.scenario_folder) if spec.scenario_folder else None,
        reference=spec.scenario.reference,
        settings=spec.agent.settings or AgentSettings(),
        run=spec.id,
        keep=left_behind(home, spec.id) if home else None,
        hidden=tuple(folder for folder in folders if folder is not None),
    )


async def preflight(scenario: Scenario, driver: Driver, adapter: Adapter) -> None:
    """Make sure that rules, lab and agent can work.

    Raises:
        InvalidInput: a rule that could not be graded.
        DriverUnavailable: the lab cannot give the hosts.
        AgentUnavailable: the agent cannot start.
    """
    check_rules(scenario)
    if scenario.hosts:
        check_findings(driver.name, await driver.preflight(scenario.hosts))
    await adapter.preflight(scenario.host_names)


def check_rules(scenario: Scenario) -> None:
    """Compile every pattern, so that none is found broken after the agent worked."""
    problems = []
    for index, rule in enumerate(scenario.validation):
        if isinstance(rule, PatternMatch):
            try:
                compile_pattern(rule.pattern)
            except InvalidPattern as error:
                problems.append(Problem(f"validation[{index}].pattern", str(error)))
    if problems:
        raise InvalidInput(f"scenario {scenario.key}", problems)


def check_findings(driver: str, findings: Sequence[Finding]) -> None:
    """Stop at a finding that keeps the driver from working, and say what mends it."""
    for finding in findings:
        if finding.blocks and not finding.good:
            detail = f" ({finding.detail})" if finding.detail else ""
            said = finding.lab_line is None
            trouble = "cannot give hosts here" if said else "needs a lab that says more"
            raise DriverUnavailable(
                f"the driver {driver} {trouble}: {finding.what}{detail}", hint=finding.remedy
            )
