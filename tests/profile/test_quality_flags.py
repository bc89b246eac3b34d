from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

import profiles
from waywiser.machine.machine import PlacedRank
from waywiser.profile.estimate import estimate
from waywiser.profile.quality_flags import CROWDED, REMEDIES, QualityFlag
from waywiser.words.records import Failure, GpuState, Samples, Series

WHAT = profiles.workload(profiles.H2D, 2**20)


def flags_of(*blocks: Samples, **options: Any) -> dict[str, QualityFlag]:
    visits = tuple(profiles.visit(WHAT, n, each, **options) for n, each in enumerate(blocks))
    found = estimate(Series(WHAT, visits), profiles.machine())
    assert found is not None
    return {flag.kind: flag for flag in found.quality_flags}


def quiet(median: float = 1e-3, **options: Any) -> Samples:
    return profiles.samples(random.Random(1), median, **options)


def spans(*values: float) -> Samples:
    return Samples(span=values, repetitions=(1,) * len(values), flags=(0,) * len(values))


def test_a_quiet_series_raises_no_quality_flag() -> None:
    assert flags_of(quiet(), quiet()) == {}


@pytest.mark.parametrize(
    ("kind", "blocks", "options"),
    [
        ("summary only", [quiet(flags=4)], {"stop": "limit"}),
        ("summary only", [quiet(flags=4, count=1)] * 7, {"stop": "limit"}),
        ("few samples", [quiet(count=5)], {}),
        ("not converged", [quiet()], {"stop": "budget"}),
        ("not converged", [quiet()], {"stop": "limit"}),
        ("blocks disagree", [quiet(1.0), quiet(1.1)], {}),
        ("drift", [spans(*[1.0] * 10, *[1.05] * 10)], {}),
        ("spread", [quiet(noise=0.2)], {}),
        ("outliers", [spans(*[1.0, 1.01, 0.99] * 5, 1.6)], {}),
        ("throttled", [quiet()], {"gpu_states": [GpuState(0, throttle=("sw_power_cap",))]}),
        ("slow link", [quiet()], {"gpu_states": [GpuState(0, pcie_generation=5, pcie_width=8)]}),
        ("above bound", [quiet(1e-6)], {}),
        ("below resolution", [quiet(flags=2)], {}),
        ("misplaced", [quiet()], {"state": "misplaced"}),
        ("unverified", [quiet()], {"state": "unverified"}),
        ("outlier process", [quiet(1.0)] * 7 + [quiet(2.2)], {}),
        ("void", [Samples(span=(1e-3,) * 12, flags=(0,) * 11 + (1,))], {}),
    ],
)
def test_each_trouble_is_reported_alone_with_its_remedy(
    kind: str, blocks: list[Samples], options: dict[str, Any]
) -> None:
    found = flags_of(*blocks, **options)
    assert list(found) == [kind]
    assert found[kind].remedy in str(found[kind])
    assert found[kind].what


def test_nobody_knows_where_memory_is_that_moves_by_itself() -> None:
    prefetch = "managed[advice=preferred]@numa:0 -> managed@gpu:0 by prefetch"
    visit = profiles.visit(profiles.workload(prefetch, 2**20), 0, quiet(), state="unverified")
    found = estimate(Series(visit.workload, (visit,)))
    assert found is not None and not found.quality_flags


def test_a_failed_block_beside_a_good_one_is_reported() -> None:
    good = profiles.visit(WHAT, 0, quiet())
    gone = profiles.visit(WHAT, 1, failure=Failure("crash", "the worker died of SIGSEGV"))
    found = estimate(Series(WHAT, (good, gone)))
    assert found is not None
    assert [flag.kind for flag in found.quality_flags] == ["failed block"]
    assert "SIGSEGV" in found.quality_flags[0].what


def test_ranks_that_share_cpus_are_reported() -> None:
    what = profiles.workload("pageable@rank:0 -> pageable@rank:1 by mpi", 2**20)
    for cpus, kinds in ((0, [CROWDED]), (1, [])):
        ranks = (PlacedRank(0, (0,), 0), PlacedRank(1, (cpus,), 0))
        here = msgspec.structs.replace(profiles.machine(), ranks=ranks)
        found = estimate(Series(what, (profiles.visit(what, 0, quiet()),)), here)
        assert found is not None and [flag.kind for flag in found.quality_flags] == kinds


def test_every_kind_has_a_test_and_a_remedy() -> None:
    marks = test_each_trouble_is_reported_alone_with_its_remedy.pytestmark  # type: ignore[attr-defined]
    tested = {case[0] for mark in marks for case in mark.args[1]}
    assert tested | {"failed block", CROWDED} == set(REMEDIES)
    assert all(REMEDIES.values())


def test_small_differences_between_sharp_blocks_are_no_disagreement() -> None:
    assert flags_of(quiet(1.0, noise=1e-5), quiet(1.01, noise=1e-5)) == {}


def test_a_far_sample_that_the_body_explains_is_no_outlier() -> None:
    found = flags_of(spans(*[0.6, 0.8, 1.0, 1.2, 1.4] * 4, 1.6))
    assert "outliers" not in found and "spread" in found


def test_link_of_a_copy_between_gpus_is_not_assessed() -> None:
    what = profiles.workload(profiles.PEER, 2**20)
    idle = [GpuState(0, pcie_generation=1, pcie_width=16)]
    visit = profiles.visit(what, 0, quiet(), gpu_states=idle)
    found = estimate(Series(what, (visit,)), profiles.machine())
    assert found is not None and found.quality_flags == ()


def test_without_a_machine_nothing_is_said_of_links() -> None:
    slow = [GpuState(0, pcie_generation=1, pcie_width=16)]
    found = estimate(Series(WHAT, (profiles.visit(WHAT, 0, quiet(), gpu_states=slow),)))
    assert found is not None and found.quality_flags == ()
