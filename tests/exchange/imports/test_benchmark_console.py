"""What Google Benchmark prints on a console: rounded counters, and times with fewer digits."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from waywiser.exchange.imports import detect
from waywiser.exchange.imports.benchmark_console import ROUNDED, read
from waywiser.exchange.imports.foreign_file import Malformed
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
    rate = 2.0**exponent / (time * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}[unit])
    row = (
        f"{name}  {time} {unit}  {time * 9} {unit}  700 bytes={rounded(2.0**exponent)} "
        f"bytes_per_second={rate / 2**30:.6e}Gi/s cuda_id=1 numa_id=0\n"
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


NAME = "Comm_cudaMemcpyAsync_PinnedToGPU/0/2/log2(N):{}/manual_time"


def row(exponent: int, microseconds: float, counters: str = "") -> str:
    name = NAME.format(exponent)
    return f"{name}  {microseconds} us  {microseconds * 8} us  900 {counters}\n"


def stated_in(text: str) -> tuple[dict[int, float], list[str]]:
    """(microseconds by size, why lines are not imported)."""
    (found,) = read(HEAD + text, "x:9")
    times = {each.workload.bytes: each.samples.span[0] * 1e6 for each in found.measured}
    return times, [each.reason for each in found.unsupported_paths]


@pytest.mark.parametrize(
    "damaged",
    [
        row(21, 99.5).replace("99.5", "99,5"),
        row(21, 99.5)[:60] + "\n",
        row(21, 99.5).replace(" us", ""),
        row(21, 99.5)[:19] + "\n",
        row(21, 99.5, "bytes=2"),
        row(21, 99.5, "bytes=2.097"),
    ],
)
def test_a_damaged_row_is_listed_and_the_others_are_kept(damaged: str) -> None:
    times, skipped = stated_in(row(20, 51.25) + damaged + row(22, 180.5, "bytes=4.1943M"))
    assert times == pytest.approx({2**20: 51.25, 2**22: 180.5})
    assert len(skipped) == 1


@pytest.mark.parametrize("number", ["1e999M", "9" * 400])
def test_a_size_that_cannot_be_is_no_error_of_this_program(number: str) -> None:
    times, _ = stated_in(row(20, 51.25, f"bytes={number}") + row(22, 180.5))
    assert times[2**22] == pytest.approx(180.5)


@pytest.mark.parametrize(("stated", "notes"), [("19.53G/s", 0), ("20.97G/s", 0), ("19.53Gi/s", 0),
                                               ("2.1G/s", 1), ("200Mi/s", 1)])  # fmt: skip
def test_a_bandwidth_that_contradicts_the_time_is_noted(stated: str, notes: int) -> None:
    text = row(20, 50.0, f"bytes=1.04858M bytes_per_second={stated}")
    (found,) = read(HEAD + text, "x:9")
    assert sum("real_time is kept" in note for note in found.measured[0].notes) == notes
