from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from waywiser.exchange.imports import detect
from waywiser.exchange.imports.foreign_file import ForeignFile, Malformed
from waywiser.exchange.imports.nvbandwidth import read
from waywiser.exchange.imports.nvbandwidth_cases import BYTES
from waywiser.words.records import SUMMARY

FILE = Path(__file__).parent / "data" / "nvbandwidth.json"
OF = f"of {BYTES}"


@pytest.fixture(scope="module")
def found() -> ForeignFile:
    return detect.read(FILE)[0]


def rates(found: ForeignFile) -> dict[str, float]:
    """GB/s of each workload as a whole, in all cases but those of one and all."""
    return {
        str(each.workload): each.workload.bytes / each.samples.span[0] / 1e9
        for each in found.measured
        if each.workload.transfers and "all_to_one" not in each.name
    }


def test_every_figure_is_a_summary(found: ForeignFile) -> None:
    assert {each.samples.flags for each in found.measured} == {(SUMMARY,)}
    assert all("512 MiB" in each.notes[0] for each in found.measured if each.workload.bytes)


def test_a_read_goes_from_column_to_row_and_a_write_the_other_way(found: ForeignFile) -> None:
    rate = rates(found)
    engine = "by copy-engine[api=async"
    assert rate[f"device@gpu:1 -> device@gpu:0 {engine},by=destination] {OF}"] == pytest.approx(300)
    assert rate[f"device@gpu:0 -> device@gpu:1 {engine},by=destination] {OF}"] == pytest.approx(310)
    assert rate[f"device@gpu:0 -> device@gpu:1 {engine}] {OF}"] == pytest.approx(320)
    assert rate[f"device@gpu:1 -> device@gpu:0 {engine}] {OF}"] == pytest.approx(330)
    assert rate[f"device@gpu:0 -> device@gpu:1 by sm[side=push] {OF}"] == pytest.approx(340)


def test_both_directions_of_a_duplex_are_one_workload(found: ForeignFile) -> None:
    h2d = f"pinned@numa:0 -> device@gpu:0 by copy-engine {OF}"
    d2h = f"device@gpu:0 -> pinned@numa:0 by copy-engine {OF}"
    by_text = {str(each.workload): each for each in found.measured}
    duplex = by_text[f"{h2d}; {d2h}"]
    assert duplex.samples.transfers[0] == pytest.approx((BYTES / 30e9, BYTES / 20e9))
    assert duplex.samples.span[0] == pytest.approx(BYTES / 20e9)
    assert any("while the others" in note for note in duplex.notes)
    assert not any("gpu:1" in text and ";" in text and "pinned" in text and "sm" not in text
                   for text in by_text)  # fmt: skip


def test_three_matrices_of_a_peer_duplex_are_both_ways(found: ForeignFile) -> None:
    pair = [each for each in found.measured if "bidirectional_memcpy_write" in each.name]
    there = f"device@gpu:0 -> device@gpu:1 by copy-engine[api=async] {OF}"
    back = f"device@gpu:1 -> device@gpu:0 by copy-engine[api=async] {OF}"
    assert [str(each.workload) for each in pair] == [f"{there}; {back}"] * 2
    # first of (0, 1): the column's GPU to the row's at 200, and back at 220
    assert pair[0].samples.transfers[0] == pytest.approx((BYTES / 220e9, BYTES / 200e9))
    assert pair[1].samples.transfers[0] == pytest.approx((BYTES / 210e9, BYTES / 230e9))


def test_many_at_once_are_one_workload(found: ForeignFile) -> None:
    rate = rates(found)
    out = "; ".join(f"device@gpu:{gpu} -> pinned@numa:0 by sm {OF}" for gpu in (0, 1))
    assert rate[out] == pytest.approx(22)  # all as slow as the slowest


def test_another_case_with_the_same_transfer_is_not_mixed_into_the_series(
    found: ForeignFile,
) -> None:
    assert not [each for each in found.measured if each.name == "all_to_one_write_ce"]
    (reason,) = [e.reason for e in found.unsupported_paths if e.path == "all_to_one_write_ce"]
    assert reason == "it makes the same transfers as a case above it, which is imported"


def test_latencies_are_operations(found: ForeignFile) -> None:
    by_text = {str(each.workload): each.samples.span for each in found.measured}
    latency = "sm-latency[bytes=2097152,memory=gpu:1]@gpu:0"
    assert by_text[latency] == pytest.approx((700e-9,))


