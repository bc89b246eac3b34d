"""Equivalent paths against one another, and the links that differ."""

from __future__ import annotations

import re

import msgspec
import pytest
from tests.analysis.questions.machines import LARGE, host_links, machine, peer_links
from tests.analysis.questions.subjects import curve, postal, subject

import sides as synthetic
from waywiser.analysis.questions.identical import answer
from waywiser.curves.answer import Answer
from waywiser.machine.machine import Machine
from waywiser.words.records import GpuState, Series


def answered(*series: list[Series], made: Machine | None = None) -> Answer:
    return answer(subject(*series, machine=made or machine()))


def test_equal_links_are_found_to_be_equal() -> None:
    found = answered(host_links(8), peer_links(8))
    assert found.findings == ()
    assert [row.cells[1].mark for row in found.tables[-1].rows] == ["no", "no", "no"]
    assert "72 are equivalent" in found.summary


def test_every_gpu_has_a_row_with_its_link_against_its_peers() -> None:
    found = answered(host_links(8, {3: 0.05}), peer_links(4)).tables[0]
    assert found.names == ("GPU", "slower", "H2D, GB/s", "H2D ratio", "D2H, GB/s", "D2H ratio")
    assert [row.cells[0].text for row in found.rows] == [f"gpu:{n}" for n in range(8)]
    assert [row.cells[1].mark for row in found.rows] == [
        "yes" if n == 3 else "no" for n in range(8)
    ]
    slow, other = found.rows[3].cells, found.rows[4].cells
    assert re.fullmatch(r"H2D −[45]\.\d+ %, D2H −[45]\.\d+ %", slow[1].text)
    for bandwidth in (2, 4):
        assert float(slow[bandwidth].text) < float(other[bandwidth].text)
        assert slow[bandwidth].series.endswith("by copy-engine")
        ratio, low, high = map(float, re.findall(r"[0-9.]+", slow[bandwidth + 1].text))
        assert low <= ratio <= high and ratio == pytest.approx(1 / 1.05, abs=0.01)
        assert other[bandwidth + 1].text.startswith(("1.00", "0.99"))


def test_a_direction_that_was_not_measured_is_left_open() -> None:
    to_gpus = [each for each in host_links(8, {2: -0.1}) if str(each.workload).startswith("pinned")]
    found = answered(to_gpus).tables[0]
    assert all(row.cells[4].text == row.cells[5].text == "—" for row in found.rows)
    assert (found.rows[2].cells[1].mark, found.rows[2].cells[1].text[:11]) == ("no", "faster: H2D")


def test_without_replicates_the_rows_of_gpus_say_so() -> None:
    found = answered(host_links(2, {1: 0.05}, blocks=1), made=machine(2)).tables[0]
    assert [(row.cells[1].mark, row.cells[1].text) for row in found.rows] == [
        ("unclear", "not replicated")
    ] * 2
    assert all("(" not in row.cells[3].text for row in found.rows)


def test_one_gpu_has_no_peers() -> None:
    assert answered(host_links(1), made=machine(1)).tables == ()


@pytest.mark.parametrize("blocks", [2, 3, 6])
def test_a_link_that_is_five_percent_slow_is_one_finding(blocks: int) -> None:
    found = answered(host_links(8, {3: 0.05}, blocks=blocks), peer_links(4, blocks=blocks))
    (finding,) = found.findings
    assert (finding.id, finding.severity) == ("slow-link", "warning")
    assert finding.effect == pytest.approx(1 - 1 / 1.05, abs=0.01)
    assert finding.interval is not None
    assert finding.interval.low - 0.002 < 1 - 1 / 1.05 < finding.interval.high + 0.002
    assert [str(device) for device in finding.devices] == ["gpu:3 (0000:04:00.0, GPU-00000003)"]
    assert "gpu:3's link to the host" in finding.text
    assert re.search(r"; 1 more has [45]\.\d+ % less", finding.text)
    assert "--only" in finding.remedy
    assert [exhibit.unit for exhibit in finding.exhibits[:3]] == ["B/s", "B/s", "ratio"]


def test_the_bandwidth_of_an_even_number_of_equivalents_is_their_median() -> None:
    found = answered(host_links(3, {1: 0.028, 2: 0.5}), made=machine(3))
    own, others, _ = next(each for each in found.findings if each.id == "slow-link").exhibits[:3]
    assert others.what == "median bandwidth of its equivalents"
    assert others.value / own.value == pytest.approx(1.5 / 1.014, rel=0.005)


def test_the_direction_that_is_slow_is_named() -> None:
    found = answered(host_links(8, {5: 0.05}, back={}))
    (finding,) = found.findings
    assert "numa:0 to gpu:5" in finding.text
    assert " more ha" not in finding.text
    marks = {row.cells[0].text: row.cells[1].mark for row in found.tables[-1].rows}
    assert marks == {"pinned -> GPU by copy-engine": "yes", "GPU -> pinned by copy-engine": "no"}


