"""The catalogue's page says what the registry says, and its commands measure what its rows show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.measure.plan.machines import machine

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
    for curve in row.curves:
        assert matches_any([curve], [row.only]), curve
        assert curve in planned, curve
