"""The catalogue's page says what the registry says, and its commands measure what its rows show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.measure.plan.machines import machine

from analysis.questions.subjects import curve, postal
from script_module import script_module
from waywiser.curves.select import matches_any
from waywiser.machine.machine import FilePlace, NumaNode
from waywiser.measure.plan.plan import Plan, make_plan
from waywiser.measure.plan.preset import Request

DOCS = Path(__file__).parents[1] / "docs"


catalogue = script_module(DOCS / "catalogue.py")
ROWS = catalogue.rows()


def test_the_page_is_current() -> None:
    result = "run: python docs/catalogue.py > docs/catalogue.md"
    assert catalogue.document() == (DOCS / "catalogue.md").read_text(), result


def test_no_line_is_missing_of_which_a_kept_profile_has_the_curve() -> None:
    page = (DOCS / "catalogue.md").read_text().splitlines()
    missing = {
        line.split(" | ")[2].partition("`")[2].partition("`")[0]
        for line in page
        if line.endswith(f"| {catalogue.NOT_YET} |") or "| needs " in line
    }
    held = {
        curve
        for profile in catalogue.measured()
        for curve in missing & profile.series.keys()
        for series in profile.series[curve].values()
        if any(len(visit.samples) for visit in series.visits)
    }
    assert held == set()


def measured(gpu: str, *series: Any, own: bool = False) -> Any:
    """A kept profile of a machine with this GPU."""
    plain = machine(gpus=1)
    gpus = (msgspec.structs.replace(plain.gpus[0], name=gpu),)
    known: dict[str, dict[int, Any]] = {}
    for one in series:
        known.setdefault(one.workload.curve, {})[one.workload.bytes] = one
    return catalogue.Measured(msgspec.structs.replace(plain, gpus=gpus), own, known, {})


def test_a_figure_is_of_the_gpu_then_of_the_size_then_of_the_page() -> None:
    text, sizes = "pinned@numa:0 -> device@gpu:0 by copy-engine", (2**20, 2**26)
    fast, slow, other = (curve(text, postal(1e-6, r), sizes) for r in (6e10, 3e10, 9e10))
    h100, h200, own = (
        measured("NVIDIA H100", *other),
        measured(catalogue.GPU, *fast),
        measured(catalogue.GPU, *slow[:1], own=True),
    )
    shown = catalogue.figure(text, 2**26, [h100, h200, own])
    assert shown.startswith("5") and " on " not in shown and " at " not in shown
    assert catalogue.figure(text, 2**20, [h100, h200, own]).startswith("2")
    assert catalogue.figure(text, 2**26, [own]).endswith(", at 1 MiB")
    assert catalogue.figure(text, 2**26, [h100]).endswith(", on NVIDIA H100")
    assert catalogue.figure("another", 8, [h100, h200]) == catalogue.NOT_YET


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    """Plans by preset for a machine with two GPUs, two nodes, and the survey's own file places."""
    files = (
        FilePlace("scratch", "/scratch", scratch=True, bytes=4 << 30, filesystem="ext4"),
        FilePlace("tmpfs", "/dev/shm", scratch=True, bytes=4 << 30, filesystem="tmpfs"),
    )
    nodes = tuple(NumaNode(n, tuple(range(16 * n, 16 * n + 16)), 2**36, n) for n in range(2))
    two = msgspec.structs.replace(machine(gpus=2), numa=nodes, files=files)
    return {name: make_plan(two, Request(preset=name)) for name in ("standard", "full")}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.only)
def test_a_command_measures_what_its_row_shows(row: Any, plans: dict[str, Plan]) -> None:
    plan = plans["full" if "full" in row.options else "standard"]
    planned = {point.curve.text for point in plan.points}
    for text in row.curves:
        assert matches_any([text], [row.only]), text
        assert text in planned, text