def test_a_link_that_is_an_outlier_is_broken() -> None:
    assert answered(host_links(8, {0: 1.0})).findings[0].severity == "error"


@pytest.mark.parametrize("gpus", [4, 8])
def test_all_ways_of_one_gpu_to_its_peers_are_one_link(gpus: int) -> None:
    slow = {(2, other): 0.06 for other in range(gpus)} | {(o, 2): 0.06 for o in range(gpus)}
    (finding,) = answered(peer_links(gpus, slow), made=machine(gpus)).findings
    assert "gpu:2's link to its peers" in finding.text
    assert [device.place for device in finding.devices] == ["gpu:2"]


def test_a_single_pair_of_gpus_is_named_by_both() -> None:
    (finding,) = answered(peer_links(8, {(1, 4): 0.06})).findings
    assert "the link between gpu:1 and gpu:4" in finding.text
    assert [device.place for device in finding.devices] == ["gpu:1", "gpu:4"]


def test_of_two_peers_the_slower_one_is_suspected() -> None:
    (finding,) = answered(host_links(2, {1: 0.2}), made=machine(2)).findings
    assert "gpu:1's link" in finding.text
    assert "less bandwidth than its equivalent (" in finding.text


def test_one_that_is_faster_than_all_others_breaks_nothing() -> None:
    (finding,) = answered(host_links(8, {6: -0.1})).findings
    assert (finding.id, finding.severity) == ("fast-link", "info")


def test_halves_that_differ_are_reported_as_such_and_not_as_slow_links() -> None:
    (finding,) = answered(host_links(8, dict.fromkeys(range(4, 8), 0.1))).findings
    assert (finding.id, finding.severity) == ("uneven-paths", "warning")
    assert "gpu:4, gpu:5, gpu:6, gpu:7" in finding.text


def test_halves_along_hidden_sides_say_so() -> None:
    series = host_links(8, dict.fromkeys(range(4, 8), 0.1), kind="pageable")
    seen = subject(series, machine=machine(), localities=synthetic.records(5))
    (finding,) = answer(seen).findings
    assert (finding.id, finding.severity) == ("uneven-paths", "info")
    assert "hidden side" in finding.text


def test_single_blocks_are_assessed_by_the_other_peers() -> None:
    assert answered(host_links(8, blocks=1), peer_links(4, blocks=1)).findings == ()
    (finding,) = answered(host_links(8, {3: 0.05}, blocks=1)).findings
    assert "gpu:3's link" in finding.text
    few = answered(host_links(2, {1: 0.05}, blocks=1), made=machine(2))
    (low,) = few.findings
    assert (low.id, low.severity) == ("undecided-path", "info")
    assert "nothing replicates their figures; the lowest is 4" in low.text
    assert [device.place for device in low.devices] == ["gpu:1"]
    assert answered(host_links(2, {1: 0.02}, blocks=1), made=machine(2)).findings == ()
    assert few.unanswered[0].startswith("measured in one process")
    (broken,) = answered(host_links(2, {1: 0.3}, blocks=1), made=machine(2)).findings
    assert (broken.id, broken.severity) == ("undecided-path", "warning")


@pytest.mark.parametrize(("blocks", "between"), [(1, 0.04), (2, 0.04), (2, 0.15), (6, 0.04)])
def test_noise_is_no_difference(blocks: int, between: float) -> None:
    """25 machines of 16 paths each: at most one finding."""
    false = [
        finding
        for seed in range(25)
        for finding in answered(host_links(8, between=between, blocks=blocks, seed=seed)).findings
    ]
    assert len(false) <= 1


def test_five_percent_are_found_on_nearly_every_machine() -> None:
    found = 0
    for seed in range(20):
        findings = answered(host_links(8, {seed % 8: 0.05}, between=0.004, seed=seed)).findings
        found += [d.place for f in findings for d in f.devices] == [f"gpu:{seed % 8}"]
    assert found >= 19


@pytest.mark.parametrize("blocks", [1, 4])
def test_a_fall_at_few_sizes_is_found_although_the_bandwidth_is_equal(blocks: int) -> None:
    """Bandwidth falls to a fifth at 32 and 64 MiB."""
    path = "pinned@numa:0 -> device@gpu:{} by copy-engine"
    sizes = tuple(2**n for n in range(24, 31))

    def falls(size: int) -> float:
        return size / 50e9 * (5 if size in (2**25, 2**26) else 1)

    others = [curve(path.format(gpu), postal(0, 50e9), sizes, blocks=blocks) for gpu in range(1, 8)]
    found = answered(curve(path.format(0), falls, sizes, blocks=blocks), *others)
    (finding,) = found.findings
    assert (finding.id, finding.severity) == ("slow-link", "warning")
    assert "32 MiB to 64 MiB" in finding.text
    assert finding.effect == pytest.approx(1 - 1 / 5, abs=0.008)
    assert "at 32 MiB to 64 MiB (1 of 8)" in found.tables[-1].rows[0].cells[1].text


