"""Bounds that large copies exceed are wrong; those that a cache exceeds near its size are not."""

from __future__ import annotations

import msgspec
import pytest
from tests.analysis.questions.subjects import curve, postal, subject
from tests.profiles import D2H, H2D, PEER, machine

from waywiser.analysis.questions import efficiency, trust
from waywiser.curves.curve import Point
from waywiser.curves.subject import Subject

WITHIN = "device@gpu:0 -> device@gpu:0 by copy-engine"
PAGEABLE = "pageable@numa:0 -> device@gpu:0 by copy-engine"


def points(found: Subject, text: str) -> list[Point]:
    return [point for point in found.overview.series if point.curve == text]


def quality_flags(found: Subject) -> set[str]:
    return {
        flag.kind
        for point in found.overview.series
        if point.estimate is not None
        for flag in point.estimate.quality_flags
    }


def test_a_bound_that_large_copies_exceed_is_unknown_and_no_cache_is_named() -> None:
    fast = postal(2.5e-6, 281e9)  # 446 % of PCIe 5 x16
    found = subject(
        curve(H2D, fast), curve(PAGEABLE, postal(5e-6, 12e9)), curve(D2H, postal(2.5e-6, 55e9))
    )
    for text in (H2D, PAGEABLE):
        assert {(point.bound, point.of_bound) for point in points(found, text)} == {(None, None)}
    assert all(point.of_bound for point in points(found, D2H))
    (group,) = found.overview.unbounded
    assert group.reason.startswith("the bound of PCIe to gpu:0 is wrong (PCIe 5 x16: ")
    assert group.reason.endswith("reach 281 GB/s, which exceeds all caches")
    assert set(group.members) == {H2D, PAGEABLE}
    assert "above bound" not in quality_flags(found)
    assert "above bound" not in {group.reason for group in found.overview.warnings}
    said = " ".join(each.statement for each in efficiency.answer(found).findings)
    assert "446%" not in said and "cache" not in said
    assert not any("cache" in each.statement for each in trust.answer(found).findings)


def test_a_bound_that_is_exceeded_by_less_stays() -> None:
    found = subject(curve(H2D, postal(2.5e-6, 65e9)))  # 103 %
    assert points(found, H2D)[-1].of_bound == pytest.approx(1.03, abs=0.01)
    assert quality_flags(found) == {"above bound"}
    assert found.overview.unbounded == ()


def test_what_a_gpus_cache_serves_faster_leaves_the_bound_of_its_memory() -> None:
    gpus = tuple(
        msgspec.structs.replace(gpu, clock_memory_max_mhz=3200, memory_bus_bits=6000)
        for gpu in machine().gpus
    )
    known = msgspec.structs.replace(machine(), gpus=gpus)
    peak = 3200e6 * 2 * 6000 / 8 / 2

    def seconds(size: int) -> float:
        return 1e-6 + size / (1.6 * peak if size <= 2**25 else 0.9 * peak)

    found = subject(curve(WITHIN, seconds, seed=1), machine=known)
    assert max(point.of_bound or 0 for point in points(found, WITHIN)) > 1.2
    assert points(found, WITHIN)[-1].of_bound == pytest.approx(0.9, abs=0.01)
    assert quality_flags(found) == {"above bound"}
    wrong = subject(curve(WITHIN, postal(1e-6, 1.2 * peak)), machine=known)
    assert {point.of_bound for point in points(wrong, WITHIN)} == {None}


def test_copies_between_gpus_say_nothing_of_their_links_to_the_host() -> None:
    bare = tuple(msgspec.structs.replace(gpu, nvlinks=()) for gpu in machine().gpus)
    found = subject(
        curve(PEER, postal(2.5e-6, 281e9)),
        curve(D2H, postal(2.5e-6, 55e9)),
        machine=msgspec.structs.replace(machine(), gpus=bare),
    )
    assert {point.bound for point in points(found, PEER)} == {None}
    assert all(point.of_bound for point in points(found, D2H))


def test_small_copies_disprove_no_bound() -> None:
    found = subject(curve(H2D, postal(0, 70e9), [2**n for n in range(3, 24)]))
    assert points(found, H2D)[-1].of_bound is not None
