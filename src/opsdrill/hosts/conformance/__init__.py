"""Conformance: what every driver must keep, as checks that can be run on any of them.

check         a check: its sentence, what it takes, what it needs
asking        what checks ask of a host, and how they say what they saw
suite         all checks
examination   runs them and tells what became of each

shells, texts, statuses, processes, outputs, files, changes, fleets: the checks, by what they are of
"""

from opsdrill.hosts.conformance.check import Check, Outcome
from opsdrill.hosts.conformance.examination import examine, examine_one
from opsdrill.hosts.conformance.suite import CHECKS

__all__ = ["CHECKS", "Check", "Outcome", "examine", "examine_one"]