def test_pageable_differences_do_not_accuse_a_link_whose_pinned_copies_equal_their_peers() -> None:
    slow = host_links(8, {3: 0.5}, kind="pageable", blocks=4)
    (finding,) = answered(slow, host_links(8, blocks=4)).findings
    assert (finding.id, finding.severity) == ("slow-path", "info")
    assert "link" not in finding.text.partition(":")[0]
    (finding,) = answered(slow, host_links(8, {3: 0.5}, blocks=4)).findings
    assert (finding.id, finding.severity) == ("slow-link", "error")


def test_paths_are_equivalent_only_if_the_submitting_node_is_as_near() -> None:
    """Without peer access a copy is slower if another socket submits it: no link is slow."""
    series = [
        found
        for gpus, node, rate in (
            ((0, 1), 0, 28e9),
            ((2, 3), 1, 28e9),
            ((0, 1), 1, 20e9),
            ((2, 3), 0, 20e9),
        )
        for a, b in (gpus, gpus[::-1])
        for found in curve(
            f"device@gpu:{a} -> device@gpu:{b} by copy-engine[peer=off,submit={node}]",
            postal(5e-6, rate),
            LARGE,
        )
    ]
    found = answered(series, made=machine(4, 2))
    assert found.findings == ()
    assert [row.cells[1].mark for row in found.tables[-1].rows] == ["no", "no"]


def test_there_is_nothing_to_compare_with_one_gpu() -> None:
    found = answered(host_links(1), made=machine(1))
    assert (found.findings, found.tables) == ((), ())
    assert "no two paths are equivalent" in found.summary


def test_what_was_seen_of_a_slow_link_is_reported_with_it() -> None:
    narrow = GpuState(3, 1980, 3201, (), 5, 8, 40, 120.0)
    series = [
        Series(
            each.workload,
            tuple(msgspec.structs.replace(v, gpu_states=(narrow,)) for v in each.visits),
        )
        if "gpu:3" in str(each.workload)
        else each
        for each in host_links(8, {3: 0.9})
    ]
    (finding,) = answered(series).findings
    assert finding.text.endswith("; gpu:3 ran at PCIe 5 x8 of 5 x16")


def test_a_way_by_the_host_is_no_link_of_two_gpus() -> None:
    series = [
        found
        for a in range(4)
        for b in range(4)
        if a != b
        for found in curve(
            f"device@gpu:{a} -> device@gpu:{b} by copy-engine[peer=off]",
            postal(5e-6, 20e9 if (a, b) == (0, 1) else 25e9),
            LARGE,
        )
    ]
    (finding,) = answered(series, made=machine(4)).findings
    assert finding.text.startswith("the path from gpu:0 to gpu:1 through the host is slow")


def without_locality(made: Machine, *, described: bool) -> Machine:
    """The machine without the node of each GPU, as a system or files of another tool may be."""
    gpus = tuple(msgspec.structs.replace(gpu, numa=-1) for gpu in made.gpus)
    architecture = made.architecture if described else ""
    return msgspec.structs.replace(made, gpus=gpus, architecture=architecture)


@pytest.mark.parametrize("described", [True, False])
@pytest.mark.parametrize("remote", [0.08, 0.6])
@pytest.mark.parametrize("gpus", [2, 6])
def test_remote_nodes_are_not_accused_where_no_node_is_known_to_be_near(
    described: bool, remote: float, gpus: int
) -> None:
    series = [
        each
        for gpu in range(gpus)
        for node in range(2)
        for path in (f"pinned@numa:{node} -> device@gpu:{gpu}",
                     f"device@gpu:{gpu} -> pinned@numa:{node}")
        for each in curve(f"{path} by copy-engine",
                          postal(5e-6, 30e9 / (1 + remote * (gpu * 2 // gpus != node))), LARGE)
    ]  # fmt: skip
    made = machine(gpus, 2)
    found = answered(series, made=without_locality(made, described=described))
    assert found.findings == () and found.tables == ()
    assert "locality unknown" in found.summary and f"the paths of {gpus} GPUs" in found.summary
    assert ("give --topology" in found.summary) is not described
    assert any("locality" in each for each in found.unanswered)
    known = answered(series, made=made)
    assert "locality" not in known.summary and known.findings == () and known.tables
