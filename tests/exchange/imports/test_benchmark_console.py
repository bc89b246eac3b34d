"""What Google Benchmark prints on a console: rounded counters, and times with fewer digits."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from waywiser.exchange.imports import detect
from waywiser.exchange.imports.benchmark_console import ROUNDED, read
from waywiser.exchange.imports.errors import Malformed
from waywiser.exchange.imports.google_benchmark import read_json

FILE = Path(__file__).parent / "data" / "commscope.txt"
HEAD = "Benchmark                  Time             CPU   Iterations UserCounters...\n"


def rounded(number: float) -> str:
    for scale, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= scale:
            return f"{number / scale:.6g}{unit}"
    return f"{number:.6g}"


@pytest.mark.parametrize("seed", range(24))
def test_a_rounded_size_is_the_power_of_two_that_it_means(seed: int) -> None:
    rng = random.Random(seed)
    exponent, time = rng.randint(3, 33), round(rng.uniform(1, 9e5), 1)
    unit = rng.choice(["ns", "us", "ms"])
    name = f"Comm_cudaMemcpyAsync_PinnedToGPU/0/1/log2(N):{exponent}/manual_time"
    row = (
        f"{name}  {time} {unit}  {time * 9} {unit}  700 bytes={rounded(2.0**exponent)} "
        f"bytes_per_second=1.5Gi/s cuda_id=1 numa_id=0\n"
    )
    (found,) = read(HEAD + row, "x")
    entry = {"name": name, "run_type": "iteration", "iterations": 700, "real_time": time,
             "time_unit": unit, "bytes": 2.0**exponent, "cuda_id": 1.0, "numa_id": 0.0}  # fmt: skip
    expected = read_json({"context": {}, "benchmarks": [entry]}, "x").measured[0]
    (measured,) = found.measured
    assert (measured.workload, measured.samples) == (expected.workload, expected.samples)
    assert measured.notes == (*expected.notes, ROUNDED)


def test_the_file() -> None:
    (found,) = detect.read(FILE)
    assert found.started == "2026-01-05T09:00:00+00:00"
    spans = [each.samples.span for each in found.measured]
    assert spans[0] == pytest.approx((91e-6,)) and spans[1] == pytest.approx((95.5e-6,))
    assert [each.failure.reason for each in found.measured if each.failure] == ["out of memory"]
    assert [each.path for each in found.unsupported_paths] == ["Comm_tomorrow"]


def test_two_tables_are_two_runs() -> None:
    assert len(read(FILE.read_text() * 2, "x")) == 2


def test_a_table_without_rows_is_an_error() -> None:
    with pytest.raises(Malformed, match="x:1: the table has no row"):
        read(HEAD + "-----\n", "x")


@pytest.mark.parametrize("rate", [5e9, 20e9, 11.2e9])
def test_a_rate_that_is_not_bytes_over_time_has_a_note(rate: float) -> None:
    name = "Comm_cudaMemcpyAsync_PinnedToGPU/0/0/log2(N):20/manual_time"
    entry = {"name": name, "iterations": 1, "real_time": 1e5, "bytes": 2**20}
    entry["bytes_per_second"] = rate
    (measured,) = read_json({"benchmarks": [entry]}, "x").measured
    assert measured.samples.span == pytest.approx((1e-4,))
    assert any("real_time is kept" in note for note in measured.notes)
    entry["bytes_per_second"] = 2**20 / 1e-4 * 1.004
    (measured,) = read_json({"benchmarks": [entry]}, "x").measured
    assert not any("real_time is kept" in note for note in measured.notes)


@pytest.mark.parametrize("threads", [2, 16])
def test_several_threads_are_another_operation(threads: int) -> None:
    name = "Comm_cudaMemcpyAsync_PinnedToGPU/0/0/log2(N):20"
    rows = f"{name}/threads:1  9 us 9 us 7\n{name}/threads:{threads}  99 us 9 us 7\n"
    (found,) = read(HEAD + rows, "x")
    assert len(found.measured) == 1
    assert "several threads" in found.unsupported_paths[0].reason
