"""Comparing other tools' results: one run shows a lower limit of the noise, several show it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from waywiser.analysis.comparison.comparison import compare
from waywiser.curves.imported import imported_from
from waywiser.curves.subject import Subject, read_subject
from waywiser.exchange.imports.profiles import import_files
from waywiser.profile.block import OF_MEDIAN, BlockSummary

D2H = "Comm_cudaMemcpyAsync_GPUToPinned/0/0/log2(N):26/manual_time"


def imported(folder: Path, name: str, rows: list[dict[str, Any]]) -> Subject:
    """The rows as Google Benchmark writes them, imported and read."""
    file = folder / f"{name}.json"
    usual = {"name": D2H, "time_unit": "us", "iterations": 10, "cpu_time": 1.0, "bytes": 2.0**26}
    context = {"host_name": "there", "library_version": "1.8"}
    file.write_text(
        json.dumps({"context": context, "benchmarks": [usual | row for row in rows]}), "utf-8"
    )
    import_files([file], folder / f"{name}.wwp")
    return read_subject(folder / f"{name}.wwp")


def repetitions(*times: float) -> list[dict[str, Any]]:
    return [{"real_time": time, "run_type": "iteration"} for time in times]


def aggregates(mean: float, deviation: float) -> list[dict[str, Any]]:
    result = {"mean": mean, "stddev": deviation, "cv": deviation / mean}
    return [
        {"name": f"{D2H}_{name}", "run_name": D2H, "run_type": "aggregate",
         "aggregate_name": name, "real_time": value}
        for name, value in result.items()
    ]  # fmt: skip


def block(node: Subject) -> BlockSummary:
    (digest,) = node.points
    (found,) = digest.blocks
    return found


def test_repetitions_and_a_deviation_that_is_reported_are_the_spread(tmp_path: Path) -> None:
    several = block(imported(tmp_path, "several", repetitions(1000, 1010, 1020)))
    assert several.standard_error == pytest.approx(OF_MEDIAN * 10 / 1010 / 3**0.5)
    result = block(imported(tmp_path, "result", aggregates(1000, 30)))
    assert result.standard_error == pytest.approx(OF_MEDIAN * 0.03)
    assert block(imported(tmp_path, "one", repetitions(1000))).standard_error == 0


@pytest.mark.parametrize("deviation", [float("nan"), -1.0, 0.0, 1e300])
def test_a_deviation_that_makes_no_sense_widens_or_is_none(
    tmp_path: Path, deviation: float
) -> None:
    found = imported(tmp_path, "odd", aggregates(1000, deviation))
    assert 0 <= block(found).standard_error < float("inf")
    (path,) = compare([found], [imported(tmp_path, "new", repetitions(1200))]).paths
    assert path.verdict in ("no change", "suspected", "not decided")


def test_one_run_a_side_is_a_lower_limit_of_the_noise(tmp_path: Path) -> None:
    base = imported(tmp_path, "base", repetitions(1000, 1040, 960))
    near = imported(tmp_path, "near", repetitions(1060, 1100, 1020))
    far = imported(tmp_path, "far", repetitions(1400, 1440, 1360))
    for new, verdict in ((near, "no change"), (far, "suspected")):
        found = compare([base], [new])
        decision = found.paths[0].parts[0].decision
        assert found.paths[0].verdict == verdict
        assert (decision.freedom, decision.detectable) == (0, None)
        (note,) = [note for note in found.notes if "one process alone measured" in note]
        assert note.endswith("; compare several files of before with several of now")


def test_several_runs_show_the_noise_themselves(tmp_path: Path) -> None:
    base = [imported(tmp_path, f"a{n}", repetitions(1000 + n)) for n in range(4)]
    new = [imported(tmp_path, f"b{n}", repetitions(1100 + n)) for n in range(4)]
    (path,) = compare(base, new).paths
    assert (path.verdict, path.parts[0].surveys) == ("regression", (4, 4))


@pytest.mark.parametrize("odd", [None, 3, "x", [3, None], [{"tool": 3}], {}])
def test_an_origin_that_makes_no_sense_is_still_an_answer(odd: object) -> None:
    assert isinstance(imported_from({"imported": odd}), tuple)
