"""Every golden case by every path: patterns together or one by one, records read whole or light."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.golden.test_grading_golden import ALL, BASE_RECORD, _scenario
from tests.unit.grading.test_grading_properties import PlainSearcher

from opsdrill.grading.engine import Grader, grade
from opsdrill.model.host import HostAnswers
from opsdrill.model.job import JobRecord
from opsdrill.model.sealed import read_record
from opsdrill.patterns import BoundedSearcher
from opsdrill.store import documents


@pytest.fixture(scope="module")
def searcher() -> Iterator[BoundedSearcher]:
    with BoundedSearcher(PlainSearcher.seconds) as bounded:
        yield bounded


@pytest.mark.parametrize("name", ALL)
def test_all_paths_give_one_grade(name: str, searcher: BoundedSearcher) -> None:
    """A regrade of many is the same function as a grade of one. [G7.1, G7.2, G11.1]"""
    case = ALL[name]
    scenario = _scenario(case)
    record = JobRecord.model_validate(BASE_RECORD | case.record)
    answers = HostAnswers.model_validate({"answers": case.answers}).answers
    expected = grade(scenario, record, answers, PlainSearcher())
    grader = Grader(scenario, searcher)
    sealed = read_record(documents.dump(documents.RECORD, record))
    for read in (record, sealed, record):
        assert grader.grade(read, answers) == expected
