"""Plans over a larger registry: memory that moves by itself, files, executors of layouts alone."""

from __future__ import annotations

import msgspec
import pytest
from curves_of_plans import curves
from machines import machine

from waywiser.plan.catalogue import Catalogue
from waywiser.plan.paths import find_paths
from waywiser.plan.plan import Plan, Request, make_plan
from waywiser.topology.machine import FilePlace, Machine

pytestmark = pytest.mark.usefixtures("scripted_whole")

MIB = 2**20
CALLED = "rambling@numa:0 -> rambling@gpu:0 by call"


def with_file(gpus: int = 1) -> Machine:
    shelf = FilePlace("scratch", "/var/tmp", scratch=True, bytes=64 * MIB, filesystem="ext4")
    return msgspec.structs.replace(machine(gpus=gpus), files=(shelf,))


def plan(gpus: int = 1, **request: object) -> Plan:
    return make_plan(with_file(gpus), Request(**request))  # type: ignore[arg-type]


def test_memory_at_two_places_has_paths_between_all_of_them() -> None:
    found = {str(path) for path in find_paths(machine(gpus=2)).valid if path.executor == "call"}
    places = ("numa:0", "gpu:0", "gpu:1")
    assert found == {
        f"rambling@{a} -> rambling@{b} by call" for a in places for b in places if a != b
    }


def test_who_moves_it_in_place_is_principal_and_who_copies_it_is_not_asked_for() -> None:
    standard = plan()
    principal = {p.curve.text for p in standard.points if p.curve.principal}
    assert CALLED in principal
    assert not [t for t in curves(standard) if "rambling" in t and "by call" not in t]
    full = curves(plan(preset="full", only=("rambling copy-engine",), sizes="1MiB"))
    assert "rambling@numa:0 -> device@gpu:0 by copy-engine" in full


def test_what_moves_in_place_needs_one_buffer() -> None:
    sizes = {p.size: p.buffer_bytes for p in plan(only=(CALLED,)).points}
    assert sizes and all(needed == size for size, needed in sizes.items())


def test_what_has_to_be_brought_back_costs_the_way_back() -> None:
    def seconds(path: str) -> float:
        points = plan(only=(path,), sizes="64MiB").points
        return next(point.seconds for point in points if point.curve.text == path)

    assert seconds(CALLED) > 1.5 * seconds("pinned@numa:0 -> device@gpu:0 by copy-engine")


def test_files_are_met_from_a_block_up_and_within_what_may_be_used() -> None:
    found = curves(plan())
    carted = found["shelf@file:scratch -> pageable@numa:0 by cart"]
    assert min(carted) >= 4096 and max(carted) <= 64 * MIB
    asked = plan(sizes="8,1MiB,1GiB", only=("shelf@file:scratch -> pageable@numa:0 by cart",))
    one_way = [p for p in asked.points if len(p.curve.transfers) == 1]
    assert [p.size for p in one_way] == [MIB]
    told = [(refusal.path, refusal.reason) for refusal in asked.refusals]
    path = "shelf@file:scratch -> pageable@numa:0 by cart"
    assert (f"{path} of 8 B", "a disk moves no less than 4 KiB at a time") in told
    no_room = "1 GiB needs 1 GiB of file:scratch, 64 MiB may be used there"
    assert (f"{path} of 1 GiB", no_room) in told


def test_an_executor_needs_a_gpu_where_it_moves_nothing_without() -> None:
    catalogue = Catalogue(with_file())
    needs = {kind.name: catalogue.needs_gpu(kind.name) for kind in catalogue.executors}
    assert needs["copy-engine"] and not needs["cpu"] and not needs["cart"]


def test_an_executor_of_layouts_alone_has_paths_and_no_contiguous_curve() -> None:
    assert [path for path in find_paths(machine(gpus=1)).valid if path.executor == "crate"]
    crated = list(curves(plan(preset="full", only=("crate",), sizes="1MiB")))
    assert crated and all(" as " in text for text in crated)


@pytest.mark.parametrize("preset", ["quick", "standard"])
def test_every_executor_that_moves_contiguous_bytes_has_its_part(preset: str) -> None:
    texts = curves(plan(preset=preset))
    for executor in ("call", "cart", "copy-engine", "cpu", "tongs"):
        assert any(f" by {executor}" in text for text in texts)
