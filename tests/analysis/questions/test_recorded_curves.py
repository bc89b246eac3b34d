"""What is said of machines that were really measured: true, worth reading, and little."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from kept import RESULTS, unpacked
from waywiser.analysis.questions import crossovers, efficiency, irregularities, trust
from waywiser.analysis.questions.fitted import fitted
from waywiser.curves.answer import Answer
from waywiser.curves.subject import Subject
from waywiser.profile import Profile

H200 = RESULTS / "2026-11-20-h200"
MACHINES = ("one-gpu/standard", "two-gpus/standard")
PINNED = "pinned@numa:0 -> device@gpu:0 by copy-engine"


@cache
def _recorded(name: str, folder: Path) -> Subject:
    file = unpacked(H200 / f"{name}.wwp.xz", folder / f"{name.replace('/', '-')}.wwp")
    with Profile.open(file) as profile:
        return Subject.of(profile)


@pytest.fixture(params=MACHINES)
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    return _recorded(request.param, tmp_path_factory.getbasetemp())


@pytest.mark.parametrize(
    "ask", [efficiency.answer, crossovers.answer, irregularities.answer, trust.answer]
)
def test_answers_fit_a_page(recorded: Subject, ask: Callable[[Subject], Answer]) -> None:
    said = ask(recorded)
    assert len(said.findings) <= 10
    for table in said.tables:
        assert len(table.rows) <= 40
        assert all(len(row.cells) == len(table.columns) for row in table.rows)
    known = {line.text for line in recorded.overview.series}
    curves = {curve.text for curve in recorded.curves}
    assert all(each.series in known for finding in said.findings for each in finding.exhibits)
    shown = {cell.series for table in said.tables for row in table.rows for cell in row.cells}
    assert shown - known - curves <= {""}


def test_page_locked_memory_is_the_best_way_over_pcie(recorded: Subject) -> None:
    best = [each for each in efficiency.answer(recorded).findings if each.id == "best-method"]
    to_gpu = next(each for each in best if "from numa:0 to gpu:0" in each.text)
    assert "is pinned -> device by copy-engine: 55" in to_gpu.text
    assert "88% of the bound of PCIe to gpu:0" in to_gpu.text
    assert all(each.severity == "info" for each in best)


def test_latency_and_rate_describe_page_locked_copies(recorded: Subject) -> None:
    curve = recorded.curve(PINNED)
    assert curve is not None
    ((_, fit),) = fitted([curve])
    assert fit.is_line and fit.postal is not None and fit.postal.half_peak is not None
    assert 1.5e-6 < fit.postal.latency < 3.5e-6
    assert 53e9 < 1 / fit.postal.inverse_rate < 57e9
    assert 2**16 < fit.postal.half_peak < 2**18


def test_dips_are_few_and_none_is_of_page_locked_memory(recorded: Subject) -> None:
    found = irregularities.answer(recorded).findings
    odd = [each for each in found if each.severity != "info"]
    assert len(odd) <= 2
    assert all("pageable" in each.text for each in odd)


def test_what_caches_do_is_said_to_be_theirs(recorded: Subject) -> None:
    found = irregularities.answer(recorded).findings
    host = next(each for each in found if "pageable@numa:0 by cpu falls" in each.text)
    assert host.id == "drop-by-cache" and "do not fit into the L2 cache" in host.text


def test_pinned_memory_beats_pageable_both_ways(recorded: Subject) -> None:
    found = crossovers.answer(recorded).findings
    pinned = next(each for each in found if each.text.startswith("pinned is faster than"))
    assert "numa:0 -> gpu:0" in pinned.text and "gpu:0 -> numa:0" in pinned.text
    assert pinned.effect is not None and 3 < pinned.effect < 6
