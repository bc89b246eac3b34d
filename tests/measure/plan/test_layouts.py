from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machines import machine

from waywiser.machine.catalogue import Catalogue, Footprint, footprint
from waywiser.measure.plan import points
from waywiser.measure.plan.layouts import LAYOUTS, SIZES, example, whole_units
from waywiser.measure.plan.plan import Plan, make_plan
from waywiser.measure.plan.preset import Request
from waywiser.words import Layout, Workload

pytestmark = pytest.mark.usefixtures("scripted_whole")

KIB, MIB = 2**10, 2**20


def plan(gpus: int = 1, **request: object) -> Plan:
    return make_plan(machine(gpus=gpus), Request(**request))  # type: ignore[arg-type]


def laid_out(of: Plan) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for point in of.points:
        if " as " in point.curve.text:
            found.setdefault(point.curve.text, []).append(point.size)
    return found


@given(st.sampled_from(LAYOUTS), st.lists(st.integers(1, 2**40), max_size=8))
def test_sizes_are_the_nearest_whole_units(layout: Layout, sizes: list[int]) -> None:
    rounded = whole_units(layout, sizes)
    assert all(size and size % layout.unit == 0 for size in rounded)
    assert list(rounded) == sorted(set(rounded))
    for size in sizes:
        least = min(abs(size - near) for near in rounded)
        assert least <= layout.unit / 2 or layout.unit in rounded


def test_every_layout_has_a_run_and_fits_its_sizes() -> None:
    for layout in LAYOUTS:
        assert 0 < layout.run <= layout.unit <= min(SIZES)


def test_an_executor_is_asked_about_what_it_moves(scripted_whole: object) -> None:
    from waywiser.machine.catalogue import list_executors

    examples = {kind.name: example(kind) for kind in list_executors()}
    assert examples["tongs"] is None and examples["cpu"] is None
    assert examples["crate"] in LAYOUTS


def test_standard_tries_each_layout_on_the_usual_paths_both_ways_and_local() -> None:
    found = laid_out(plan())
    for ends in (
        "pinned@numa:0 -> device@gpu:0",
        "device@gpu:0 -> pinned@numa:0",
        "device@gpu:0 -> device@gpu:0",
    ):
        for executor in ("crate", "tongs"):
            mine = [text for text in found if text.startswith(f"{ends} by {executor} as ")]
            assert len(mine) == len(LAYOUTS)
    assert not [text for text in found if "rambling" in text or "grip" in text or "(" in text]
    assert found["pinned@numa:0 -> device@gpu:0 by crate as list[piece=28672]"] == [
        4 * 28 * KIB,
        37 * 28 * KIB,
        585 * 28 * KIB,
        2341 * 28 * KIB,
    ]


def test_of_equal_paths_only_the_first_is_laid_out() -> None:
    found = laid_out(plan(3))
    assert {text.split(" by ")[0] for text in found if "crate" in text and "numa" not in text} == {
        "device@gpu:0 -> device@gpu:0",
        "device@gpu:0 -> device@gpu:1",
    }


def test_full_lays_out_with_each_setting() -> None:
    full = laid_out(plan(2, preset="full", sizes="1MiB", only=("crate", "tongs")))
    assert [text for text in full if text.startswith("device@gpu:0 -> device@gpu:1 by crate")]
    assert [text for text in full if "tongs[grip=loose] as list" in text]


def test_quick_tries_none_unless_it_is_named() -> None:
    assert not laid_out(plan(preset="quick"))
    named = laid_out(plan(preset="quick", only=("as list",)))
    assert named and all("list[piece=" in text for text in named)


def test_a_layout_that_a_pair_does_not_support_is_reported_once() -> None:
    unsupported_paths = {r.path: r.reason for r in plan(preset="full").unsupported_paths}
    assert unsupported_paths["pageable -> pinned by tongs as box"] == "no box of pages"
    assert "pageable -> pinned by tongs as list" not in unsupported_paths


def test_asked_sizes_become_whole_units_and_the_plan_says_so() -> None:
    requested = plan(sizes="1KiB,4KiB,1MiB", only=("pinned -> device by tongs as list",))
    found = {text.split("piece=")[1]: sizes for text, sizes in laid_out(requested).items()}
    assert found == {
        "4096]": [4 * KIB, MIB],
        "28672]": [28 * KIB, 37 * 28 * KIB],
        "131072]": [128 * KIB, MIB],
        "1048576]": [MIB],
    }
    result = "a list[piece=28KiB] takes whole numbers of its pieces: --sizes gives 28 KiB, 1036 KiB"
    assert result in requested.notes
    assert not plan().notes


def test_gaps_count_as_memory() -> None:
    points = {p.curve.text: p for p in plan(only=("pinned -> device tongs",)).points}
    as_list = points["pinned@numa:0 -> device@gpu:0 by tongs as list[piece=1048576]"]
    assert as_list.buffer_bytes == 2 * 2 * 64 * MIB
    as_box = points["pinned@numa:0 -> device@gpu:0 by tongs as box[height=64,width=16384]"]
    assert as_box.buffer_bytes == 2 * 4 * 64 * MIB


@pytest.mark.parametrize(
    ("words", "all_have"),
    [
        ("list", ("list[",)),
        ("box crate", ("box[", "crate")),
        ("pinned -> device as list", ("pinned@numa:0 -> device@", " as list")),
        ("as", (" as ",)),
        ("tongs 28672", ("tongs", "piece=28672")),
        ("loose", ("grip=loose",)),
    ],
)
def test_only_selects_by_the_words_of_layouts(words: str, all_have: tuple[str, ...]) -> None:
    texts = {p.curve.text for p in plan(only=(words,)).points}
    assert texts and all(each in text for text in texts for each in all_have)


def test_pieces_beyond_memory_are_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def watched(workload: Workload, catalogue: Catalogue) -> Footprint:
        if any(transfer.layout is not None for transfer in workload.transfers):
            sizes.append(workload.bytes)
        return footprint(workload, catalogue)

    monkeypatch.setattr(points, "footprint", watched)
    large = plan(sizes="1MiB,1TiB", only=("as list",))
    assert sizes and max(sizes) < 2**30
    reasons = {r.reason for r in large.unsupported_paths if r.path.endswith("of 1 TiB")}
    assert "1 TiB needs larger buffers, --memory allows 4 GiB" in reasons
