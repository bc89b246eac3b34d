"""Plans over a larger registry: memory that moves by itself, files, executors of layouts alone."""

from __future__ import annotations

import msgspec
import pytest
from curves_of_plans import curves
from machines import machine

from waywiser.machine.catalogue import Catalogue
from waywiser.machine.machine import FilePlace, Machine
from waywiser.measure.plan.paths import find_paths
from waywiser.measure.plan.plan import Plan, make_plan
from waywiser.measure.plan.preset import Request

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


def test_files_are_met_from_a_block_up_and_within_what_may_be_used() -> None:
    found = curves(plan())
    carted = found["shelf@file:scratch -> pageable@numa:0 by cart"]
    assert min(carted) >= 4096 and max(carted) <= 64 * MIB
    requested = plan(sizes="8,1MiB,1GiB", only=("shelf@file:scratch -> pageable@numa:0 by cart",))
    one_way = [p for p in requested.points if len(p.curve.transfers) == 1]
    assert [p.size for p in one_way] == [MIB]
    result = [(unsupported.path, unsupported.reason) for unsupported in requested.unsupported_paths]
    path = "shelf@file:scratch -> pageable@numa:0 by cart"
    assert (f"{path} of 8 B", "a disk moves no less than 4 KiB at a time") in result
    no_room = "1 GiB needs 1 GiB of file:scratch, 64 MiB may be used there"
    assert (f"{path} of 1 GiB", no_room) in result


def test_an_executor_needs_a_gpu_where_it_moves_nothing_without() -> None:
    catalogue = Catalogue(with_file())
    needs = {name: catalogue.needs_gpu(name) for name in catalogue.executors}
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


FERRIED = "pageable@numa:0 -> device@gpu:0 by ferry"


def test_what_a_search_has_to_find_is_measured_by_default_settings_at_few_sizes() -> None:
    standard = curves(plan())
    assert standard[FERRIED] == [2**n for n in range(20, 29, 2)], "from its least bytes up"
    assert not [text for text in standard if "ferry[" in text or ("ferry" in text and "(" in text)]
    assert not [text for text in standard if "ferry" in text and "pages=huge" in text]
    assert f"{FERRIED}[grip=loose]" in curves(plan(only=("by ferry",)))
    full = curves(plan(preset="full"))
    assert f"{FERRIED}[grip=loose]" in full and f"{FERRIED} (flushed)" in full
    assert full[FERRIED] == [2**n for n in range(20, 31)]
    assert not [text for text in full if "ferry[" in text and "pages=huge" in text]


def test_asked_sizes_are_measured_below_the_least_bytes_too() -> None:
    assert curves(plan(sizes="8", only=(FERRIED,)))[FERRIED] == [8]


def test_a_file_is_ferried_over_one_link_unasked_and_over_several_in_full() -> None:
    path = "shelf@file:scratch -> device@gpu:0 by ferry"
    assert path in curves(plan())
    assert path not in curves(plan(gpus=2))
    assert path in curves(plan(gpus=2, preset="full"))


def test_what_is_for_the_survey_alone_is_measured_in_full_or_on_request() -> None:
    path = "pageable@numa:0 -> device@gpu:0 by once"
    assert path not in curves(plan()) and path not in curves(plan(preset="quick"))
    assert path in curves(plan(only=("by once",))) and path in curves(plan(preset="full"))


def test_between_peers_nobody_asks_for_the_path_through_the_host() -> None:
    path = "device@gpu:0 -> device@gpu:1 by detour"
    apart = msgspec.structs.replace(
        with_file(2),
        gpus=tuple(msgspec.structs.replace(gpu, peers=()) for gpu in with_file(2).gpus),
    )
    assert path not in curves(plan(gpus=2)) and path in curves(plan(gpus=2, only=("by detour",)))
    found = [p.curve for p in make_plan(apart, Request()).points if p.curve.text == path]
    assert found and all(curve.principal for curve in found)


def test_staging_counts_in_the_memory_that_is_allowed() -> None:
    allowed = 2 * MIB + 64 * 2**10
    found = plan(memory_bytes=allowed, sizes="1MiB,512KiB", only=(FERRIED,))
    assert [point.size for point in found.points if point.curve.text == FERRIED] == [2**19]
    assert max(point.buffer_bytes for point in found.points) == 3 * 2**19
    result = {unsupported.path: unsupported.reason for unsupported in found.unsupported_paths}
    assert result[f"{FERRIED} of 1 MiB"].startswith("1 MiB needs 3 MiB of buffers and staging")


def test_relays_take_part_in_what_is_looked_at() -> None:
    ferried = [p for p in plan(gpus=3).points if p.curve.text.endswith("gpu:1 by ferry")]
    assert ferried and all(point.gpus == {0, 1, 2} for point in ferried)
