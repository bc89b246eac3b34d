from __future__ import annotations

import math

import pytest

from waywiser.measure.plan.findings import Findings, VisitMedian
from waywiser.words import Workload
from waywiser.words.records import Samples, Visit

pytestmark = pytest.mark.usefixtures("scripted")

MIB = 2**20
FIRST = "pinned@numa:0 -> device@gpu:0 by copy-engine"
OTHER = "pinned@numa:0 -> device@gpu:1 by copy-engine"


def found(size: int, median: float, half: float = 0.0) -> VisitMedian:
    return VisitMedian(size, median, median - half, median + half)


def visit(path: str, size: int, *spans: float, block: int = 0) -> Visit:
    samples = Samples(span=spans, flags=(0,) * len(spans))
    workload = Workload.parse(f"{path} of {size}")
    return Visit(workload, block, "converged", "2026-01-01T00:00:00", samples=samples)


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        (found(MIB, 1.0), found(MIB, 1.06), True),
        (found(MIB, 1.0), found(MIB, 1.04), False),
        (found(MIB, 1.0, 0.05), found(MIB, 1.10, 0.06), False),  # their intervals meet
        (found(MIB, 1.0, 0.02), found(MIB, 1.10, 0.02), True),
        (found(8, 1.0), found(8, 1.19), False),
        (found(8, 1.0), found(8, 1.21), True),
        (
            found(MIB, 1.0),
            VisitMedian(MIB, 2.0, math.nan, math.nan),
            False,
        ),  # nothing is known of it
    ],
)
def test_a_difference_is_beyond_the_margin_and_both_intervals(
    one: VisitMedian, other: VisitMedian, differ: bool
) -> None:
    assert one.differs(other) == other.differs(one) == differ


def test_curves_differ_once_they_did_in_a_block_before() -> None:
    findings = Findings()
    for block, factor in ((0, 1.0), (1, 2.0), (2, 1.0)):
        findings.add(visit(FIRST, MIB, *[1.0] * 6, block=block))
        findings.add(visit(OTHER, MIB, *[factor] * 6, block=block))
    assert [findings.differ(OTHER, FIRST, block) for block in range(3)] == [False, True, True]


def test_only_sizes_that_both_have_are_compared() -> None:
    findings = Findings()
    for path, size in ((FIRST, 8), (FIRST, MIB), (OTHER, MIB), (OTHER, 2 * MIB)):
        findings.add(visit(path, size, *[1.0] * 6))
    assert findings.compared(OTHER, FIRST, 0) == (MIB,)
    assert findings.compared(OTHER, FIRST, 1) == ()


def test_a_visit_without_samples_says_nothing() -> None:
    findings = Findings()
    findings.add(visit(FIRST, MIB))
    findings.add(visit(OTHER, MIB, *[1.0] * 6))
    assert findings.compared(OTHER, FIRST, 0) == ()
    assert not findings.differ(OTHER, FIRST, 0)