def test_what_was_waived_failed_or_is_not_known_is_listed(found: ForeignFile) -> None:
    reasons = {unsupported.path: unsupported.reason for unsupported in found.unsupported_paths}
    assert "waived" in reasons["one_to_all_read_sm"]
    assert reasons["device_local_copy"] == "it failed: out of memory"
    assert "no counterpart" in reasons["a_case_of_tomorrow"]
    others = {"one_to_all_read_sm", "device_local_copy", "a_case_of_tomorrow"}
    assert set(reasons) == others | {"all_to_one_write_ce"}


def test_the_machine_is_named(found: ForeignFile) -> None:
    assert (found.hostname, found.driver, found.cuda_driver) == ("node7", "580.1", "13.0")
    assert [(gpu.index, gpu.name, gpu.pci) for gpu in found.gpus] == [
        (0, "Test GPU", "0000:01:00.0"),
        (1, "Test GPU", "0000:02:00.0"),
    ]


def with_case(**case: Any) -> Any:
    known = {"name": "host_to_device_memcpy_ce", "status": "Passed", "bandwidth_matrix": [["1"]]}
    return {"nvbandwidth": {"GPU Device list": ["0: G"], "testcases": [known | case]}}


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ({"nvbandwidth": []}, "x: nvbandwidth: a list where an object is expected"),
        (
            with_case(bandwidth_matrix=[["fast"]]),
            r"matrix\[0\]\[0\]: 'fast' is neither",
        ),
        (with_case(bandwidth_matrix=[["nan"]]), "neither a figure nor N/A"),
        (with_case(bandwidth_matrix=[["-1"]]), "neither a figure nor N/A"),
        (with_case(bandwidth_matrix=["1"]), r"bandwidth_matrix\[0\]: a text where a list"),
        (with_case(status="Maybe", bandwidth_matrix=None), "a list is expected|is not a status"),
        (with_case(name=None), r"testcases\[0\]\.name: null where a text"),
        ({"nvbandwidth": {"GPU Device list": ["G"]}}, "names no GPU"),
    ],
)
def test_what_breaks_the_rules_is_reported_with_its_key(value: Any, what: str) -> None:
    with pytest.raises(Malformed, match=what):
        read(value, "x")


def test_one_direction_alone_is_no_workload() -> None:
    found = read(with_case(name="host_to_device_bidirectional_memcpy_ce"), "x")
    assert not found.measured
    assert "device_to_host_bidirectional_memcpy_ce is missing" in found.unsupported_paths[0].reason


@pytest.mark.parametrize(
    ("name", "matrix", "line"),
    [
        (
            "device_to_device_memcpy_read_ce",
            [["N/A", "1", "2"], ["3", "N/A"], ["5", "6", "N/A"]],
            "[1]: row 1 has 2 figures and row 0 has 3",
        ),
        ("a_case_of_tomorrow", [["1"], ["1", "2"]], "[1]: row 1 has 2 figures and row 0 has 1"),
        ("host_to_device_memcpy_ce", [["1", "2"], []], "[1]: row 1 has 0 figures and row 0 has 2"),
        (
            "host_to_device_memcpy_ce",
            [["1", "2"], ["3", "4"]],
            ": the matrix is 2 × 2 (rows × columns), and host_to_device_memcpy_ce has 1 × 2",
        ),
        ("device_local_copy", [["1"], ["3"]], ": the matrix is 2 × 1 (rows"),
        ("all_to_one_read_sm", [["1", "2"], ["1", "2"]], ": the matrix is 2 × 2 (rows"),
        (
            "device_to_device_latency_sm",
            [["N/A", "1", "2"], ["3", "N/A", "4"]],
            ": the matrix is 2 × 3 (rows × columns), and device_to_device_latency_sm has 3 × 3",
        ),
        (
            "device_to_device_bidirectional_memcpy_write_ce",
            [["N/A", "1"], ["3", "N/A"], ["N/A", "4"]],
            ": the matrix is 3 × 2 (rows × columns), and device_to_device_bidirectional_memcpy",
        ),
    ],
)
def test_a_matrix_of_another_shape_is_an_error_with_its_row_and_lengths(
    name: str, matrix: list[list[str]], line: str
) -> None:
    case = {"name": name, "status": "Passed", "bandwidth_matrix": matrix}
    with pytest.raises(Malformed) as caught:
        read({"nvbandwidth": {"testcases": [case]}}, "a.json")
    assert str(caught.value).startswith(f"a.json: testcases[0].bandwidth_matrix{line}")


@pytest.mark.parametrize("name", ["device_to_device_memcpy_read_ce", "a_case_of_tomorrow"])
def test_an_empty_matrix_has_no_figures(name: str) -> None:
    case = {"name": name, "status": "Passed", "bandwidth_matrix": []}
    found = read({"nvbandwidth": {"testcases": [case]}}, "a.json")
    assert found.measured == () and [each.path for each in found.unsupported_paths] == [name]
