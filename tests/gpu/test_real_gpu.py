"""What only a real GPU can show, through the whole program: capture, plan, worker, profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from waywiser.machine.bounds import bound
from waywiser.machine.machine import Machine
from waywiser.measure import survey_run
from waywiser.measure.plan.preset import Request
from waywiser.measure.scope import MachineSelection
from waywiser.profile import Profile
from waywiser.profile.estimate import estimate
from waywiser.words.records import Series

pytestmark = pytest.mark.gpu

MIB = 2**20
H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"
D2H = "device@gpu:0 -> pinned@numa:0 by copy-engine"
LOCAL = "device@gpu:0 -> device@gpu:0 by copy-engine"
PAGEABLE = "pageable@numa:0 -> device@gpu:0 by copy-engine"
EMPTY = "empty-interval@gpu:0"
PEER = "device@gpu:0 -> device@gpu:1 by copy-engine"


class Nobody:
    """Watches a survey and says nothing."""

    def begin(self, plan: object, finished: object) -> None: ...

    def progress(self, progress: object) -> None: ...

    def visit(self, visit: object) -> None: ...


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A survey of a few series of each kind of timing, with other users of the GPU allowed."""
    file = tmp_path_factory.mktemp("gpu") / "real.wwp"
    selected = (H2D, D2H, LOCAL, PAGEABLE, EMPTY, f"{PEER}*")
    with_peers = selected if len(survey_run.live_machine().gpus) > 1 else selected[:-1]
    request = Request(preset="quick", only=with_peers, sizes="8,64KiB,64MiB")
    survey_run.start(survey_run.prepare(request, MachineSelection(share=True)), file, Nobody())
    return file


@pytest.fixture(scope="module")
def machine(profile: Path) -> Machine:
    with Profile.open(profile) as opened:
        return opened.machine


@pytest.fixture(scope="module")
def curves(profile: Path) -> dict[str, dict[int, Series]]:
    found: dict[str, dict[int, Series]] = {}
    with Profile.open(profile) as opened:
        for series in opened.series():
            found.setdefault(series.workload.curve, {})[series.workload.bytes] = series
    return found


def gb_per_s(series: Series) -> float:
    result = estimate(series)
    assert result is not None, series.failure
    return series.workload.bytes / result.median / 1e9


def test_every_series_has_verified_samples(curves: dict[str, dict[int, Series]]) -> None:
    failures = [s.failure for by_size in curves.values() for s in by_size.values() if s.failure]
    assert not failures


def test_page_locked_copies_are_timed_by_the_device_behind_a_stream_wait(
    curves: dict[str, dict[int, Series]],
) -> None:
    for curve in (H2D, D2H, LOCAL):
        for series in curves[curve].values():
            assert {(v.mode, v.gate) for v in series.visits} == {("device", "stream-wait-value")}


def test_pageable_copies_are_timed_by_the_host(curves: dict[str, dict[int, Series]]) -> None:
    assert {v.mode for s in curves[PAGEABLE].values() for v in s.visits} == {"host"}


def test_large_copies_come_near_their_link_and_never_pass_it(
    curves: dict[str, dict[int, Series]], machine: Machine
) -> None:
    for curve in (H2D, D2H):
        series = curves[curve][64 * MIB]
        peak = bound(machine, series.workload)
        assert peak is not None
        assert 0.6 < gb_per_s(series) * 1e9 / peak.bytes_per_second < 1


def test_small_copies_are_batched_and_an_application_sees_them_later(
    curves: dict[str, dict[int, Series]],
) -> None:
    visit = curves[H2D][8].visits[0]
    assert min(visit.samples.repetitions) > 1
    result = estimate(curves[H2D][8])
    assert result is not None and result.host_median is not None
    assert 0.3e-6 < result.median < result.host_median < 100e-6


def test_the_empty_interval_is_some_microseconds_and_above_a_tick(
    curves: dict[str, dict[int, Series]],
) -> None:
    result = estimate(curves[EMPTY][0])
    assert result is not None
    assert 32e-9 <= result.median < 20e-6


def test_pages_are_where_the_path_says_or_marked(curves: dict[str, dict[int, Series]]) -> None:
    buffers = [b for s in curves[H2D].values() for v in s.visits for b in v.buffers]
    assert {b.state for b in buffers} <= {"verified", "unverified"}
    assert all(b.detail for b in buffers if b.state == "unverified")


def test_peer_copies_pass_the_host_link_where_gpus_see_each_other(
    curves: dict[str, dict[int, Series]], machine: Machine
) -> None:
    if len(machine.gpus) < 2 or 1 not in machine.gpus[0].peers:
        pytest.skip("needs two GPUs that can access each other's memory")
    on = curves[PEER][64 * MIB]
    assert {v.mode for v in on.visits} == {"device"}
    if machine.gpus[0].nvlinks:
        assert gb_per_s(on) > 2 * gb_per_s(curves[H2D][64 * MIB])
