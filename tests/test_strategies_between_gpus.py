"""The benchmark of strategies between two GPUs: what it measures and says of planted times."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest
from tests.measure.plan.machines import machine

from profiles import ENVIRONMENT, samples, visit
from profiles import machine as profiled
from profiles import workload as sized
from script_module import script_module
from waywiser.machine.machine import NumaNode
from waywiser.measure.plan.requested_workloads import requested_curves
from waywiser.measure.ranks.placement import place_ranks
from waywiser.profile import WritableProfile
from waywiser.words import Workload

FILE = Path(__file__).parents[1] / "benchmarks" / "strategies.py"


strategies = script_module(FILE)


def planted(sizes: tuple[int, ...], start: float, rate: float) -> dict[int, float]:
    return {size: start + size / rate for size in sizes}


@pytest.mark.parametrize("per_gpu", [1, 2, 8])
def test_a_survey_stores_the_curves_under_the_texts_that_are_read(per_gpu: int) -> None:
    bare = msgspec.structs.replace(machine(gpus=2), numa=(NumaNode(0, tuple(range(16)), 2**36, 0),))
    here = msgspec.structs.replace(bare, ranks=place_ranks(bare, 2 * per_gpu, per_gpu))
    curves = strategies.planned(per_gpu).curves
    found = requested_curves([f"{curve.text} of {curve.sizes[0]}" for curve in curves], here)
    assert [curve.text for curve in found] == [curve.text for curve in curves]


def test_planted_crossings_are_found_and_predicted() -> None:
    sizes = strategies.SIZES
    one, other = planted(sizes, 10e-6, 1e9), planted(sizes, 50e-6, 10e9)
    (crossing,) = strategies.crossings(("one", "other"), one, other)
    true = 40e-6 / (1 / 1e9 - 1 / 10e9)
    assert crossing.faster == "other" and true / 1.3 < crossing.bytes < true * 1.3
    curves = [strategies.Curve(name, name, sizes) for name in ("one", "other")]
    (checked,) = strategies.checked("message", curves, {"one": one, "other": other})
    assert checked.is_right and checked.predicted == pytest.approx(true, rel=0.2)
    errors = strategies.errors(one)
    assert set(errors) == set(strategies.HELD_OUT)
    assert max(map(abs, errors.values())) < 0.05


def test_a_crossing_that_is_not_predicted_is_wrong() -> None:
    sizes = strategies.SIZES
    one = planted(sizes, 10e-6, 1e9)
    other = {size: 2 * one[size] for size in sizes} | {2**16: one[2**16] / 2}
    curves = [strategies.Curve(name, name, sizes) for name in ("one", "other")]
    found = list(strategies.checked("message", curves, {"one": one, "other": other}))
    assert len(found) == 2 and not any(each.is_right for each in found)
    similar = {size: 1.05 * seconds for size, seconds in one.items()}
    assert strategies.crossings(("one", "similar"), one, similar) == []


def test_the_page_has_all_that_was_measured(tmp_path: Path) -> None:
    plan = strategies.planned(2)
    rng = random.Random(3)
    file = tmp_path / "fast.wwp"
    with WritableProfile.create(file, profiled(), ENVIRONMENT) as profile:
        for n, curve in enumerate(plan.curves):
            for size in curve.sizes:
                taken = samples(rng, (n + 1) * 1e-5 + size / 1e9 / (n + 1))
                profile.commit_visit(visit(sized(curve.text, size), 0, taken, mode="host"))
    times = strategies.read(file)
    assert times.keys() == {Workload.parse(curve.text).curve for curve in plan.curves}
    result = strategies.result_of("tcp", 1.0, True, times, plan)
    assert result.median_error < 0.05 and result.crossings
    text = strategies.page([result], plan, "two GPUs", 2, strategies.mps_text())
    for title in ("Message from GPU to GPU", "In chunks", "alltoallv, one neighbour", "Crossings"):
        assert f"### {title}" in text
    assert "UCX_TLS=tcp,self,cuda_copy" in text and "Multi-Process Service did" in text


def test_only_the_transport_changes_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("UCX_RNDV_THRESH", "8192")
    fast, tcp = (strategies.environment(each, None) for each in ("fast", "tcp"))
    assert tcp == fast | {"UCX_TLS": "tcp,self,cuda_copy"}
    assert fast["UCX_RNDV_THRESH"] == "8192" and fast["NCCL_NVLS_ENABLE"] == "0"
    with_ucx = strategies.environment("tcp", tmp_path)
    assert with_ucx["UCX_MODULE_DIR"] == str(tmp_path / "lib" / "ucx")
    assert with_ucx["LD_LIBRARY_PATH"].startswith(str(tmp_path / "lib"))
