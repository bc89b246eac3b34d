"""Small copies and loads that a plan measures beside large copies."""

from __future__ import annotations

import pytest

from machine import captured
from waywiser.curves.bystanders import bystander_of
from waywiser.machine.traits import DECLARED
from waywiser.measure.plan.plan import Plan, make_plan
from waywiser.measure.plan.points import PlannedPoint
from waywiser.measure.plan.preset import Request
from waywiser.measure.plan.sets import LARGE_BYTES, LARGE_LIST_BYTES, LOAD_BYTES
from waywiser.words import Workload

H2D = "pinned@numa:0 -> device@gpu:0 by copy-engine"
LOAD = "device@gpu:0 -> device@gpu:0 by matrix-product"
ROW = f"{H2D} as list[piece=28672]"


def planned(machine: str, request: Request) -> tuple[Plan, list[PlannedPoint]]:
    """The plan, and its points of two transfers of which one is a bystander."""
    plan = make_plan(captured.machine(machine), request)
    return plan, [p for p in plan.points if bystander_of(p.workload, DECLARED) is not None]


@pytest.mark.parametrize(
    ("text", "position"),
    [
        (f"{H2D} of 256MiB; {LOAD} of 64MiB", 1),
        (f"{LOAD} of 64MiB; {H2D} of 256MiB", 0),
        (f"{H2D} of 256MiB; {ROW} of 16773120", 1),
        (f"{H2D} of 4KiB; {H2D} of 256MiB", 0),
        (f"{H2D} of 64MiB; {H2D} of 256MiB", None),
        (f"{H2D} of 128KiB; {H2D} of 256MiB", None),
        (f"{H2D} of 64MiB; {H2D} of 64MiB", None),
        (f"{LOAD} of 64MiB; {LOAD} of 64MiB", None),
        (f"{LOAD} of 64MiB", None),
        (f"{ROW} of {LARGE_LIST_BYTES}; {LOAD} of 64MiB", 1),
        (f"{ROW} of {LARGE_LIST_BYTES}; {ROW} of 16773120", 1),
        (f"{ROW} of 16773120; {ROW} of 16773120", None),
    ],
)
def test_a_bystander_is_a_load_or_small_copies_beside_a_large_copy(
    text: str, position: int | None
) -> None:
    assert bystander_of(Workload.parse(text), DECLARED) == position


def test_each_method_of_the_library_has_both_bystanders_in_each_direction() -> None:
    plan, pairs = planned("h200-vm-4gpu", Request())
    found = {(str(p.workload.transfers[0]), str(p.workload.transfers[1])) for p in pairs}
    for large in (f"{H2D} of {LARGE_BYTES}", f"pageable{H2D[6:-11]}staged of {LARGE_BYTES}"):
        assert (large, f"{LOAD} of {LOAD_BYTES}") in found
        assert (large, f"{ROW} of 16773120") in found
    back = "device@gpu:0 -> pinned@numa:0 by copy-engine"
    assert (
        f"device@gpu:0 -> pageable@numa:0 by staged of {LARGE_BYTES}",
        f"{back} as list[piece=28672] of 16773120",
    ) in found
    assert all(point.processes == 1 for point in pairs)
    used = {place for point in pairs for place in point.workload.places}
    assert {place.index for place in used if place.kind == "gpu"} == {0}
    # The first of equivalent GPUs is enough, and each bystander is measured alone.
    alone = {str(p.workload) for p in plan.points if len(p.workload.transfers) == 1}
    assert {small for _, small in found} <= alone


def test_methods_by_which_the_library_moves_lists_alone_move_a_large_list() -> None:
    _, pairs = planned("h200-vm-4gpu", Request())
    found = {(str(p.workload.transfers[0]), str(p.workload.transfers[1])) for p in pairs}
    for executor in ("sm", "batch"):
        large = f"{ROW} of {LARGE_LIST_BYTES}".replace("copy-engine", executor)
        assert (large, f"{LOAD} of {LOAD_BYTES}") in found
        assert (large, f"{ROW} of 16773120") in found
    alone = {executor for large, _ in found for executor in ("sm", "batch")
             if f"by {executor} of" in large}  # fmt: skip
    assert not alone
    lists = [large for large, _ in found if " as list" in large]
    assert lists and not any("pageable" in large for large in lists)


def test_a_load_is_planned_at_one_size_and_is_no_path() -> None:
    for preset in ("standard", "full"):
        plan, _ = planned("mig", Request(preset))
        sizes = {
            transfer.bytes
            for point in plan.points
            for transfer in point.workload.transfers
            if DECLARED.executor(transfer.path.executor).bystander
        }
        assert sizes == {LOAD_BYTES}
    plan, _ = planned("h200-vm-4gpu", Request("full"))
    assert not any("matrix-product" in each.path for each in plan.unsupported_paths)


def test_plans_for_defaults_and_for_sizes_of_the_user_have_no_bystanders() -> None:
    assert not planned("h200-vm-4gpu", Request("quick"))[1]
    assert not planned("h200-vm-4gpu", Request("check"))[1]
    assert not planned("h200-vm-4gpu", Request(sizes="64KiB"))[1]
