from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from waywiser.exchange.imports import detect
from waywiser.exchange.imports.foreign_file import ForeignFile, ForeignSeries, Malformed
from waywiser.exchange.imports.google_benchmark import read_csv, read_json, started
from waywiser.words.records import SUMMARY

DATA = Path(__file__).parent / "data"

H2D = "pinned@numa:0 -> device@gpu:1 by copy-engine of 1048576 (dirtied)"


def read(name: str) -> ForeignFile:
    return detect.read(DATA / name)[0]


def by_text(found: ForeignFile) -> dict[str, ForeignSeries]:
    texts = {str(each.workload): each for each in found.measured}
    assert len(texts) == len(found.measured)
    return texts


def one(**row: Any) -> ForeignFile:
    known = {"name": "Comm_cudaMemcpyAsync_GPUToPinned/0/1/log2(N):10/manual_time",
             "iterations": 5, "real_time": 2.0, "time_unit": "us"}  # fmt: skip
    return read_json({"benchmarks": [known | row]}, "x.json")


def test_a_repetition_is_a_batched_sample_and_its_aggregates_are_skipped() -> None:
    sample = by_text(read("commscope.json"))[H2D].samples
    assert sample.span == pytest.approx((40e-6, 41e-6, 40.5e-6))
    assert sample.repetitions == (100, 100, 100)
    assert sample.flags == (0, 0, 0)
    assert sample.transfers == tuple((span,) for span in sample.span)


def test_where_it_came_from_is_kept() -> None:
    found = read("commscope.json")
    assert (found.tool, found.version, found.hostname) == ("Google Benchmark", "1.8.3", "node7")
    assert (found.date, found.started) == ("2026-11-20T10:00:00+01:00", "2026-11-20T09:00:00+00:00")
    assert found.environment["num_cpus"] == 8


def test_aggregates_alone_are_one_summary_the_median_first() -> None:
    found = by_text(read("commscope.json"))
    alone = found["pageable@numa:0 -> pageable@numa:0 by cpu[side=push] of 4096 (dirtied)"]
    assert alone.samples.span == pytest.approx((880e-9,))
    assert alone.samples.flags == (SUMMARY,)
    assert alone.mode == "host"


def test_a_failed_benchmark_is_a_failure_of_its_series() -> None:
    found = by_text(read("commscope.json"))
    failed = found["pinned@numa:0 -> device@gpu:1 by sm[grid=paper] of 1048576"]
    assert failed.failure is not None and not len(failed.samples)
    assert (failed.failure.kind, failed.failure.reason) == ("foreign", "failed to register")


def test_walks_of_several_lengths_are_one_operation() -> None:
    walk = by_text(read("commscope.json"))["page-fault-latency[stride=1048576]@gpu:1"]
    assert walk.samples.span == pytest.approx((20e-6, 22e-6))
    assert walk.notes == ("seconds of a step: the slope over walks of 4 to 14 steps",)


def test_what_is_unknown_is_an_error_with_the_reason() -> None:
    (unsupported,) = read("commscope.json").unsupported_paths
    assert unsupported.path == "EXAMPLE1"
    assert "no counterpart" in unsupported.reason


def test_files_of_2018_show_aggregates_by_their_names() -> None:
    found = read("microbench.json")
    assert found.started == "2018-06-02T23:59:59"
    assert {text: each.samples.span for text, each in by_text(found).items()} == {
        "write-combined@numa:1 -> device@gpu:3 by copy-engine[api=sync] of 4096": pytest.approx(
            (9e-6, 9.1e-6)
        ),
        "device@gpu:0 -> device@gpu:3 by copy-engine[api=sync,peer=off,submit=1] of 4096":
            pytest.approx((19e-6, 19.1e-6)),
        "managed@gpu:3 -> managed@numa:1 by page-fault of 4096": pytest.approx((29e-6, 29.1e-6)),
    }  # fmt: skip
    modes = {each.family: each.mode for each in found.measured}
    assert modes["NUMAUM_Coherence_GPUToHost"] == "host"
    assert modes["NUMA_Memcpy_WCToGPU"] == "device"


def test_csv_is_read_past_what_the_shell_printed() -> None:
    found = read("commscope.csv")
    good, failed = found.measured
    assert str(good.workload) == "device@gpu:2 -> pinned@numa:1 by copy-engine of 1024"
    assert good.samples.span == pytest.approx((5e-6, 6e-6))
    assert good.samples.repetitions == (1000, 1000)
    assert failed.failure is not None and failed.failure.reason == "no, it failed"


@pytest.mark.parametrize("stated", [None, "ns", "us", "ms", "s"])
@pytest.mark.parametrize("time", [0.25, 2.0, 777.0, 1e5])
@pytest.mark.parametrize("csv", [False, True])
def test_a_unit_that_is_not_stated_is_said_to_be_assumed(
    stated: str | None, time: float, csv: bool
) -> None:
    row: dict[str, Any] = {"name": "Comm_cudaMemcpyAsync_GPUToPinned/0/1/log2(N):10/manual_time",
                           "iterations": 5, "real_time": time}  # fmt: skip
    row |= {} if stated is None else {"time_unit": stated}
    if csv:
        found = read_csv(f"{','.join(row)}\n{','.join(map(str, row.values()))}\n", "x.csv")[0]
    else:
        found = read_json({"benchmarks": [row]}, "x.json")
    (measured,) = found.measured
    factor = {None: 1e-9, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[stated]
    assert measured.samples.span == pytest.approx((time * factor,))
    assert any("time_unit" in note for note in measured.notes) == (stated is None)


@pytest.mark.parametrize(
    ("unit", "seconds"), [("ns", 2e-9), ("us", 2e-6), ("ms", 2e-3), ("s", 2.0)]
)
def test_units_of_time(unit: str, seconds: float) -> None:
    assert one(time_unit=unit).measured[0].samples.span == pytest.approx((seconds,))


@pytest.mark.parametrize(
    ("row", "where"),
    [
        ({"time_unit": "h"}, r"x\.json: benchmarks\[0\]\.time_unit: 'h' is not a unit of time"),
        ({"real_time": None}, r"benchmarks\[0\]\.real_time: null where a number is expected"),
        ({"real_time": float("nan")}, r"real_time: a number that is not finite"),
        ({"real_time": -1.0}, r"real_time: a time of -1 us"),
        ({"real_time": 10**400}, r"real_time: a number that is not finite"),
        ({"iterations": 0}, r"iterations: 0 iterations"),
        ({"iterations": 1.5}, r"iterations: 1\.5 iterations"),
        ({"name": 3}, r"name: a number where a text is expected"),
    ],
)
def test_a_row_that_breaks_the_rules_is_reported_with_its_key(
    row: dict[str, Any], where: str
) -> None:
    with pytest.raises(Malformed, match=where):
        one(**row)


def test_some_failed_repetitions_are_noted_beside_the_good_ones() -> None:
    name = "Comm_cudaMemcpyAsync_GPUToPinned/0/1/log2(N):10/manual_time"
    good = {"name": name, "iterations": 5, "real_time": 2.0, "time_unit": "us"}
    bad = {"name": name, "error_occurred": True, "error_message": "sticky"}
    (found,) = read_json({"benchmarks": [good, bad]}, "x").measured
    assert len(found.samples) == 1
    assert found.notes == ("1 of 2 repetitions failed: sticky",)


def test_a_date_that_is_none_is_skipped() -> None:
    assert started("Sat Jun  2 23:59:59 2018") == ""
    assert started("2018-06-02 23:59:59") == "2018-06-02T23:59:59"
